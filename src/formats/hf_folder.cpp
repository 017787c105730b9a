// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_folder.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <system_error>
#include <unordered_set>

#include "formats/hf_json.hpp"
#include "formats/hf_load.hpp"
#include "formats/hf_names.hpp"
#include "formats/hf_permute.hpp"
#include "formats/safetensors.hpp"
#include "io/byte_reader.hpp"
#include "io/mapped_file.hpp"
#include "quantize/quantize.hpp"

namespace spud::formats {
namespace {

namespace fs = std::filesystem;
using io::printable;

constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::size_t kMaxShards = 1000;

class HfFolder final : public ModelFile {
 public:
  std::string_view format() const noexcept override { return "safetensors"; }
  const Metadata& metadata() const noexcept override { return loaded_metadata; }
  const std::vector<TensorInfo>& tensors() const noexcept override { return tensors_; }
  std::span<const std::byte> tensor_bytes(std::size_t index) const noexcept override {
    return data_[index];
  }
  std::uint64_t file_bytes() const noexcept override { return total_bytes; }

  void add(TensorInfo info, std::span<const std::byte> data) {
    tensors_.push_back(std::move(info));
    data_.push_back(data);
  }
  void add_owned(TensorInfo info, std::vector<std::byte> data) {
    owned_.push_back(std::move(data));  // the vector's own memory does not move with it
    add(std::move(info), owned_.back());
  }

  Metadata loaded_metadata;
  std::vector<io::MappedFile> files;
  std::uint64_t total_bytes = 0;
  std::unordered_set<std::string> names;  // while loading: tensors may come in any number

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<std::span<const std::byte>> data_;
  std::vector<std::vector<std::byte>> owned_;
};

// Which file holds which tensors; an empty set means all of the file's.
using Shards = std::map<std::string, std::vector<std::string>>;

Result<Shards> find_shards(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / kIndexFile, ignored)) return Shards{{std::string(kSingleFile), {}}};
  SPUD_TRY(const auto index, read_json_object(folder / kIndexFile, kMaxConfigBytes));
  const json::object* map = find_object(index, "weight_map");
  if (map == nullptr || map->empty()) {
    return fail(ErrorCode::kDataLoss, "{}: 'weight_map' is missing or empty", kIndexFile);
  }
  Shards shards;
  for (const auto& [name, value] : *map) {
    const json::string* file = value.if_string();
    const std::string_view text = file == nullptr ? std::string_view() : std_view(*file);
    // A plain name in this folder: no path may lead elsewhere.
    if (text.empty() || text.find('/') != std::string_view::npos || text.starts_with('.') ||
        text.find('\0') != std::string_view::npos) {
      return fail(ErrorCode::kDataLoss, "{}: '{}' is no plain file name", kIndexFile,
                  printable(text));
    }
    shards[std::string(text)].emplace_back(name.data(), name.size());
  }
  if (shards.size() > kMaxShards) {
    return fail(ErrorCode::kDataLoss, "{} names {} files, at most {} are read", kIndexFile,
                shards.size(), kMaxShards);
  }
  return shards;
}

Result<std::vector<std::byte>> as_f32_plus(const TensorInfo& info, std::span<const std::byte> data,
                                           float add) {
  std::vector<float> values(info.num_values());
  SPUD_TRY(quantize::dequantize(info.dtype, data, values));
  for (float& value : values) value += add;
  const auto bytes = std::as_bytes(std::span(values));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

// One tensor under its GGUF name, changed where the translation asks for it.
Result<void> add_tensor(HfFolder& model, TensorInfo info, std::span<const std::byte> data,
                        HfChange change) {
  const bool becomes_float = info.shape.size() == 1 && info.dtype != tensor::DType::kF32 &&
                             quantize::can_dequantize(info.dtype);
  if (change == HfChange::kAddOne || becomes_float) {
    SPUD_TRY(auto values, as_f32_plus(info, data, change == HfChange::kAddOne ? 1.0F : 0.0F));
    info.dtype = tensor::DType::kF32;
    info.size_bytes = values.size();
    if (change == HfChange::kPermuteQueries || change == HfChange::kPermuteKeys) {
      SPUD_TRY(auto permuted,
               permute_rows(model.loaded_metadata, info, values, change, RowOrder::kPairs));
      values = std::move(permuted);
    }
    model.add_owned(std::move(info), std::move(values));
    return {};
  }
  if (change == HfChange::kNone) {
    model.add(std::move(info), data);
    return {};
  }
  SPUD_TRY(auto permuted,
           permute_rows(model.loaded_metadata, info, data, change, RowOrder::kPairs));
  model.add_owned(std::move(info), std::move(permuted));
  return {};
}

Result<void> add_shard(HfFolder& model, const fs::path& path,
                       const std::vector<std::string>& wanted, bool tied) {
  SPUD_TRY(auto file, io::MappedFile::open(path));
  SPUD_TRY(const auto header, parse_safetensors(file.bytes()));
  std::size_t found = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (!wanted.empty() && !std::ranges::binary_search(wanted, entry.name)) continue;
    ++found;
    if (is_ignored_hf_tensor(entry.name)) continue;
    if (tied && entry.name == "lm_head.weight") continue;  // a copy of the embedding
    SPUD_TRY(auto info, to_tensor_info(entry));
    const auto name = hf_to_gguf_name(model.architecture(), entry.name);
    if (!name) {
      return fail(ErrorCode::kUnimplemented, "the tensor '{}' has no place in a {} model",
                  printable(entry.name), model.architecture());
    }
    info.name = name->name;
    if (!model.names.insert(info.name).second) {
      return fail(ErrorCode::kDataLoss, "the tensor '{}' occurs twice", printable(entry.name));
    }
    const auto data = file.bytes().subspan(entry.begin, entry.end - entry.begin);
    if (auto added = add_tensor(model, std::move(info), data, name->change); !added) {
      return fail_within(fmt::format("tensor '{}'", printable(entry.name)),
                         std::move(added).error());
    }
  }
  if (found < wanted.size()) {
    return fail(ErrorCode::kDataLoss, "only {} of the {} tensors that {} expects are there", found,
                wanted.size(), kIndexFile);
  }
  model.total_bytes += file.bytes().size();
  model.files.push_back(std::move(file));
  return {};
}

// Llama 3 stretches rope by a divisor per frequency; GGUF keeps the divisors in a tensor.
void add_llama3_rope(HfFolder& model, const json::object& config) {
  const json::object* scaling = find_object(config, "rope_scaling");
  if (scaling == nullptr) scaling = find_object(config, "rope_parameters");
  if (scaling == nullptr || find_text(*scaling, "rope_type") != "llama3") return;
  const std::string prefix = model.architecture() + ".";
  const double base = model.metadata().find_number(prefix + "rope.freq_base").value_or(10000.0);
  const auto dims = model.metadata().find_uint(prefix + "rope.dimension_count").value_or(0);
  const double factor = find_real(*scaling, "factor").value_or(8.0);
  const double low = find_real(*scaling, "low_freq_factor").value_or(1.0);
  const double high = find_real(*scaling, "high_freq_factor").value_or(4.0);
  const double trained = find_real(*scaling, "original_max_position_embeddings").value_or(8192.0);
  std::vector<float> divisors;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(dims, 4096) / 2; ++i) {
    const double length = 2 * std::numbers::pi *
                          std::pow(base, 2.0 * static_cast<double>(i) / static_cast<double>(dims));
    const double smooth = (trained / length - low) / (high - low);
    const double blended = 1 / ((1 - smooth) / factor + smooth);
    divisors.push_back(static_cast<float>(length < trained / high  ? 1.0
                                          : length > trained / low ? factor
                                                                   : blended));
  }
  if (divisors.empty()) return;
  const auto bytes = std::as_bytes(std::span(divisors));
  model.add_owned({"rope_freqs.weight", tensor::DType::kF32, {divisors.size()}, bytes.size()},
                  {bytes.begin(), bytes.end()});
}

Result<void> add_tensors(HfFolder& model, const fs::path& folder, const json::object& config) {
  SPUD_TRY(auto shards, find_shards(folder));
  const bool tied =
      find_flag(config, "tie_word_embeddings").value_or(model.architecture() == "gemma3");
  for (auto& [name, wanted] : shards) {
    std::ranges::sort(wanted);
    if (auto added = add_shard(model, folder / name, wanted, tied); !added) {
      return fail_within(fmt::format("'{}'", printable(name)), std::move(added).error());
    }
  }
  add_llama3_rope(model, config);
  return {};
}

}  // namespace

Result<void> read_hf_tokenizer(const fs::path& folder, const json::object& config,
                               std::uint64_t vocabulary, Metadata& metadata) {
  HfTokenizerFiles files;
  SPUD_TRY(files.tokenizer, read_json_object(folder / "tokenizer.json", kMaxTokenizerBytes));
  SPUD_TRY(files.config,
           read_json_object_if_there(folder / "tokenizer_config.json", kMaxConfigBytes));
  std::error_code ignored;
  if (fs::exists(folder / "chat_template.jinja", ignored)) {
    SPUD_TRY(const auto text, io::MappedFile::open(folder / "chat_template.jinja"));
    if (text.bytes().size() > kMaxConfigBytes) {
      return fail(ErrorCode::kDataLoss, "chat_template.jinja has {} bytes, more than {}",
                  text.bytes().size(), kMaxConfigBytes);
    }
    files.chat_template.assign(reinterpret_cast<const char*>(text.bytes().data()),
                               text.bytes().size());
  }
  return tokenizer_to_metadata(files, config, vocabulary, metadata);
}

Result<std::shared_ptr<const ModelFile>> open_hf_folder(const fs::path& folder) {
  const std::string place = fmt::format("'{}'", folder.string());
  std::error_code ignored;
  if (!fs::exists(folder / "config.json", ignored)) {
    return fail(ErrorCode::kInvalidArgument,
                "{} is a folder without config.json: not a Hugging Face model", place);
  }
  const auto open = [&]() -> Result<std::shared_ptr<const ModelFile>> {
    SPUD_TRY(const auto config, read_json_object(folder / "config.json", kMaxConfigBytes));
    auto model = std::make_shared<HfFolder>();
    SPUD_TRY(config_to_metadata(config, model->loaded_metadata));
    SPUD_TRY(add_tensors(*model, folder, config));
    // An empty tensor may claim any number of rows: what it takes in bytes bounds them.
    const TensorInfo* embedding = model->find_tensor("token_embd.weight");
    if (embedding == nullptr || embedding->rows() > embedding->size_bytes) {
      return fail(ErrorCode::kDataLoss,
                  "the tensor 'model.embed_tokens.weight' is missing or "
                  "empty");
    }
    SPUD_TRY(read_hf_tokenizer(folder, config, embedding->rows(), model->loaded_metadata));
    SPUD_TRY(apply_leftovers(config, model->loaded_metadata));
    return model;
  };
  auto model = open();
  if (!model) return fail_within(place, std::move(model).error());
  return model;
}

}  // namespace spud::formats
