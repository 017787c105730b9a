// SPDX-License-Identifier: Apache-2.0
#include "compress/passes/fp16.hpp"

#include <atomic>
#include <cmath>

#include "quantize/quantize.hpp"

namespace spud::compress::fp16 {
namespace {

using tensor::DType;

constexpr float kLargestF16 = 65504.0F;

bool needs_sixteen_bits(const formats::TensorInfo& tensor) {
  return is_quantisable(tensor) && tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16;
}

// Whether any value rounds to infinity in F16. Not-a-number does not count here: the writer
// refuses it and names the place.
Result<bool> overflows_f16(const formats::ModelFile& file, std::size_t index,
                           concurrency::ThreadPool& pool) {
  const formats::TensorInfo& info = file.tensors()[index];
  const auto bytes = file.tensor_bytes(index);
  const std::size_t row_bytes = bytes.size() / info.rows();
  std::atomic<bool> overflow{false};
  std::atomic<bool> failed{false};
  pool.parallel_for(
      static_cast<std::int64_t>(info.rows()), 64, [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> values(info.columns());
        for (std::int64_t row = begin; row < end && !overflow.load(); ++row) {
          const auto blocks = bytes.subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes);
          if (!quantize::dequantize(info.dtype, blocks, values)) failed.store(true);
          for (const float value : values) {
            if (std::fabs(value) > kLargestF16) overflow.store(true);
          }
        }
      });
  if (failed.load()) {
    return fail(ErrorCode::kUnimplemented, "tensor '{}' of type {} cannot be read as numbers",
                info.name, tensor::to_string(info.dtype));
  }
  return overflow.load();
}

}  // namespace

Result<TensorPlan> sixteen_bit_plan(const formats::ModelFile& file, concurrency::ThreadPool& pool) {
  TensorPlan plan = keep_plan(file);
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    if (!needs_sixteen_bits(file.tensors()[i])) continue;
    SPUD_TRY(const bool overflow, overflows_f16(file, i, pool));
    plan.choices[i].type = overflow ? DType::kBF16 : DType::kF16;
  }
  return plan;
}

std::string skip_reason(const formats::ModelFile& accepted) {
  for (const formats::TensorInfo& tensor : accepted.tensors()) {
    if (needs_sixteen_bits(tensor)) return {};
  }
  return "all weight matrices are 16-bit already";
}

Result<PassOutput> run(const PassContext& context, const std::filesystem::path& out) {
  SPUD_TRY(const TensorPlan plan, sixteen_bit_plan(context.original, context.pool));
  return run_plan(context, plan, out);
}

}  // namespace spud::compress::fp16
