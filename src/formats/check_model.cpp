// SPDX-License-Identifier: Apache-2.0
#include "formats/check_model.hpp"

#include <charconv>
#include <cmath>
#include <set>

#include "base/checked_math.hpp"
#include "io/byte_reader.hpp"

namespace spud::formats {
namespace {

using Problems = std::vector<std::string>;

template <typename... Args>
void add(Problems& problems, fmt::format_string<Args...> format, Args&&... args) {
  problems.push_back(fmt::format(format, std::forward<Args>(args)...));
}

// Metadata `{arch}.<key>`.
class ArchKeys {
 public:
  explicit ArchKeys(const ModelFile& file) : file_(file), prefix_(file.architecture() + ".") {}
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  bool has(std::string_view key) const { return file_.metadata().find(name(key)) != nullptr; }
  std::optional<std::uint64_t> number(std::string_view key) const {
    return file_.metadata().find_uint(name(key));
  }

 private:
  const ModelFile& file_;
  std::string prefix_;
};

void check_required(const ModelFile& file, const ArchKeys& keys, Problems& problems) {
  for (const auto key : {"block_count", "embedding_length", "context_length"}) {
    if (!keys.has(key)) {
      add(problems, "the metadata key '{}' is missing", io::printable(keys.name(key)));
    } else if (keys.number(key).value_or(0) == 0) {
      add(problems, "the metadata key '{}' must be a whole number above 0",
          io::printable(keys.name(key)));
    }
  }
  if (file.find_tensor("token_embd.weight") == nullptr) {
    add(problems, "the tensor 'token_embd.weight' is missing");
  }
}

// The N of "blk.N.…".
std::optional<std::uint64_t> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc{} || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

void check_layers(const ModelFile& file, const ArchKeys& keys, Problems& problems) {
  const auto count = keys.number("block_count");
  if (!count) return;
  std::set<std::uint64_t> present;
  for (const TensorInfo& info : file.tensors()) {
    if (const auto layer = layer_of(info.name)) present.insert(*layer);
  }
  std::uint64_t missing = 0;
  for (const std::uint64_t layer : present) missing += layer == missing ? 1 : 0;
  if (missing < *count) {
    add(problems, "{} says {} layers, but layer {} has no tensor", keys.name("block_count"), *count,
        missing);
  }
  if (!present.empty() && *present.rbegin() >= *count) {
    add(problems, "{} says {} layers, but there are tensors of layer {}", keys.name("block_count"),
        *count, *present.rbegin());
  }
}

void check_extent(const ModelFile& file, std::string_view tensor, std::size_t dimension,
                  std::uint64_t expected, std::string_view why, Problems& problems) {
  const TensorInfo* info = file.find_tensor(tensor);
  if (info == nullptr || dimension >= info->shape.size()) return;
  if (info->shape[dimension] == expected) return;
  add(problems, "the tensor '{}' has {} {}, but {} asks for {}", tensor, info->shape[dimension],
      dimension == 0 ? "columns" : "rows", why, expected);
}

void check_heads(const ModelFile& file, const ArchKeys& keys, Problems& problems) {
  const auto heads = keys.number("attention.head_count");
  const auto width = keys.number("embedding_length");
  if (!heads || !width) return;  // also a list per layer: model/ looks at those
  if (*heads == 0) return add(problems, "{} is 0", keys.name("attention.head_count"));
  const bool has_kv = keys.has("attention.head_count_kv");
  const auto kv_heads = has_kv ? keys.number("attention.head_count_kv") : heads;
  if (!kv_heads) return;
  if (*kv_heads == 0 || *heads % *kv_heads != 0) {
    return add(problems, "{} query heads cannot share {} key/value heads evenly", *heads,
               *kv_heads);
  }
  const auto key_length = keys.number("attention.key_length");
  if (!key_length && *width % *heads != 0) {
    return add(problems, "an embedding of {} cannot be split into {} heads", *width, *heads);
  }
  const std::uint64_t head = key_length.value_or(*width / *heads);
  const auto query_rows = checked_mul(*heads, head);
  const auto key_rows = checked_mul(*kv_heads, head);
  if (!query_rows || !key_rows) return add(problems, "heads of {} values overflow", head);
  check_extent(file, "blk.0.attn_q.weight", 1, *query_rows, "heads times head length", problems);
  check_extent(file, "blk.0.attn_k.weight", 1, *key_rows, "key heads times head length", problems);
}

void check_widths(const ModelFile& file, const ArchKeys& keys, Problems& problems) {
  if (const auto width = keys.number("embedding_length")) {
    const std::string why = keys.name("embedding_length");
    check_extent(file, "token_embd.weight", 0, *width, why, problems);
    check_extent(file, "output.weight", 0, *width, why, problems);
    check_extent(file, "output_norm.weight", 0, *width, why, problems);
    check_extent(file, "blk.0.attn_q.weight", 0, *width, why, problems);
  }
  if (const auto width = keys.number("feed_forward_length")) {
    const std::string why = keys.name("feed_forward_length");
    check_extent(file, "blk.0.ffn_up.weight", 1, *width, why, problems);
    check_extent(file, "blk.0.ffn_down.weight", 0, *width, why, problems);
  }
}

// Lists with one entry per token must be as long as the list of tokens.
void check_token_lists(const Metadata& metadata, std::uint64_t num_tokens, Problems& problems) {
  const auto check = [&](std::string_view key, const auto* list) {
    if (list != nullptr && list->size() != num_tokens) {
      add(problems, "{} has {} entries for {} tokens", key, list->size(), num_tokens);
    }
  };
  check("tokenizer.ggml.scores", metadata.find_floats("tokenizer.ggml.scores"));
  check("tokenizer.ggml.token_type", metadata.find_ints("tokenizer.ggml.token_type"));
  for (const Metadata::Entry& entry : metadata.entries()) {
    if (!entry.key.starts_with("tokenizer.ggml.") || !entry.key.ends_with("_token_id")) continue;
    const auto id = metadata.find_uint(entry.key);
    // -1 (as u32 or i32) means "none" in files of old converters.
    const bool none = id == 0xFFFFFFFFU || metadata.find_int(entry.key) == -1;
    if (!none && (!id || *id >= num_tokens)) {
      add(problems, "{} is not one of the {} tokens", io::printable(entry.key), num_tokens);
    }
  }
}

void check_tokenizer(const ModelFile& file, Problems& problems) {
  const Metadata& metadata = file.metadata();
  const std::string* kind = metadata.find_string("tokenizer.ggml.model");
  if (kind == nullptr || *kind == "none" || *kind == "no_vocab") return;
  const auto* tokens = metadata.find_strings("tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->empty()) {
    return add(problems, "tokenizer.ggml.tokens is missing or empty");
  }
  if (const TensorInfo* embedding = file.find_tensor("token_embd.weight");
      embedding != nullptr && embedding->rows() != tokens->size()) {
    add(problems, "the vocabulary has {} tokens, but 'token_embd.weight' has {} rows",
        tokens->size(), embedding->rows());
  }
  if (const TensorInfo* output = file.find_tensor("output.weight");
      output != nullptr && output->rows() != tokens->size()) {
    add(problems, "the vocabulary has {} tokens, but 'output.weight' has {} rows", tokens->size(),
        output->rows());
  }
  if (*kind == "gpt2" && metadata.find_strings("tokenizer.ggml.merges") == nullptr) {
    add(problems, "a tokenizer of kind 'gpt2' needs tokenizer.ggml.merges, which is missing");
  }
  if (*kind == "llama" && metadata.find_floats("tokenizer.ggml.scores") == nullptr) {
    add(problems, "a tokenizer of kind 'llama' needs tokenizer.ggml.scores, which is missing");
  }
  check_token_lists(metadata, tokens->size(), problems);
}

// Hyper-parameters that are not numbers poison everything computed from them.
void check_finite(const ModelFile& file, const ArchKeys& keys, Problems& problems) {
  for (const Metadata::Entry& entry : file.metadata().entries()) {
    if (!entry.key.starts_with(keys.name(""))) continue;
    const auto value = file.metadata().find_number(entry.key);
    if (value && !std::isfinite(*value)) {
      add(problems, "{} is {}", io::printable(entry.key), *value);
    }
  }
}

}  // namespace

std::vector<std::string> check_model(const ModelFile& file) {
  Problems problems;
  if (file.tensors().empty()) add(problems, "the file holds no tensors");
  if (file.architecture().empty()) {
    add(problems,
        "the file does not name an architecture (general.architecture): it is not a "
        "whole model");
    return problems;
  }
  const ArchKeys keys(file);
  check_required(file, keys, problems);
  check_layers(file, keys, problems);
  check_heads(file, keys, problems);
  check_widths(file, keys, problems);
  check_tokenizer(file, problems);
  check_finite(file, keys, problems);
  return problems;
}

Result<void> require_sound_model(const ModelFile& file) {
  const auto problems = check_model(file);
  if (problems.empty()) return {};
  if (problems.size() == 1) return fail(ErrorCode::kDataLoss, "{}", problems[0]);
  return fail(ErrorCode::kDataLoss, "{} (and {} more problems: see 'spud inspect')", problems[0],
              problems.size() - 1);
}

}  // namespace spud::formats
