// SPDX-License-Identifier: Apache-2.0
#include "model/testing/tiny_model.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "quantize/quantize.hpp"

namespace spud::model::testing {
namespace {

using formats::Metadata;
using formats::MetadataArray;
using formats::MetadataValue;

// SplitMix64 (Steele et al. 2014): the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // Uniform in [-1, 1).
  float next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    return static_cast<float>(static_cast<std::int32_t>(z >> 32)) / 2147483648.0F;
  }

 private:
  std::uint64_t state_;
};

void append_utf8(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
    return;
  }
  out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
  out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
}

// The printable stand-in of a byte in byte-level vocabularies: printable Latin-1 stands for
// itself, the others for the code points from 256 on, in order.
std::string byte_symbol(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  std::string symbol;
  if (printable(byte)) {
    append_utf8(symbol, static_cast<std::uint32_t>(byte));
    return symbol;
  }
  std::uint32_t code_point = 256;
  for (int b = 0; b < byte; ++b) code_point += printable(b) ? 0 : 1;
  append_utf8(symbol, code_point);
  return symbol;
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;  // 1 normal, 3 control
  std::vector<std::string> merges;
  std::uint32_t im_end = 0;
  std::uint32_t end_of_text = 0;
};

Vocabulary make_vocabulary() {
  Vocabulary v;
  for (int byte = 0; byte < 256; ++byte) v.tokens.push_back(byte_symbol(byte));
  const std::string space = byte_symbol(' ');
  const std::pair<std::string, std::string> merges[] = {
      {"t", "h"},   {"th", "e"},    {"i", "n"},   {"a", "n"},   {"e", "r"},   {"o", "n"},
      {"r", "e"},   {space, "the"}, {space, "a"}, {space, "t"}, {"h", "e"},   {"l", "l"},
      {"he", "ll"}, {"hell", "o"},  {space, "w"}, {"o", "r"},   {"l", "d"},   {space, "s"},
      {"an", "d"},  {space, "and"}, {"in", "g"},  {"e", "s"},   {"i", "s"},   {space, "is"},
      {"a", "t"},   {"e", "n"},     {"o", "u"},   {"u", "s"},   {"s", "e"},   {"s", "t"},
      {space, "b"}, {space, "c"},   {space, "m"}, {space, "p"}, {space, "i"}, {space, "o"},
      {space, "f"}, {space, "d"},   {space, "h"}, {space, "n"}, {space, "l"},
  };
  for (const auto& [left, right] : merges) {
    v.tokens.push_back(left + right);
    v.merges.push_back(left + " " + right);
  }
  v.types.assign(v.tokens.size(), 1);
  v.end_of_text = static_cast<std::uint32_t>(v.tokens.size());
  v.im_end = v.end_of_text + 2;
  for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    v.tokens.emplace_back(special);
    v.types.push_back(3);
  }
  SPUD_CHECK(static_cast<std::int64_t>(v.tokens.size()) == kTinyVocabulary);
  return v;
}

constexpr const char* kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\n' }}{% endif %}";

MetadataValue number(std::int64_t value) { return {static_cast<std::uint32_t>(value)}; }
MetadataValue text(std::string value) { return {std::move(value)}; }

struct TensorPlan {
  std::string name;
  std::int64_t rows;  // 0 = a vector
  std::int64_t columns;
  tensor::DType dtype;
  float centre;
  float spread;
};

class Planner {
 public:
  explicit Planner(const TinyModelOptions& options) : o_(options) {}
  std::vector<TensorPlan> plan() {
    matrix("token_embd", kTinyVocabulary, o_.hidden, o_.embedding, 1.0F);
    if (!o_.tied) matrix("output", kTinyVocabulary, o_.hidden, o_.embedding, 1.0F);
    norm("output_norm", o_.hidden);
    for (std::int64_t i = 0; i < o_.num_layers; ++i) layer(fmt::format("blk.{}.", i));
    return std::move(tensors_);
  }

 private:
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns, tensor::DType dtype,
              float spread) {
    tensors_.push_back({name + ".weight", rows, columns, dtype, 0, spread});
  }
  void product(const std::string& name, std::int64_t rows, std::int64_t columns) {
    matrix(name, rows, columns, o_.weights, 3.0F / std::sqrt(static_cast<float>(columns)));
  }
  void norm(const std::string& name, std::int64_t n) {
    tensors_.push_back({name + ".weight", 0, n, tensor::DType::kF32, 1.0F, 0.2F});
  }
  void bias(const std::string& name, std::int64_t n) {
    tensors_.push_back({name + ".bias", 0, n, tensor::DType::kF32, 0.0F, 0.5F});
  }
  void layer(const std::string& prefix) {
    const std::int64_t query = o_.num_heads * o_.head_dim;
    const std::int64_t kv = o_.num_kv_heads * o_.head_dim;
    norm(prefix + "attn_norm", o_.hidden);
    product(prefix + "attn_q", query, o_.hidden);
    product(prefix + "attn_k", kv, o_.hidden);
    product(prefix + "attn_v", kv, o_.hidden);
    product(prefix + "attn_output", o_.hidden, query);
    norm(prefix + "ffn_norm", o_.hidden);
    product(prefix + "ffn_gate", o_.ffn, o_.hidden);
    product(prefix + "ffn_up", o_.ffn, o_.hidden);
    product(prefix + "ffn_down", o_.hidden, o_.ffn);
    if (o_.architecture == "qwen2") {
      bias(prefix + "attn_q", query);
      bias(prefix + "attn_k", kv);
      bias(prefix + "attn_v", kv);
    }
    if (o_.architecture == "qwen3" || o_.architecture == "gemma3") {
      norm(prefix + "attn_q_norm", o_.head_dim);
      norm(prefix + "attn_k_norm", o_.head_dim);
    }
    if (o_.architecture == "gemma3") {
      norm(prefix + "post_attention_norm", o_.hidden);
      norm(prefix + "post_ffw_norm", o_.hidden);
    }
  }
  const TinyModelOptions& o_;
  std::vector<TensorPlan> tensors_;
};

Result<void> fill_tensor(const TensorPlan& plan, std::uint64_t seed, std::span<std::byte> out) {
  Random random(seed);
  std::vector<float> row(static_cast<std::size_t>(plan.columns));
  const std::int64_t rows = std::max<std::int64_t>(plan.rows, 1);
  const std::size_t row_bytes = out.size() / static_cast<std::size_t>(rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (float& value : row) value = plan.centre + plan.spread * random.next();
    SPUD_TRY(quantize::quantize_row(
        plan.dtype, row, {}, out.subspan(static_cast<std::size_t>(r) * row_bytes, row_bytes)));
  }
  return {};
}

}  // namespace

Metadata tiny_metadata(const TinyModelOptions& o) {
  Metadata m;
  const std::string prefix = o.architecture + ".";
  m.set("general.architecture", text(o.architecture));
  m.set("general.name", text("tiny"));
  m.set(prefix + "block_count", number(o.num_layers));
  m.set(prefix + "context_length", number(o.context_length));
  m.set(prefix + "embedding_length", number(o.hidden));
  m.set(prefix + "feed_forward_length", number(o.ffn));
  m.set(prefix + "attention.head_count", number(o.num_heads));
  m.set(prefix + "attention.head_count_kv", number(o.num_kv_heads));
  m.set(prefix + "attention.key_length", number(o.head_dim));
  m.set(prefix + "attention.value_length", number(o.head_dim));
  m.set(prefix + "attention.layer_norm_rms_epsilon", {1e-5F});
  m.set(prefix + "rope.freq_base", {10000.0F});
  m.set(prefix + "vocab_size", number(kTinyVocabulary));
  if (o.architecture == "gemma3") {
    m.set(prefix + "attention.sliding_window", number(o.sliding_window));
  }
  const Vocabulary v = make_vocabulary();
  m.set("tokenizer.ggml.model", text("gpt2"));
  m.set("tokenizer.ggml.pre", text("smollm"));
  m.set("tokenizer.ggml.tokens", {MetadataArray{v.tokens}});
  m.set("tokenizer.ggml.token_type", {MetadataArray{v.types}});
  m.set("tokenizer.ggml.merges", {MetadataArray{v.merges}});
  m.set("tokenizer.ggml.bos_token_id", number(v.end_of_text));
  m.set("tokenizer.ggml.eos_token_id", number(v.im_end));
  m.set("tokenizer.ggml.add_bos_token", {false});
  m.set("tokenizer.ggml.add_space_prefix", {false});
  m.set("tokenizer.chat_template", text(kChatTemplate));
  return m;
}

Result<void> write_tiny_model(const std::filesystem::path& path, const TinyModelOptions& options) {
  std::vector<formats::WriteTensor> tensors;
  std::uint64_t seed = options.seed;
  for (const TensorPlan& plan : Planner(options).plan()) {
    formats::TensorInfo info;
    info.name = plan.name;
    info.dtype = plan.dtype;
    info.shape.push_back(static_cast<std::uint64_t>(plan.columns));
    if (plan.rows > 0) info.shape.push_back(static_cast<std::uint64_t>(plan.rows));
    const auto bytes = tensor::bytes_for(plan.dtype, info.num_values());
    if (!bytes) {
      return fail(ErrorCode::kInvalidArgument, "{} values of '{}' are not whole blocks of {}",
                  info.num_values(), plan.name, tensor::to_string(plan.dtype));
    }
    info.size_bytes = *bytes;
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    tensors.push_back({std::move(info), [plan, seed](std::span<std::byte> out) {
                         return fill_tensor(plan, seed, out);
                       }});
  }
  return formats::write_gguf(path, tiny_metadata(options), tensors);
}

TinyModelFile::TinyModelFile(const TinyModelOptions& options) {
  std::string folder = (std::filesystem::temp_directory_path() / "spud-tiny-XXXXXX").string();
  SPUD_CHECK(::mkdtemp(folder.data()) != nullptr);
  path_ = std::filesystem::path(folder) / "tiny.gguf";
  SPUD_CHECK(write_tiny_model(path_, options).has_value());
}

TinyModelFile::~TinyModelFile() {
  std::error_code ignored;
  std::filesystem::remove_all(path_.parent_path(), ignored);
}

}  // namespace spud::model::testing
