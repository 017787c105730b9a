// SPDX-License-Identifier: Apache-2.0
// A model file with some tensors exchanged for bytes in memory: what a model would be like with
// them, without writing it. Shares the rest with the file under it. Only for asking questions; a
// candidate is always a real file.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "formats/model_file.hpp"

namespace spud::compress {

struct OverlayTensor {
  tensor::DType type{};
  std::shared_ptr<const std::vector<std::byte>> bytes;  // shared by overlays that have it in common
};

// Immutable; thread-safe for reading.
class OverlayFile final : public formats::ModelFile {
 public:
  OverlayFile(std::shared_ptr<const formats::ModelFile> under,
              std::map<std::size_t, OverlayTensor> replaced)
      : under_(std::move(under)), replaced_(std::move(replaced)), tensors_(under_->tensors()) {
    for (const auto& [index, tensor] : replaced_) {
      tensors_.at(index).dtype = tensor.type;
      tensors_.at(index).size_bytes = tensor.bytes->size();
    }
  }
  std::string_view format() const noexcept override { return under_->format(); }
  const formats::Metadata& metadata() const noexcept override { return under_->metadata(); }
  const std::vector<formats::TensorInfo>& tensors() const noexcept override { return tensors_; }
  std::span<const std::byte> tensor_bytes(std::size_t index) const noexcept override {
    const auto found = replaced_.find(index);
    return found == replaced_.end() ? under_->tensor_bytes(index)
                                    : std::span<const std::byte>(*found->second.bytes);
  }
  std::uint64_t file_bytes() const noexcept override { return under_->file_bytes(); }

 private:
  std::shared_ptr<const formats::ModelFile> under_;
  std::map<std::size_t, OverlayTensor> replaced_;
  std::vector<formats::TensorInfo> tensors_;
};

}  // namespace spud::compress
