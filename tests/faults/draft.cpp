// SPDX-License-Identifier: Apache-2.0
#include "draft.hpp"

#include <cstring>

#include "base/check.hpp"

namespace spud::compress::testing {
namespace {

Result<Draft> take_apart(const std::filesystem::path& path) {
  SPUD_TRY(const auto file, formats::ModelFile::open(path));
  Draft draft{.metadata = file->metadata(), .tensors = {}};
  for (std::size_t i = 0; i < file->tensors().size(); ++i) {
    const auto bytes = file->tensor_bytes(i);
    draft.tensors.push_back({file->tensors()[i], {bytes.begin(), bytes.end()}});
  }
  return draft;
}

Result<void> put_together(Draft& draft, const std::filesystem::path& path) {
  std::vector<formats::WriteTensor> tensors;
  for (DraftTensor& tensor : draft.tensors) {
    tensor.info.size_bytes = tensor.bytes.size();
    tensors.push_back({.info = tensor.info, .fill = [&tensor](auto out) {
                         std::memcpy(out.data(), tensor.bytes.data(), out.size());
                         return Result<void>{};
                       }});
  }
  return formats::write_gguf(path, draft.metadata, tensors);
}

Result<PassOutput> run_with_type(const PassContext& context, const std::filesystem::path& out,
                                 tensor::DType type, const std::function<void(Draft&)>& damage) {
  TensorPlan plan = uniform_plan(context.original, {.type = type});
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    if (is_embedding(context.original.tensors()[i])) plan.choices[i].type = tensor::DType::kQ8_0;
  }
  SPUD_TRY(PassOutput output, run_plan(context, plan, out));
  SPUD_TRY(Draft draft, take_apart(out));
  damage(draft);
  SPUD_TRY(put_together(draft, out));
  return output;
}

}  // namespace

DraftTensor& Draft::tensor(std::string_view name) {
  for (DraftTensor& tensor : tensors) {
    if (tensor.info.name == name) return tensor;
  }
  SPUD_CHECK(false);
}

Result<PassOutput> run_damaged(const PassContext& context, const std::filesystem::path& out,
                               const std::function<void(Draft&)>& damage) {
  return run_with_type(context, out, tensor::DType::kQ4_0, damage);
}

Result<PassOutput> run_damaged_affine(const PassContext& context, const std::filesystem::path& out,
                                      const std::function<void(Draft&)>& damage) {
  return run_with_type(context, out, tensor::DType::kQ4_1, damage);
}

}  // namespace spud::compress::testing
