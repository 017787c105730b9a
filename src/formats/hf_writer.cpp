// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>

#include "base/json_text.hpp"
#include "formats/hf_folder.hpp"
#include "formats/hf_json.hpp"
#include "formats/hf_load.hpp"
#include "formats/hf_names.hpp"
#include "formats/hf_permute.hpp"
#include "formats/safetensors.hpp"
#include "io/atomic_file.hpp"
#include "io/byte_reader.hpp"
#include "quantize/quantize.hpp"

namespace spud::formats {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

bool is_plain(DType type) { return !tensor::traits(type).quantised; }

// Values of one tensor in the type it is written as.
Result<void> convert(const ModelFile& file, const TensorInfo& source, const TensorInfo& target,
                     HfChange change, std::span<std::byte> out) {
  const auto index = *file.find_tensor_index(source.name);
  std::vector<std::byte> bytes;
  if (source.dtype == target.dtype && change != HfChange::kAddOne) {
    const auto stored = file.tensor_bytes(index);
    bytes.assign(stored.begin(), stored.end());
  } else {
    SPUD_TRY(auto values, read_floats(file, source.name));
    if (change == HfChange::kAddOne) {
      for (float& value : values) value -= 1.0F;
    }
    bytes.resize(target.size_bytes);
    SPUD_TRY(quantize::quantize_row(target.dtype, values, {}, bytes));
  }
  if (change == HfChange::kPermuteQueries || change == HfChange::kPermuteKeys) {
    SPUD_TRY(auto permuted,
             permute_rows(file.metadata(), target, bytes, change, RowOrder::kHalves));
    bytes = std::move(permuted);
  }
  std::ranges::copy(bytes, out.begin());
  return {};
}

Result<DType> written_type(const ModelFile& file, const TensorInfo& info, DType quantised_as) {
  if (is_plain(info.dtype)) return info.dtype;
  if (quantised_as != DType::kF16) return quantised_as;
  SPUD_TRY(const auto values, read_floats(file, info.name));
  const bool fits =
      std::ranges::all_of(values, [](float value) { return std::fabs(value) <= 65504.0F; });
  return fits ? DType::kF16 : DType::kBF16;
}

Result<std::vector<WriteTensor>> plan_tensors(const ModelFile& file,
                                              const HfWriteOptions& options) {
  std::vector<WriteTensor> plan;
  for (const TensorInfo& info : file.tensors()) {
    const auto name = gguf_to_hf_name(file.architecture(), info.name);
    if (!name) {
      return fail(ErrorCode::kUnimplemented,
                  "the tensor '{}' has no place in a Hugging Face folder of a {} model",
                  io::printable(info.name), io::printable(file.architecture()));
    }
    TensorInfo target = info;
    target.name = name->name;
    SPUD_TRY(target.dtype, written_type(file, info, options.quantised_as));
    target.size_bytes = *tensor::bytes_for(target.dtype, target.num_values());
    plan.push_back(
        {target, [&file, &info, target, change = name->change](std::span<std::byte> out) {
           return convert(file, info, target, change, out);
         }});
  }
  return plan;
}

// Tensors one after another until a shard is full. At least one per shard.
std::vector<std::span<const WriteTensor>> split_into_shards(std::span<const WriteTensor> tensors,
                                                            std::uint64_t limit) {
  std::vector<std::span<const WriteTensor>> shards;
  std::size_t begin = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t size = tensors[i].info.size_bytes;
    if (i > begin && (size > limit || bytes > limit - size)) {
      shards.push_back(tensors.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += size;
  }
  shards.push_back(tensors.subspan(begin));
  return shards;
}

Result<void> write_json(const fs::path& path, const json::value& value) {
  return io::write_file_atomically(path, pretty_json(value));
}

Result<void> write_weights(const fs::path& folder, std::span<const WriteTensor> tensors,
                           std::uint64_t limit) {
  const auto shards = split_into_shards(tensors, limit);
  if (shards.size() == 1) return write_safetensors(folder / "model.safetensors", tensors);
  json::object map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    SPUD_TRY(write_safetensors(folder / name, shards[i]));
    for (const WriteTensor& tensor : shards[i]) {
      map[json_view(tensor.info.name)] = json_view(name);
      total += tensor.info.size_bytes;
    }
  }
  return write_json(folder / "model.safetensors.index.json",
                    json::object{{"metadata", json::object{{"total_size", total}}},
                                 {"weight_map", std::move(map)}});
}

// config.json last: it carries what the other files, read back, turn out not to say.
Result<void> write_descriptions(const fs::path& folder, const ModelFile& file) {
  const bool tied = file.find_tensor("output.weight") == nullptr;
  SPUD_TRY(auto config, metadata_to_config(file.metadata(), tied));
  SPUD_TRY(const auto files, metadata_to_tokenizer(file.metadata()));
  SPUD_TRY(write_json(folder / "tokenizer.json", files.tokenizer));
  SPUD_TRY(write_json(folder / "tokenizer_config.json", files.config));

  const TensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    return fail(ErrorCode::kDataLoss, "the tensor 'token_embd.weight' is missing");
  }
  Metadata rebuilt;
  SPUD_TRY(config_to_metadata(config, rebuilt));
  SPUD_TRY(read_hf_tokenizer(folder, config, embedding->rows(), rebuilt));
  for (auto& [key, value] : leftovers(file.metadata(), rebuilt)) config[key] = std::move(value);
  return write_json(folder / "config.json", config);
}

}  // namespace

Result<void> write_hf_folder(const fs::path& folder, const ModelFile& file,
                             const HfWriteOptions& options) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' exists and is not empty: choose a folder that does not exist",
                folder.string());
  }
  if (is_plain(options.quantised_as) && !quantize::can_quantize(options.quantised_as)) {
    return fail(ErrorCode::kInvalidArgument, "tensors cannot be written as {}",
                tensor::to_string(options.quantised_as));
  }
  SPUD_TRY(const auto tensors, plan_tensors(file, options));
  const fs::path temporary = fs::path(folder.string() + fmt::format(".spud-tmp-{}", ::getpid()));
  fs::remove_all(temporary, error);
  if (!fs::create_directories(temporary, error)) {
    return fail(ErrorCode::kInvalidArgument, "cannot write '{}': {}", folder.string(),
                error.message());
  }
  auto written = write_descriptions(temporary, file);
  if (written) written = write_weights(temporary, tensors, options.max_shard_bytes);
  if (written) {
    fs::rename(temporary, folder, error);
    if (!error) return {};
    written = fail(ErrorCode::kInvalidArgument, "cannot replace '{}': {}", folder.string(),
                   error.message());
  }
  fs::remove_all(temporary, error);
  return fail_within(fmt::format("write '{}'", folder.string()), std::move(written).error());
}

}  // namespace spud::formats
