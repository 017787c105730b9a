// SPDX-License-Identifier: Apache-2.0
// Speed of single kernels on one thread, with the shapes of SmolLM2-135M: n x k weights, m rows.
// Prints operations per second (2 per weight and row) and weight bytes per second. The weights of
// "cold" runs exceed the caches, as they do in decode; the others are what prefill sees.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "kernels/log_sum_exp.hpp"
#include "tensor/dtype.hpp"

namespace spud::kernels {
namespace {

using tensor::DType;

struct AlignedBytes {
  explicit AlignedBytes(std::size_t bytes)
      : data(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))) {}
  ~AlignedBytes() { std::free(data); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  std::byte* data;
};

void fill_random(std::byte* data, std::size_t bytes) {
  std::mt19937 rng(1);
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const std::uint32_t word = rng() & 0x3FFF3FFFU;  // as f16: finite and not tiny
    __builtin_memcpy(data + i, &word, 4);
  }
}

void bench_matmul(benchmark::State& state, Isa isa, DType type, std::int64_t n, std::int64_t k,
                  std::int64_t m, bool cold) {
  const KernelTable table = select_kernels(isa);
  const MatmulKernels* kernels = table.find_matmul(type);
  const std::size_t bytes = kernels->packed_bytes(n, k);
  const std::size_t copies = cold ? (std::size_t{256} << 20) / bytes + 1 : 1;
  const AlignedBytes packed(bytes * copies);
  fill_random(packed.data, bytes * copies);

  const std::size_t row_bytes = table.activation_bytes(kernels->activation, k);
  const AlignedBytes rows(row_bytes * static_cast<std::size_t>(m));
  std::vector<float> x(static_cast<std::size_t>(k));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 37) - 18.0F;
  for (std::int64_t r = 0; r < m; ++r) {
    table.prepare(kernels->activation, x.data(), k,
                  rows.data + static_cast<std::size_t>(r) * row_bytes);
  }
  std::vector<float> out(static_cast<std::size_t>(m * n));
  std::size_t copy = 0;
  for (auto _ : state) {
    kernels->matmul({.packed = packed.data + copy * bytes,
                     .activations = rows.data,
                     .out = out.data(),
                     .out_stride = n,
                     .m = m,
                     .n_begin = 0,
                     .n_end = n,
                     .n_total = n,
                     .k = k});
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    copy = (copy + 1) % copies;
  }
  const auto per_second = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(n * k * m), per_second);
  state.counters["GB/s"] = benchmark::Counter(1e-9 * static_cast<double>(bytes), per_second);
}

void bench_prepare(benchmark::State& state, Isa isa, std::int64_t k) {
  const KernelTable table = select_kernels(isa);
  const std::vector<float> x(static_cast<std::size_t>(k), 0.5F);
  const AlignedBytes row(table.activation_bytes(ActivationKind::kInt8, k));
  for (auto _ : state) {
    table.prepare(ActivationKind::kInt8, x.data(), k, row.data);
    benchmark::ClobberMemory();
  }
  state.counters["Gvalues/s"] = benchmark::Counter(1e-9 * static_cast<double>(k),
                                                   benchmark::Counter::kIsIterationInvariantRate);
}

// One KV head with `group` query heads of `head_dim` over `context` positions.
void bench_attention(benchmark::State& state, Isa isa, KvType type, std::int64_t queries,
                     std::int64_t context, std::int64_t group, std::int64_t head_dim) {
  const KvKernels kernels = select_kernels(isa).kv[static_cast<std::size_t>(type)];
  const std::int64_t pages = (context + kPageTokens - 1) / kPageTokens;
  const std::size_t page_bytes = kv_block_bytes(type, head_dim);
  const AlignedBytes storage(page_bytes * static_cast<std::size_t>(pages));
  std::vector<const std::byte*> table_of_pages;
  for (std::int64_t p = 0; p < pages; ++p) {
    std::byte* page = storage.data + static_cast<std::size_t>(p) * page_bytes;
    table_of_pages.push_back(page);
    std::vector<float> values(static_cast<std::size_t>(head_dim));
    for (std::int64_t slot = 0; slot < kPageTokens; ++slot) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(slot)) % 19) - 9.0F;
      }
      kernels.store(values.data(), values.data(), head_dim, slot, page);
    }
  }
  const std::vector<float> q(static_cast<std::size_t>(queries * group * head_dim), 0.1F);
  std::vector<float> out(q.size());
  std::vector<AttentionRow> rows;
  for (std::int64_t i = 0; i < queries * group; ++i) {
    rows.push_back({.q = q.data() + i * head_dim,
                    .out = out.data() + i * head_dim,
                    .pages = table_of_pages.data(),
                    .first = 0,
                    .position = context - queries + i / group});
  }
  for (auto _ : state) {
    kernels.attention({.rows = rows.data(),
                       .num_rows = queries * group,
                       .head_dim = head_dim,
                       .scale = 0.125F,
                       .softcap = 0});
    benchmark::ClobberMemory();
  }
  const double pairs = static_cast<double>(queries * group) *
                       (static_cast<double>(context) - static_cast<double>(queries - 1) / 2);
  const auto per_second = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] =
      benchmark::Counter(4e-9 * pairs * static_cast<double>(head_dim), per_second);
}

void bench_elementwise(benchmark::State& state, Isa isa, const std::string& what) {
  const KernelTable table = select_kernels(isa);
  constexpr std::int64_t kValues = 1536;
  std::vector<float> x(kValues, 0.5F);
  const std::vector<float> y(kValues, 0.25F);
  std::vector<float> z(kValues);
  for (auto _ : state) {
    if (what == "rms_norm") table.rms_norm(x.data(), y.data(), kValues, 1e-5F, z.data());
    if (what == "silu_mul") table.silu_mul(x.data(), y.data(), kValues);
    if (what == "gelu_tanh_mul") table.gelu_tanh_mul(x.data(), y.data(), kValues);
    if (what == "log_sum_exp") benchmark::DoNotOptimize(log_sum_exp(table, x.data(), kValues));
    if (what == "argmax") benchmark::DoNotOptimize(table.argmax(x.data(), kValues));
    if (what == "rope") table.rope(x.data(), kValues / 64, 64, 64, y.data(), false);
    if (what == "rope_pairs") table.rope(x.data(), kValues / 64, 64, 64, y.data(), true);
    benchmark::ClobberMemory();
  }
  state.counters["Gvalues/s"] = benchmark::Counter(1e-9 * static_cast<double>(kValues),
                                                   benchmark::Counter::kIsIterationInvariantRate);
}

void register_isa(Isa isa) {
  const std::string suffix = std::string("/") + to_string(isa);
  const auto matmul = [&](DType type, std::int64_t n, std::int64_t k, std::int64_t m, bool cold) {
    const std::string name = "matmul/" + std::string(tensor::to_string(type)) + "/" +
                             std::to_string(n) + "x" + std::to_string(k) + "/m" +
                             std::to_string(m) + (cold ? "/cold" : "") + suffix;
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      bench_matmul(state, isa, type, n, k, m, cold);
    });
  };
  for (const DType type :
       {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kIQ4_NL,
        DType::kQ4_K, DType::kQ6_K, DType::kF16, DType::kBF16, DType::kF32}) {
    const bool super = tensor::traits(type).block_values == 256;
    for (const std::int64_t m : {1, 2, 4, 8, 16, 64, 512}) {
      matmul(type, super ? 512 : 576, super ? 512 : 576, m, false);
      matmul(type, 1536, super ? 512 : 576, m, false);
      matmul(type, 576, 1536, m, false);
      if (m == 1) matmul(type, 1536, super ? 512 : 576, m, true);
      if (m == 1) matmul(type, 49152, super ? 512 : 576, m, true);
    }
  }
  const auto add = [&](const std::string& name, auto function) {
    benchmark::RegisterBenchmark((name + suffix).c_str(), function);
  };
  for (const std::int64_t k : {576, 1536}) {
    add("prepare/" + std::to_string(k), [=](benchmark::State& s) { bench_prepare(s, isa, k); });
  }
  for (const KvType type : {KvType::kF16, KvType::kInt8}) {
    const std::string kind = std::string("attention/") + to_string(type);
    add(kind + "/decode_ctx512/g3d64",
        [=](benchmark::State& s) { bench_attention(s, isa, type, 1, 512, 3, 64); });
    add(kind + "/decode_ctx512/g4d256",
        [=](benchmark::State& s) { bench_attention(s, isa, type, 1, 512, 4, 256); });
    add(kind + "/prefill512/g3d64",
        [=](benchmark::State& s) { bench_attention(s, isa, type, 512, 512, 3, 64); });
    add(kind + "/prefill512/g4d256",
        [=](benchmark::State& s) { bench_attention(s, isa, type, 512, 512, 4, 256); });
  }
  for (const char* what :
       {"rms_norm", "silu_mul", "gelu_tanh_mul", "log_sum_exp", "argmax", "rope", "rope_pairs"}) {
    add(std::string("elementwise/") + what,
        [=, w = std::string(what)](benchmark::State& s) { bench_elementwise(s, isa, w); });
  }
}

// benchmark_main brings main(): this runs before it.
const bool kRegistered = [] {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= detect_isa()) register_isa(isa);
  }
  return true;
}();

}  // namespace
}  // namespace spud::kernels
