// SPDX-License-Identifier: Apache-2.0
// make_random_model OUT --tokenizer-from MODEL.gguf: writes a llama-shaped model with random
// weights, for measuring speed at sizes of which no real model is at hand. It talks nonsense, but
// every GGUF reader loads it and its arithmetic is that of a trained one: weights are scaled so
// that activations neither vanish nor explode. The tokenizer is another model's, cut to the
// vocabulary that was asked for.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "formats/model_file.hpp"
#include "quantize/quantize.hpp"

namespace {

using spud::ErrorCode;
using spud::fail;
using spud::Result;
namespace formats = spud::formats;
namespace quantize = spud::quantize;
namespace tensor = spud::tensor;

struct Shape {
  std::int64_t layers = 22;
  std::int64_t width = 2048;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 4;
  std::int64_t ffn = 5632;
  std::int64_t vocabulary = 32000;
  std::int64_t context = 4096;

  std::int64_t kv_width() const { return width / heads * kv_heads; }
};
// The names are the usual count of parameters; 1.1b is TinyLlama's shape.
const std::map<std::string, Shape> kShapes = {
    {"1.1b", {}},
    {"360m", {.layers = 32, .width = 960, .heads = 15, .kv_heads = 5, .ffn = 2560}},
    {"tiny", {.layers = 2, .width = 256, .heads = 4, .kv_heads = 2, .ffn = 512}},
};

struct Arguments {
  std::string out;
  std::string tokenizer_from;
  std::string shape = "1.1b";
  std::string type = "q4_0";
  std::uint64_t seed = 1;
};

// SplitMix64 (Steele et al. 2014); four bytes of each number are one value.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  void fill(std::span<float> values, float spread) {
    const float scale = spread / 32768.0F;
    for (std::size_t i = 0; i < values.size(); i += 4) {
      std::uint64_t word = next();
      for (std::size_t j = i; j < std::min(values.size(), i + 4); ++j, word >>= 16) {
        values[j] = scale * static_cast<float>(static_cast<std::int16_t>(word & 0xffff));
      }
    }
  }

 private:
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

Result<tensor::DType> parse_type(const std::string& name) {
  for (const auto type : {tensor::DType::kQ4_0, tensor::DType::kQ8_0, tensor::DType::kQ4_1,
                          tensor::DType::kQ5_0, tensor::DType::kF16}) {
    std::string known(tensor::to_string(type));
    for (char& c : known) c = static_cast<char>(std::tolower(c));
    if (known == name) return type;
  }
  return fail(ErrorCode::kInvalidArgument, "type '{}' is not one of q4_0, q4_1, q5_0, q8_0 and f16",
              name);
}

class ModelWriter {
 public:
  ModelWriter(const Shape& shape, tensor::DType type, std::uint64_t seed)
      : shape_(shape), type_(type), seed_(seed) {}

  Result<void> write(const std::string& path, const formats::Metadata& metadata) {
    const Shape& s = shape_;
    // The head of a 4-bit model is kept at 8 bits by the usual tools.
    const tensor::DType head = type_ == tensor::DType::kF16 ? type_ : tensor::DType::kQ8_0;
    SPUD_TRY(add("token_embd", s.vocabulary, s.width, type_));
    SPUD_TRY(add("output", s.vocabulary, s.width, head));
    SPUD_TRY(add_norm("output_norm"));
    for (std::int64_t i = 0; i < s.layers; ++i) {
      const std::string layer = fmt::format("blk.{}.", i);
      SPUD_TRY(add_norm(layer + "attn_norm"));
      SPUD_TRY(add(layer + "attn_q", s.width, s.width, type_));
      SPUD_TRY(add(layer + "attn_k", s.kv_width(), s.width, type_));
      SPUD_TRY(add(layer + "attn_v", s.kv_width(), s.width, type_));
      SPUD_TRY(add(layer + "attn_output", s.width, s.width, type_));
      SPUD_TRY(add_norm(layer + "ffn_norm"));
      SPUD_TRY(add(layer + "ffn_gate", s.ffn, s.width, type_));
      SPUD_TRY(add(layer + "ffn_up", s.ffn, s.width, type_));
      SPUD_TRY(add(layer + "ffn_down", s.width, s.ffn, type_));
    }
    return formats::write_gguf(path, metadata, tensors_);
  }

 private:
  Result<void> push(std::string name, std::vector<std::uint64_t> shape, tensor::DType type,
                    std::function<Result<void>(std::span<std::byte>)> fill) {
    formats::TensorInfo info{.name = name + ".weight", .dtype = type, .shape = std::move(shape)};
    const auto bytes = tensor::bytes_for(type, info.num_values());
    if (!bytes) {
      return fail(ErrorCode::kInvalidArgument, "rows of '{}' are not whole blocks of {}", name,
                  tensor::to_string(type));
    }
    info.size_bytes = *bytes;
    tensors_.push_back({std::move(info), std::move(fill)});
    return {};
  }

  Result<void> add_norm(const std::string& name) {
    const auto width = static_cast<std::uint64_t>(shape_.width);
    return push(name, {width}, tensor::DType::kF32, [](std::span<std::byte> out) -> Result<void> {
      const float one = 1;
      for (std::size_t i = 0; i < out.size(); i += sizeof one) {
        std::memcpy(out.data() + i, &one, sizeof one);
      }
      return {};
    });
  }

  Result<void> add(const std::string& name, std::int64_t rows, std::int64_t columns,
                   tensor::DType type) {
    const std::uint64_t seed = seed_ += 0x9E3779B9U;
    // Uniform in [-a, a] has the deviation a / sqrt(3): with this a, rows keep their length.
    const float spread = std::sqrt(3.0F / static_cast<float>(columns));
    auto fill = [=](std::span<std::byte> out) -> Result<void> {
      Random random(seed);
      std::vector<float> row(static_cast<std::size_t>(columns));
      const std::size_t row_bytes = out.size() / static_cast<std::size_t>(rows);
      for (std::size_t at = 0; at < out.size(); at += row_bytes) {
        random.fill(row, spread);
        SPUD_TRY(quantize::quantize_row(type, row, {}, out.subspan(at, row_bytes)));
      }
      return {};
    };
    return push(name, {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)}, type,
                std::move(fill));
  }

  const Shape& shape_;
  tensor::DType type_;
  std::uint64_t seed_;
  std::vector<formats::WriteTensor> tensors_;
};

formats::MetadataValue number(std::int64_t value) { return {static_cast<std::uint32_t>(value)}; }

// Byte-pair vocabularies hold their merges in the order they were learnt, so the first part of one
// is a vocabulary by itself once merges into what was cut off are gone.
Result<void> cut_vocabulary(std::int64_t size, formats::Metadata& metadata) {
  const auto* tokens = metadata.find_strings("tokenizer.ggml.tokens");
  const auto* types = metadata.find_ints("tokenizer.ggml.token_type");
  if (tokens == nullptr || types == nullptr || tokens->size() != types->size()) {
    return fail(ErrorCode::kInvalidArgument,
                "the tokenizer's file has no list of tokens and types");
  }
  const auto count = static_cast<std::size_t>(size);
  if (tokens->size() < count) {
    return fail(ErrorCode::kInvalidArgument,
                "the tokenizer has {} tokens, the shape wants {}; take another one", tokens->size(),
                size);
  }
  std::vector<std::string> kept(tokens->begin(), tokens->begin() + size);
  const std::set<std::string_view> known(kept.begin(), kept.end());
  if (const auto* merges = metadata.find_strings("tokenizer.ggml.merges"); merges != nullptr) {
    std::vector<std::string> kept_merges;
    for (const std::string& merge : *merges) {
      const auto space = merge.find(' ', 1);
      if (space == std::string::npos) continue;
      if (known.contains(merge.substr(0, space) + merge.substr(space + 1))) {
        kept_merges.push_back(merge);
      }
    }
    metadata.set("tokenizer.ggml.merges", {formats::MetadataArray{std::move(kept_merges)}});
  }
  std::vector<std::int32_t> kept_types(types->begin(), types->begin() + size);
  metadata.set("tokenizer.ggml.token_type", {formats::MetadataArray{std::move(kept_types)}});
  metadata.set("tokenizer.ggml.tokens", {formats::MetadataArray{std::move(kept)}});
  return {};
}

Result<formats::Metadata> make_metadata(const Arguments& arguments, const Shape& s) {
  formats::Metadata metadata;
  metadata.set("general.architecture", {std::string("llama")});
  metadata.set("general.name", {fmt::format("random weights, {}", arguments.shape)});
  metadata.set("llama.block_count", number(s.layers));
  metadata.set("llama.context_length", number(s.context));
  metadata.set("llama.embedding_length", number(s.width));
  metadata.set("llama.feed_forward_length", number(s.ffn));
  metadata.set("llama.attention.head_count", number(s.heads));
  metadata.set("llama.attention.head_count_kv", number(s.kv_heads));
  metadata.set("llama.attention.layer_norm_rms_epsilon", {1e-5F});
  metadata.set("llama.rope.dimension_count", number(s.width / s.heads));
  metadata.set("llama.rope.freq_base", {10000.0F});
  metadata.set("llama.vocab_size", number(s.vocabulary));
  SPUD_TRY(const auto source, formats::ModelFile::open(arguments.tokenizer_from));
  for (const auto& entry : source->metadata().entries()) {
    if (entry.key.starts_with("tokenizer.")) metadata.set(entry.key, entry.value);
  }
  SPUD_TRY(cut_vocabulary(s.vocabulary, metadata));
  return metadata;
}

Result<void> run(const Arguments& arguments) {
  const auto shape = kShapes.find(arguments.shape);
  if (shape == kShapes.end()) {
    return fail(ErrorCode::kInvalidArgument, "shape '{}' is not one of 1.1b, 360m and tiny",
                arguments.shape);
  }
  SPUD_TRY(const tensor::DType type, parse_type(arguments.type));
  SPUD_TRY(const formats::Metadata metadata, make_metadata(arguments, shape->second));
  return ModelWriter(shape->second, type, arguments.seed).write(arguments.out, metadata);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Writes a llama-shaped GGUF model with random weights");
  app.add_option("OUT", arguments.out, "File to write")->required();
  app.add_option("--tokenizer-from", arguments.tokenizer_from, "GGUF file whose tokenizer to use")
      ->required();
  app.add_option("--shape", arguments.shape, "1.1b, 360m or tiny")->capture_default_str();
  app.add_option("--type", arguments.type, "q4_0, q4_1, q5_0, q8_0 or f16")->capture_default_str();
  app.add_option("--seed", arguments.seed, "Of the weights")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Result<void> done = run(arguments);
  if (done) return 0;
  std::fprintf(stderr, "make_random_model: %s\n", done.error().message().c_str());
  return 1;
}
