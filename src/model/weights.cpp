// SPDX-License-Identifier: Apache-2.0
#include "model/weights.hpp"

#include <algorithm>
#include <string_view>

#include "base/checked_math.hpp"
#include "model/packed_file.hpp"
#include "telemetry/log.hpp"

namespace spud::model {
namespace {

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Finds tensors and remembers the matrices; nothing is allocated before all have been found.
class Binder {
 public:
  Binder(const formats::ModelFile& file, const kernels::KernelTable& kernels)
      : file_(file), kernels_(kernels) {}

  Result<void> matrix(std::string name, std::int64_t n, std::int64_t k, Weight& out);
  Result<void> vector(const std::string& name, std::int64_t n, FloatVector& out) const;
  // Leaves `out` empty when the file has no such tensor.
  Result<void> optional_vector(const std::string& name, std::int64_t n, FloatVector& out) const;
  bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

  // All matrices packed in one arena: from `folder` if they are there, else packed now and kept
  // there. An empty folder keeps nothing.
  Result<std::unique_ptr<WeightArena>> pack(concurrency::ThreadPool& pool,
                                            const std::filesystem::path& folder);

 private:
  struct Pending {
    Weight* weight;
    std::size_t tensor_index;
    std::size_t offset = 0;
  };
  Result<std::size_t> lay_out();  // sets the offsets; the sum of the sizes
  Result<std::unique_ptr<WeightArena>> pack_now(concurrency::ThreadPool& pool, std::size_t bytes);
  Result<std::unique_ptr<WeightArena>> pack_once(concurrency::ThreadPool& pool, std::size_t bytes,
                                                 const std::filesystem::path& folder);
  Result<const formats::TensorInfo*> find(const std::string& name,
                                          std::vector<std::uint64_t> shape) const;

  const formats::ModelFile& file_;
  const kernels::KernelTable& kernels_;
  std::vector<Pending> pending_;
};

Result<const formats::TensorInfo*> Binder::find(const std::string& name,
                                                std::vector<std::uint64_t> shape) const {
  const formats::TensorInfo* info = file_.find_tensor(name);
  if (info == nullptr) return fail(ErrorCode::kInvalidArgument, "tensor '{}' is missing", name);
  std::vector<std::uint64_t> actual = info->shape;
  while (actual.size() > shape.size() && actual.back() == 1) actual.pop_back();
  if (actual != shape) {
    return fail(ErrorCode::kInvalidArgument,
                "tensor '{}' has shape {}; the hyper-parameters ask for {}", name,
                shape_text(info->shape), shape_text(shape));
  }
  return info;
}

Result<void> Binder::matrix(std::string name, std::int64_t n, std::int64_t k, Weight& out) {
  SPUD_TRY(const formats::TensorInfo* info,
           find(name, {static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(n)}));
  const kernels::MatmulKernels* product = kernels_.find_matmul(info->dtype);
  if (product == nullptr || product->matmul == nullptr) {
    return fail(ErrorCode::kUnimplemented, "tensor '{}' has type {}, which has no matrix product",
                name, tensor::to_string(info->dtype));
  }
  const auto index = file_.find_tensor_index(name);
  out = {.name = std::move(name), .kernels = product, .packed = nullptr, .n = n, .k = k};
  pending_.push_back({.weight = &out, .tensor_index = *index});
  return {};
}

Result<void> Binder::vector(const std::string& name, std::int64_t n, FloatVector& out) const {
  SPUD_TRY(find(name, {static_cast<std::uint64_t>(n)}));
  SPUD_TRY(out, formats::read_floats(file_, name));
  return {};
}

Result<void> Binder::optional_vector(const std::string& name, std::int64_t n,
                                     FloatVector& out) const {
  if (!has(name)) return {};
  return vector(name, n, out);
}

Result<std::size_t> Binder::lay_out() {
  std::size_t total = 0;
  for (Pending& item : pending_) {
    item.offset = total;
    const auto bytes = checked_round_up<std::size_t>(
        item.weight->kernels->packed_bytes(item.weight->n, item.weight->k),
        WeightArena::kAlignment);
    const auto sum = bytes ? checked_add<std::size_t>(total, *bytes) : std::nullopt;
    if (!sum) return fail(ErrorCode::kInvalidArgument, "the tensors' sizes overflow");
    total = *sum;
  }
  return total;
}

Result<std::unique_ptr<WeightArena>> Binder::pack(concurrency::ThreadPool& pool,
                                                  const std::filesystem::path& folder) {
  SPUD_TRY(const std::size_t bytes, lay_out());
  SPUD_TRY(std::unique_ptr<WeightArena> arena,
           folder.empty() ? pack_now(pool, bytes) : pack_once(pool, bytes, folder));
  for (const Pending& item : pending_) item.weight->packed = arena->bytes().data() + item.offset;
  return arena;
}

Result<std::unique_ptr<WeightArena>> Binder::pack_now(concurrency::ThreadPool& pool,
                                                      std::size_t bytes) {
  SPUD_TRY(std::unique_ptr<WeightArena> arena, WeightArena::create(bytes));
  for (const Pending& item : pending_) {
    const Weight& weight = *item.weight;
    std::byte* packed = arena->writable() + item.offset;
    const std::byte* blocks = file_.tensor_bytes(item.tensor_index).data();
    // A few hundred kilobytes a piece: the cost of handing out is lost in it.
    constexpr std::int64_t kRowsPerPiece = 16 * kernels::kColumnTile;
    pool.parallel_for(weight.n, kRowsPerPiece, [&](std::int64_t begin, std::int64_t end) {
      weight.kernels->pack(blocks, weight.n, weight.k, begin, end, packed);
    });
  }
  return arena;
}

Result<std::unique_ptr<WeightArena>> Binder::pack_once(concurrency::ThreadPool& pool,
                                                       std::size_t bytes,
                                                       const std::filesystem::path& folder) {
  std::vector<PackedTensor> tensors;
  for (const Pending& item : pending_) {
    tensors.push_back({.name = item.weight->name,
                       .source = file_.tensor_bytes(item.tensor_index),
                       .type = tensor::to_string(file_.tensors()[item.tensor_index].dtype),
                       .n = item.weight->n,
                       .k = item.weight->k,
                       .offset = item.offset});
  }
  const PackedDigest digest = digest_of(tensors, pool);
  const std::filesystem::path path = packed_path(folder, digest);
  auto mapped = map_packed(path, digest, bytes, pool);
  if (mapped) return mapped;
  if (mapped.error().code() != ErrorCode::kNotFound) {
    SPUD_LOG(warn, "packed weights are made anew", {"why", mapped.error().message()});
  }
  SPUD_TRY(std::unique_ptr<WeightArena> arena, pack_now(pool, bytes));
  // What was packed serves; only the next start is slower.
  const Result<void> kept = write_packed(path, digest, *arena, pool);
  if (!kept) SPUD_LOG(warn, "cannot keep packed weights", {"why", kept.error().message()});
  return arena;
}

Result<void> bind_attention(Binder& binder, const DecoderSpec& spec, const std::string& prefix,
                            LayerWeights& layer) {
  const HyperParameters& h = spec.hyper;
  const std::int64_t query_width = h.num_heads * h.head_dim;
  const std::int64_t kv_width = h.num_kv_heads * h.head_dim;
  SPUD_TRY(binder.vector(prefix + "attn_norm.weight", h.hidden, layer.attention_norm));
  SPUD_TRY(binder.matrix(prefix + "attn_q.weight", query_width, h.hidden, layer.query));
  SPUD_TRY(binder.matrix(prefix + "attn_k.weight", kv_width, h.hidden, layer.key));
  SPUD_TRY(binder.matrix(prefix + "attn_v.weight", kv_width, h.hidden, layer.value));
  SPUD_TRY(binder.matrix(prefix + "attn_output.weight", h.hidden, query_width, layer.output));
  const auto bias = [&](const char* name, std::int64_t n, FloatVector& out, bool required) {
    return required ? binder.vector(prefix + name, n, out)
                    : binder.optional_vector(prefix + name, n, out);
  };
  SPUD_TRY(bias("attn_q.bias", query_width, layer.query_bias, spec.qkv_bias));
  SPUD_TRY(bias("attn_k.bias", kv_width, layer.key_bias, spec.qkv_bias));
  SPUD_TRY(bias("attn_v.bias", kv_width, layer.value_bias, spec.qkv_bias));
  SPUD_TRY(bias("attn_output.bias", h.hidden, layer.output_bias, false));
  if (spec.qk_norm) {
    SPUD_TRY(binder.vector(prefix + "attn_q_norm.weight", h.head_dim, layer.query_norm));
    SPUD_TRY(binder.vector(prefix + "attn_k_norm.weight", h.head_dim, layer.key_norm));
  }
  if (spec.post_norms) {
    SPUD_TRY(
        binder.vector(prefix + "post_attention_norm.weight", h.hidden, layer.post_attention_norm));
  }
  return {};
}

Result<void> bind_feed_forward(Binder& binder, const DecoderSpec& spec, const std::string& prefix,
                               LayerWeights& layer) {
  const HyperParameters& h = spec.hyper;
  SPUD_TRY(binder.vector(prefix + "ffn_norm.weight", h.hidden, layer.ffn_norm));
  SPUD_TRY(binder.matrix(prefix + "ffn_gate.weight", h.ffn, h.hidden, layer.gate));
  SPUD_TRY(binder.matrix(prefix + "ffn_up.weight", h.ffn, h.hidden, layer.up));
  SPUD_TRY(binder.matrix(prefix + "ffn_down.weight", h.hidden, h.ffn, layer.down));
  if (spec.post_norms) {
    SPUD_TRY(binder.vector(prefix + "post_ffw_norm.weight", h.hidden, layer.post_ffn_norm));
  }
  return {};
}

}  // namespace

Result<DecoderWeights> load_weights(const formats::ModelFile& file, const DecoderSpec& spec,
                                    const kernels::KernelTable& kernels,
                                    concurrency::ThreadPool& pool,
                                    const std::filesystem::path& packed_folder) {
  const HyperParameters& h = spec.hyper;
  DecoderWeights weights;
  Binder binder(file, kernels);
  SPUD_TRY(binder.matrix("token_embd.weight", h.vocabulary, h.hidden, weights.embedding));
  const bool tied = !binder.has("output.weight");
  if (!tied) SPUD_TRY(binder.matrix("output.weight", h.vocabulary, h.hidden, weights.head));
  SPUD_TRY(binder.vector("output_norm.weight", h.hidden, weights.output_norm));
  weights.layers.resize(static_cast<std::size_t>(h.num_layers));
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const std::string prefix = fmt::format("blk.{}.", i);
    SPUD_TRY(bind_attention(binder, spec, prefix, weights.layers[i]));
    SPUD_TRY(bind_feed_forward(binder, spec, prefix, weights.layers[i]));
  }
  for (const RopeSpec& rope : spec.ropes) {
    FloatVector& factors = weights.rope_factors.emplace_back();
    if (rope.factors_tensor.empty()) continue;
    SPUD_TRY(binder.optional_vector(rope.factors_tensor, rope.dim / 2, factors));
    if (!std::ranges::all_of(factors, [](float f) { return f > 0; })) {
      return fail(ErrorCode::kInvalidArgument, "tensor '{}' has a factor that is not positive",
                  rope.factors_tensor);
    }
  }
  SPUD_TRY(weights.arena, binder.pack(pool, packed_folder));
  if (tied) weights.head = weights.embedding;
  return weights;
}

}  // namespace spud::model
