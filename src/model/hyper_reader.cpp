// SPDX-License-Identifier: Apache-2.0
#include "model/hyper_reader.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace spud::model {
namespace {

// Far beyond any published model, small enough that no product of two of them wraps.
constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxContext = 1 << 24;
constexpr std::int64_t kMaxVocabulary = 1 << 24;
// Limits of the kernels (kernel_table.hpp): heads of whole vectors, activations in blocks of 32.
constexpr std::int64_t kMaxHeadDim = 256;
constexpr std::int64_t kHeadDimStep = 16;
constexpr std::int64_t kWidthStep = 32;

Result<void> check_width(std::string_view what, std::int64_t value) {
  if (value % kWidthStep == 0) return {};
  return fail(ErrorCode::kUnimplemented, "{} is {}; only multiples of {} are supported", what,
              value, kWidthStep);
}

Result<void> read_head_dim(const HyperReader& reader, HyperParameters& hyper) {
  if (reader.has("attention.key_length")) {
    SPUD_TRY(hyper.head_dim, reader.count("attention.key_length", kMaxWidth));
  } else if (hyper.hidden % hyper.num_heads != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is {}, which {} heads do not divide, and '{}' is missing",
                reader.full_key("embedding_length"), hyper.hidden, hyper.num_heads,
                reader.full_key("attention.key_length"));
  } else {
    hyper.head_dim = hyper.hidden / hyper.num_heads;
  }
  SPUD_TRY(const std::int64_t value_dim,
           reader.count_or("attention.value_length", kMaxWidth, hyper.head_dim));
  if (value_dim != hyper.head_dim) {
    return fail(ErrorCode::kUnimplemented,
                "keys of {} and values of {} per head: only equal lengths are supported",
                hyper.head_dim, value_dim);
  }
  if (hyper.head_dim > kMaxHeadDim || hyper.head_dim % kHeadDimStep != 0) {
    return fail(ErrorCode::kUnimplemented,
                "heads of {} values: only multiples of {} up to {} are supported", hyper.head_dim,
                kHeadDimStep, kMaxHeadDim);
  }
  return {};
}

Result<void> read_heads(const HyperReader& reader, HyperParameters& hyper) {
  SPUD_TRY(hyper.num_heads, reader.count("attention.head_count", kMaxHeads));
  SPUD_TRY(hyper.num_kv_heads,
           reader.count_or("attention.head_count_kv", kMaxHeads, hyper.num_heads));
  if (hyper.num_heads % hyper.num_kv_heads != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "{} query heads cannot share {} key/value heads evenly ('{}', '{}')",
                hyper.num_heads, hyper.num_kv_heads, reader.full_key("attention.head_count"),
                reader.full_key("attention.head_count_kv"));
  }
  return read_head_dim(reader, hyper);
}

Result<void> read_vocabulary(const HyperReader& reader, HyperParameters& hyper) {
  const formats::TensorInfo* embedding = reader.file().find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "tensor 'token_embd.weight' is missing");
  }
  const std::uint64_t rows = embedding->rows();
  if (rows < 1 || rows > static_cast<std::uint64_t>(kMaxVocabulary)) {
    return fail(ErrorCode::kInvalidArgument,
                "tensor 'token_embd.weight' has {} rows; a vocabulary has 1 to {}", rows,
                kMaxVocabulary);
  }
  hyper.vocabulary = static_cast<std::int64_t>(rows);
  return {};
}

Result<RopeSpec> read_rope(const HyperReader& reader, const HyperParameters& hyper,
                           bool interleaved) {
  RopeSpec rope{.interleaved = interleaved, .factors_tensor = "rope_freqs.weight"};
  SPUD_TRY(rope.base, reader.positive_or("rope.freq_base", 10000.0));
  SPUD_TRY(rope.dim, reader.count_or("rope.dimension_count", kMaxHeadDim, hyper.head_dim));
  if (rope.dim > hyper.head_dim || rope.dim % 2 != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is {}; it must be even and at most the head's {} values",
                reader.full_key("rope.dimension_count"), rope.dim, hyper.head_dim);
  }
  const std::string type_key = reader.full_key("rope.scaling.type");
  const std::string* type = reader.file().metadata().find_string(type_key);
  if (type != nullptr && *type != "none" && *type != "linear") {
    return fail(ErrorCode::kUnimplemented,
                "rope scaling '{}' ('{}') is not supported; none, linear and the frequency factors "
                "of Llama 3 are",
                *type, type_key);
  }
  // Files without a type but with a factor mean linear scaling; the second key is the old name.
  if (type == nullptr || *type == "linear") {
    SPUD_TRY(const double old_factor, reader.optional_positive("rope.scale_linear"));
    SPUD_TRY(const double factor, reader.optional_positive("rope.scaling.factor"));
    const double divisor = factor > 0 ? factor : old_factor;
    if (divisor > 0) rope.position_scale = 1 / divisor;
  }
  return rope;
}

Result<void> refuse_experts(const HyperReader& reader) {
  const auto experts = reader.file().metadata().find_uint(reader.full_key("expert_count"));
  if (!experts || *experts == 0) return {};
  return fail(ErrorCode::kUnimplemented,
              "a mixture of {} experts ('{}'): only dense models are "
              "supported",
              *experts, reader.full_key("expert_count"));
}

}  // namespace

HyperReader::HyperReader(const formats::ModelFile& file)
    : file_(&file), prefix_(file.architecture() + ".") {}

std::string HyperReader::full_key(std::string_view key) const { return prefix_ + std::string(key); }

bool HyperReader::has(std::string_view key) const noexcept {
  return file_->metadata().find(full_key(key)) != nullptr;
}

Result<std::int64_t> HyperReader::count(std::string_view key, std::int64_t limit) const {
  const std::string name = full_key(key);
  const formats::Metadata& metadata = file_->metadata();
  if (metadata.find(name) == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "metadata '{}' is missing", name);
  }
  std::optional<std::int64_t> value = metadata.find_int(name);
  if (const auto* values = metadata.find_ints(name); values != nullptr && !values->empty()) {
    if (!std::ranges::all_of(*values, [&](std::int32_t v) { return v == values->front(); })) {
      return fail(ErrorCode::kUnimplemented,
                  "'{}' differs between layers; only equal layers are supported", name);
    }
    value = values->front();
  }
  if (!value) {
    return fail(ErrorCode::kInvalidArgument, "metadata '{}' is not a whole number", name);
  }
  if (*value < 1 || *value > limit) {
    return fail(ErrorCode::kInvalidArgument, "metadata '{}' is {}; it must be between 1 and {}",
                name, *value, limit);
  }
  return *value;
}

Result<std::int64_t> HyperReader::count_or(std::string_view key, std::int64_t limit,
                                           std::int64_t fallback) const {
  if (!has(key)) return fallback;
  return count(key, limit);
}

Result<double> HyperReader::positive(std::string_view key) const {
  const std::string name = full_key(key);
  const std::optional<double> value = file_->metadata().find_number(name);
  if (!value) {
    return fail(ErrorCode::kInvalidArgument, "metadata '{}' is {}", name,
                has(key) ? "not a number" : "missing");
  }
  if (!std::isfinite(*value) || *value <= 0) {
    return fail(ErrorCode::kInvalidArgument, "metadata '{}' is {}; it must be more than zero", name,
                *value);
  }
  return *value;
}

Result<double> HyperReader::positive_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  return positive(key);
}

Result<double> HyperReader::optional_positive(std::string_view key) const {
  if (!has(key)) return 0.0;
  if (const auto value = file_->metadata().find_number(full_key(key)); value && *value == 0) {
    return 0.0;
  }
  return positive(key);
}

Result<DecoderSpec> describe_common(const HyperReader& reader, bool interleaved) {
  SPUD_TRY(refuse_experts(reader));
  DecoderSpec spec;
  HyperParameters& hyper = spec.hyper;
  hyper.architecture = reader.file().architecture();
  SPUD_TRY(hyper.num_layers, reader.count("block_count", kMaxLayers));
  SPUD_TRY(hyper.hidden, reader.count("embedding_length", kMaxWidth));
  SPUD_TRY(hyper.ffn, reader.count("feed_forward_length", kMaxWidth));
  SPUD_TRY(hyper.context_length, reader.count("context_length", kMaxContext));
  SPUD_TRY(read_heads(reader, hyper));
  SPUD_TRY(read_vocabulary(reader, hyper));
  SPUD_TRY(const double epsilon, reader.positive("attention.layer_norm_rms_epsilon"));
  hyper.rms_epsilon = static_cast<float>(epsilon);
  SPUD_TRY(check_width("the embedding width", hyper.hidden));
  SPUD_TRY(check_width("the feed-forward width", hyper.ffn));
  SPUD_TRY(check_width("the width of all query heads", hyper.num_heads * hyper.head_dim));
  SPUD_TRY(RopeSpec rope, read_rope(reader, hyper, interleaved));
  hyper.rope_base = static_cast<float>(rope.base);
  spec.ropes.push_back(std::move(rope));
  spec.layers.assign(static_cast<std::size_t>(hyper.num_layers), LayerSpec{});
  spec.attention_scale = 1 / std::sqrt(static_cast<float>(hyper.head_dim));
  return spec;
}

}  // namespace spud::model
