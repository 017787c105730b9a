// SPDX-License-Identifier: Apache-2.0
// A GGUF file of any bytes: parsed, checked, summarised, hashed, its values read, its metadata
// written again.
#include "base/check.hpp"
#include "formats/check_model.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_bytes.hpp"
#include "formats/model_summary.hpp"
#include "fuzz_target.hpp"

namespace spud::fuzz {
namespace {

using formats::GgufHeader;

// The parsed bytes as a model, without a file.
class MemoryModel final : public formats::ModelFile {
 public:
  MemoryModel(GgufHeader header, std::span<const std::byte> bytes)
      : header_(std::move(header)), bytes_(bytes) {}
  std::string_view format() const noexcept override { return "gguf"; }
  const formats::Metadata& metadata() const noexcept override { return header_.metadata; }
  const std::vector<formats::TensorInfo>& tensors() const noexcept override {
    return header_.tensors;
  }
  std::span<const std::byte> tensor_bytes(std::size_t index) const noexcept override {
    return bytes_.subspan(header_.offsets[index], header_.tensors[index].size_bytes);
  }
  std::uint64_t file_bytes() const noexcept override { return bytes_.size(); }

 private:
  GgufHeader header_;
  std::span<const std::byte> bytes_;
};

void check_round_trip(const formats::Metadata& metadata) {
  for (const auto& entry : metadata.entries()) {
    std::string written;
    formats::append_gguf_value(written, entry.value);
    const auto parsed = formats::parse_gguf_value(formats::as_bytes(written));
    SPUD_CHECK(parsed.has_value());
    std::string again;
    formats::append_gguf_value(again, *parsed);
    SPUD_CHECK(again == written);
  }
}

void use(const formats::ModelFile& model) {
  check_round_trip(model.metadata());
  for (std::size_t i = 0; i < model.tensors().size(); ++i) {
    const auto& info = model.tensors()[i];
    SPUD_CHECK(model.tensor_bytes(i).size() == info.size_bytes);
    const auto values = formats::read_floats(model, info.name);
    SPUD_CHECK(!values || values->size() == info.num_values());
  }
  SPUD_CHECK(formats::summarize(model).tensor_bytes <= model.file_bytes());
  SPUD_CHECK(formats::tensor_digest(model).size() == 64);
  SPUD_CHECK(formats::tokenizer_digest(model.metadata()).size() == 64);
  for (const std::string& problem : formats::check_model(model)) SPUD_CHECK(!problem.empty());
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  using namespace formats;
  RawGguf model;
  model.entries = {raw_string_entry("general.architecture", "llama"),
                   raw_u32_entry("general.alignment", 32),
                   raw_u32_entry("llama.block_count", 1),
                   raw_u32_entry("llama.context_length", 16),
                   raw_u32_entry("llama.embedding_length", 32),
                   raw_u32_entry("llama.feed_forward_length", 32),
                   raw_u32_entry("llama.attention.head_count", 4),
                   raw_u32_entry("llama.attention.head_count_kv", 2),
                   raw_string_entry("tokenizer.ggml.model", "gpt2"),
                   raw_array_entry("tokenizer.ggml.tokens", 8, 2, raw_string("a") + raw_string("")),
                   raw_array_entry("tokenizer.ggml.merges", 8, 0, ""),
                   raw_array_entry("tokenizer.ggml.token_type", 5, 2, raw_u64(1)),
                   raw_entry("flag", 7, "\1"),
                   raw_array_entry("flags", 7, 3, std::string("\1\0\1", 3))};
  model.tensors = {{.name = "token_embd.weight", .shape = {32, 2}},
                   {.name = "blk.0.attn_q.weight", .shape = {32, 32}, .type = 2, .offset = 256}};
  model.data_bytes = 256 + 32 * 18;

  RawGguf types;  // one tensor of every type of 32 and of 256 values
  std::uint64_t offset = 0;
  for (const std::uint32_t type : {0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 24, 28, 30}) {
    const auto dtype = static_cast<tensor::DType>(type);
    types.tensors.push_back(
        {.name = fmt::format("t{}", type), .shape = {256}, .type = type, .offset = offset});
    offset += (*tensor::bytes_for(dtype, 256) + 31) / 32 * 32;
  }
  types.data_bytes = offset;
  return {RawGguf{}.bytes(), model.bytes(), types.bytes()};
}

}  // namespace spud::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto header = spud::formats::parse_gguf(bytes);
  if (header) {
    spud::fuzz::use(spud::fuzz::MemoryModel(*std::move(header), bytes));
  } else {
    SPUD_CHECK(!header.error().message().empty());
  }
  static_cast<void>(spud::formats::parse_gguf_value(bytes));
  return 0;
}
