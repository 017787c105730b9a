// SPDX-License-Identifier: Apache-2.0
#include "compress/tensor_plan.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/check.hpp"
#include "quantize/quantize.hpp"

namespace spud::compress {
namespace {

using formats::ModelFile;
using formats::TensorInfo;
using tensor::DType;

constexpr std::uint64_t kBlock = 32;

// llama.cpp's numbers for `general.file_type`; a hint for people and tools, nothing depends on it.
std::optional<std::uint32_t> file_type_number(DType type) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kQ5_0:
      return 8;
    case DType::kQ5_1:
      return 9;
    case DType::kIQ4_NL:
      return 25;
    case DType::kBF16:
      return 32;
    default:
      return std::nullopt;
  }
}

// The type that holds most values.
DType commonest_type(const ModelFile& file, const TensorPlan& plan) {
  std::map<DType, std::uint64_t> values;
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    values[plan.choices[i].type] += file.tensors()[i].num_values();
  }
  const auto most =
      std::max_element(values.begin(), values.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == values.end() ? DType::kF32 : most->first;
}

// Rows of one tensor, read and written in pieces so that a large embedding never exists as floats.
class RowQuantiser {
 public:
  RowQuantiser(const QuantiseTensorArgs& args, std::span<std::byte> out)
      : args_(args),
        info_(args.file.tensors()[args.index]),
        in_(args.file.tensor_bytes(args.index)),
        out_(out),
        in_row_(in_.size() / info_.rows()),
        out_row_(out.size() / info_.rows()) {}

  void run(std::int64_t begin, std::int64_t end) {
    std::vector<float> values(info_.columns());
    for (std::int64_t row = begin; row < end && !failed_.load(); ++row) {
      if (auto done = convert(static_cast<std::size_t>(row), values); !done) {
        report(std::move(done).error(), row);
      }
    }
  }
  Result<void> result() && {
    if (error_) return fail_within(info_.name, std::move(*error_));
    return {};
  }

 private:
  Result<void> convert(std::size_t row, std::vector<float>& values) {
    SPUD_TRY(quantize::dequantize(info_.dtype, in_.subspan(row * in_row_, in_row_), values));
    return quantize::quantize_row(
        args_.choice.type, values,
        {.importance = args_.importance, .search_scale = args_.choice.search_scale},
        out_.subspan(row * out_row_, out_row_));
  }
  // The first bad row in file order, whatever thread met it, so that the message is stable.
  void report(Error error, std::int64_t row) {
    const std::scoped_lock lock(mutex_);
    if (error_ && row >= error_row_) return;
    error_row_ = row;
    error_ = std::move(error).within(fmt::format("row {}", row));
    failed_.store(true);
  }

  QuantiseTensorArgs args_;
  const TensorInfo& info_;
  std::span<const std::byte> in_;
  std::span<std::byte> out_;
  std::size_t in_row_;
  std::size_t out_row_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards the two below
  std::optional<Error> error_;
  std::int64_t error_row_ = 0;
};

Result<std::span<const float>> importance_for(const TensorInfo& tensor, const TensorChoice& choice,
                                              const Importance& importance) {
  if (!choice.use_importance) return std::span<const float>{};
  const auto found = importance.find(tensor.name);
  if (found == importance.end()) {
    return fail(ErrorCode::kDataLoss, "tensor '{}' was never seen in calibration", tensor.name);
  }
  if (found->second.size() != tensor.columns()) {
    return fail(ErrorCode::kDataLoss, "tensor '{}' has {} columns but {} importances", tensor.name,
                tensor.columns(), found->second.size());
  }
  return std::span<const float>(found->second);
}

}  // namespace

bool is_quantisable(const TensorInfo& tensor) noexcept {
  return tensor.shape.size() == 2 && tensor.columns() % kBlock == 0 && tensor.columns() > 0 &&
         tensor.name.ends_with(".weight") && tensor.name.find("norm") == std::string::npos;
}

bool is_embedding(const TensorInfo& tensor) noexcept {
  return tensor.name == "token_embd.weight" || tensor.name == "output.weight";
}

TensorPlan keep_plan(const ModelFile& file) {
  TensorPlan plan;
  for (const TensorInfo& tensor : file.tensors()) plan.choices.push_back({.type = tensor.dtype});
  return plan;
}

TensorPlan uniform_plan(const ModelFile& file, const TensorChoice& choice) {
  TensorPlan plan = keep_plan(file);
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    if (is_quantisable(file.tensors()[i])) plan.choices[i] = choice;
  }
  return plan;
}

std::uint64_t planned_bytes(const ModelFile& file, const TensorPlan& plan) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    total += tensor::bytes_for(plan.choices[i].type, file.tensors()[i].num_values()).value_or(0);
  }
  return total;
}

std::map<std::string, tensor::DType, std::less<>> planned_types(const ModelFile& file,
                                                                const TensorPlan& plan) {
  std::map<std::string, tensor::DType, std::less<>> types;
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    types[file.tensors()[i].name] = plan.choices[i].type;
  }
  return types;
}

Result<void> quantise_tensor(const QuantiseTensorArgs& args, concurrency::ThreadPool& pool,
                             std::span<std::byte> out) {
  const TensorInfo& info = args.file.tensors()[args.index];
  if (args.choice.type == info.dtype) {
    const auto bytes = args.file.tensor_bytes(args.index);
    SPUD_CHECK(bytes.size() == out.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return {};
  }
  if (info.num_values() == 0) return {};
  RowQuantiser rows(args, out);
  constexpr std::int64_t kRowsPerPiece = 16;
  pool.parallel_for(static_cast<std::int64_t>(info.rows()), kRowsPerPiece,
                    [&](std::int64_t begin, std::int64_t end) { rows.run(begin, end); });
  return std::move(rows).result();
}

Result<void> write_plan(const ModelFile& original, const TensorPlan& plan,
                        const Importance& importance, concurrency::ThreadPool& pool,
                        const std::filesystem::path& path) {
  SPUD_CHECK(plan.choices.size() == original.tensors().size());
  std::vector<formats::WriteTensor> tensors;
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    TensorInfo info = original.tensors()[i];
    const TensorChoice choice = plan.choices[i];
    SPUD_TRY(const auto weights, importance_for(info, choice, importance));
    info.dtype = choice.type;
    const auto bytes = tensor::bytes_for(choice.type, info.num_values());
    if (!bytes || info.columns() % tensor::traits(choice.type).block_values != 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "tensor '{}' has rows of {} values, which {} cannot hold", info.name,
                  info.columns(), tensor::to_string(choice.type));
    }
    info.size_bytes = *bytes;
    tensors.push_back({.info = std::move(info), .fill = [&, i, choice, weights](auto out) {
                         return quantise_tensor({original, i, choice, weights}, pool, out);
                       }});
  }
  formats::Metadata metadata = original.metadata();
  if (const auto number = file_type_number(commonest_type(original, plan))) {
    metadata.set("general.file_type", {*number});
  }
  return formats::write_gguf(path, metadata, tensors);
}

}  // namespace spud::compress
