// SPDX-License-Identifier: Apache-2.0
// The classes of malformed GGUF files that broke other readers. Each must give one sentence that
// names the value, and no more memory than kParseMemoryFactor times the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "formats/allocation_meter.hpp"
#include "formats/check_model.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_bytes.hpp"
#include "formats/testing/temp_folder.hpp"

namespace spud::formats {
namespace {

using ::testing::HasSubstr;

// Room for one message and small tables, whatever the file's size.
constexpr std::size_t kFixedBytes = 16384;

struct HostileCase {
  std::string_view name;
  RawGguf raw;
  std::string_view message;  // part of the sentence
};

std::vector<HostileCase> hostile_cases() {
  const std::uint64_t huge = std::uint64_t{1} << 60;
  const std::string u8_one(1, '\1');
  return {
      {"WrongMark", {.magic = "GGML"}, "does not begin with 'GGUF'"},
      {"Version1", {.version = 1}, "GGUF version 1, only 2 and 3"},
      {"VersionFuture", {.version = 4}, "GGUF version 4"},
      {"BigEndian", {.version = 0x03000000}, "big-endian"},
      {"TensorCountHuge",
       {.claimed_tensors = huge},
       "the number of tensors is 1152921504606846976"},
      {"TensorCountNegative",
       {.claimed_tensors = ~std::uint64_t{0}},
       "the number of tensors is 18446744073709551615"},
      {"EntryCountHuge", {.claimed_entries = huge}, "the number of metadata entries is"},
      {"EntryCountOneTooMany",
       {.entries = {raw_u32_entry("a", 1)}, .claimed_entries = 2},
       "the number of metadata entries is 2"},
      {"TensorCountPaidByMetadata",
       {.entries = {raw_string_entry("a", std::string(4000, 'x'))}, .claimed_tensors = 100},
       "the number of tensors is 100"},
      {"KeyLengthHuge",
       {.entries = {raw_u64(huge) + std::string(100, 'k')}},
       "a metadata key at offset 32 is 1152921504606846976 bytes long, more than the limit"},
      {"KeyBeyondTheEnd",
       {.entries = {raw_u64(5000) + std::string(100, 'k')}},
       "a metadata key needs 5000 bytes"},
      {"KeyEmpty", {.entries = {raw_u32_entry("", 1)}}, "metadata entry 0 has an empty key"},
      {"KeyTwice",
       {.entries = {raw_u32_entry("a", 1), raw_u32_entry("a", 2)}},
       "the metadata key 'a' occurs twice"},
      {"KeyWithTerminalCodes",
       {.entries = {raw_u32_entry("\x1b[2J", 1), raw_u32_entry("\x1b[2J", 2)}},
       "'\\x1b[2J'"},
      {"ValueTypeUnknown", {.entries = {raw_entry("a", 13, "12345678")}}, "unknown type 13"},
      {"BoolTwo", {.entries = {raw_entry("a", 7, "\2")}}, "a bool has the value 2"},
      {"StringHuge",
       {.entries = {raw_entry("a", 8, raw_u64(huge))}},
       "metadata 'a': a string at offset"},
      {"StringBeyondTheEnd",
       {.entries = {raw_entry("a", 8, raw_u64(1 << 20))}},
       "metadata 'a': a string needs 1048576 bytes"},
      {"StringLengthWraps",
       {.entries = {raw_entry("a", 8, raw_u64(~std::uint64_t{0} - 7))}},
       "more than the limit of 1073741824"},
      {"ArrayHuge",
       {.entries = {raw_array_entry("a", 4, huge, "")}},
       "metadata 'a': the length of an array is 1152921504606846976"},
      {"ArrayOfStringsHuge",
       {.entries = {raw_array_entry("a", 8, huge, raw_string("x"))}},
       "the length of an array is"},
      {"ArrayOfBoolsHuge",
       {.entries = {raw_array_entry("a", 7, huge, u8_one)}},
       "the length of an array is"},
      {"ArrayOfBoolsWrong",
       {.entries = {raw_array_entry("a", 7, 2, "\1\3")}},
       "a bool has the value 3"},
      {"ArrayNested",
       {.entries = {raw_array_entry("a", 9, 1, raw_u32(9) + raw_u64(1) + raw_u32(4))}},
       "an array of arrays, which is not supported"},
      {"ArrayOfUnknownType",
       {.entries = {raw_array_entry("a", 99, 1, "x")}},
       "unknown element type 99"},
      {"AlignmentZero",
       {.entries = {raw_u32_entry("general.alignment", 0)}},
       "general.alignment is 0, it must be a power of two"},
      {"AlignmentOdd",
       {.entries = {raw_u32_entry("general.alignment", 48)}},
       "general.alignment is 48"},
      {"AlignmentHuge",
       {.entries = {raw_u32_entry("general.alignment", 1U << 31)}},
       "general.alignment is 2147483648"},
      {"AlignmentOfWrongType",
       {.entries = {raw_string_entry("general.alignment", "32")}},
       "general.alignment must be a 32-bit unsigned number"},
      {"NameEmpty", {.tensors = {{.name = ""}}, .data_bytes = 128}, "tensor 0 has an empty name"},
      {"NameTooLong",
       {.tensors = {{.name = std::string(64, 'n')}}, .data_bytes = 128},
       "a tensor name at offset 32 is 64 bytes long, more than the limit of 63"},
      {"NameTwice",
       {.tensors = {{.name = "t"}, {.name = "t", .offset = 128}}, .data_bytes = 256},
       "the tensor name 't' occurs twice"},
      {"NoDimensions",
       {.tensors = {{.name = "t", .shape = {}}}, .data_bytes = 128},
       "tensor 't': 0 dimensions, from 1 to 4"},
      {"DimensionsClaimed",
       {.tensors = {{.name = "t", .claimed_dims = 0x40000000U}}, .data_bytes = 128},
       "tensor 't': 1073741824 dimensions"},
      {"DimensionZero",
       {.tensors = {{.name = "t", .shape = {32, 0}}}, .data_bytes = 128},
       "tensor 't': dimension 1 is 0"},
      {"DimensionNegative",
       {.tensors = {{.name = "t", .shape = {~std::uint64_t{0}}}}, .data_bytes = 128},
       "dimension 0 is 18446744073709551615: the number of values overflows"},
      {"DimensionsWrap",
       {.tensors = {{.name = "t", .shape = {(std::uint64_t{1} << 42) + 1, std::uint64_t{1} << 22}}},
        .data_bytes = 128},
       "the number of values overflows"},
      {"DimensionsLogicallyExabytes",
       {.tensors = {{.name = "t", .shape = {(std::uint64_t{1} << 42) + 1}}}, .data_bytes = 128},
       "tensor 't' needs 17592186044420 bytes"},
      {"BytesWrap",
       {.tensors = {{.name = "t", .shape = {std::uint64_t{1} << 62}}}, .data_bytes = 128},
       "tensor 't'"},
      {"PartBlock",
       {.tensors = {{.name = "t", .shape = {33}, .type = 8}}, .data_bytes = 128},
       "rows of 33 values are not whole blocks of 32 (Q8_0)"},
      {"TypeRemoved4",
       {.tensors = {{.name = "t", .type = 4}}, .data_bytes = 128},
       "tensor 't': type number 4 was removed from GGUF"},
      {"TypeRemoved31",
       {.tensors = {{.name = "t", .type = 31}}, .data_bytes = 128},
       "type number 31 was removed"},
      {"TypeRemoved38",
       {.tensors = {{.name = "t", .type = 38}}, .data_bytes = 128},
       "type number 38 was removed"},
      {"TypeNotRead",
       {.tensors = {{.name = "t", .type = 39}}, .data_bytes = 128},
       "type MXFP4 (number 39) is not supported"},
      {"TypeUnknown",
       {.tensors = {{.name = "t", .type = 1000}}, .data_bytes = 128},
       "type number 1000 does not exist"},
      {"OffsetOutside",
       {.tensors = {{.name = "t", .offset = 1 << 20}}, .data_bytes = 128},
       "tensor 't' is at offset 1048576, but the tensors before it end at 0"},
      {"OffsetOverlaps",
       {.tensors = {{.name = "a"}, {.name = "b", .offset = 96}}, .data_bytes = 256},
       "tensor 'b' is at offset 96, but the tensors before it end at 128"},
      {"OffsetsAllTheSame",
       {.tensors = {{.name = "a"}, {.name = "b"}}, .data_bytes = 128},
       "tensor 'b' is at offset 0"},
      {"OffsetUnaligned",
       {.tensors = {{.name = "t", .offset = 4}}, .data_bytes = 256},
       "tensor 't' is at offset 4"},
      {"DataTruncatedByOne",
       {.tensors = {{.name = "t"}}, .data_bytes = 127},
       "tensor 't' needs 128 bytes at offset 64, but the file has only 191 bytes"},
      {"DataMissing", {.tensors = {{.name = "t"}}}, "tensor 't' needs 128 bytes"},
      {"SumOfSizesWraps",
       {.tensors =
            {{.name = "a", .shape = {std::uint64_t{1} << 61}},
             {.name = "b", .shape = {std::uint64_t{1} << 61}, .offset = std::uint64_t{1} << 63}},
        .data_bytes = 128},
       "tensor 'a' needs 9223372036854775808 bytes"},
  };
}

TEST(HostileGguf, EachGetsOneSentenceAndLittleMemory) {
  for (const HostileCase& test : hostile_cases()) {
    SCOPED_TRACE(std::string(test.name));
    const std::string bytes = test.raw.bytes();
    const AllocationMeter meter;
    const auto header = parse_gguf(as_bytes(bytes));
    const std::size_t peak = meter.peak_bytes();
    EXPECT_LE(peak, kParseMemoryFactor * bytes.size() + kFixedBytes);
    ASSERT_FALSE(header);
    EXPECT_THAT(header.error().message(), HasSubstr(test.message));
    EXPECT_EQ(header.error().message().find('\n'), std::string::npos);
    EXPECT_LT(header.error().message().size(), 300U);
  }
}

TEST(HostileGguf, EveryTruncationIsAnError) {
  const RawGguf raw{.entries = {raw_string_entry("general.name", "x"),
                                raw_array_entry("list", 8, 2, raw_string("a") + raw_string("b"))},
                    .tensors = {{.name = "a", .shape = {4, 2}}, {.name = "b", .offset = 32}},
                    .data_bytes = 160};
  const std::string bytes = raw.bytes();
  ASSERT_TRUE(parse_gguf(as_bytes(bytes)));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly this size, so that the sanitizer sees a read past the end.
    const std::vector<std::byte> part(as_bytes(bytes).begin(),
                                      as_bytes(bytes).begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_gguf(part)) << size;
  }
}

// The most memory that legal bytes can ask for: the smallest entries, as many as fit.
TEST(HostileGguf, TheDearestLegalFilesStayBelowTheStatedFactor) {
  const auto check = [](const RawGguf& raw) {
    const std::string bytes = raw.bytes();
    const AllocationMeter meter;
    const auto header = parse_gguf(as_bytes(bytes));
    ASSERT_TRUE(header) << header.error().message();
    EXPECT_LE(meter.peak_bytes(), kParseMemoryFactor * bytes.size() + kFixedBytes);
  };
  RawGguf keys;
  RawGguf tensors;
  for (unsigned i = 0; i < 60000; ++i) {
    const std::string name = {static_cast<char>(1 + i % 250), static_cast<char>(1 + i / 250)};
    keys.entries.push_back(raw_entry(name, 0, "x"));
    tensors.tensors.push_back({.name = name, .shape = {1}, .offset = std::uint64_t{i} * 32});
  }
  tensors.data_bytes = 60000 * 32;
  check(keys);
  check(tensors);
  std::string empties;
  for (unsigned i = 0; i < 100000; ++i) empties += raw_string("");
  check({.entries = {raw_array_entry("strings", 8, 100000, empties)}});
}

// ---- fields that contradict each other ----

struct Contradiction {
  std::string_view name;
  std::vector<std::string> entries;
  std::string_view message;
};

std::vector<std::string> problems_of(const std::vector<std::string>& changes) {
  // A sound small model: 2 layers, 64 wide, 4 heads on 2, 3 tokens.
  std::map<std::string, std::string> entries;
  const auto put = [&](const std::string& entry) {
    std::uint64_t length = 0;
    std::memcpy(&length, entry.data(), sizeof(length));
    entries[entry.substr(8, length)] = entry;
  };
  put(raw_string_entry("general.architecture", "llama"));
  for (const auto& [key, value] :
       std::map<std::string, std::uint32_t>{{"block_count", 2},
                                            {"context_length", 128},
                                            {"embedding_length", 64},
                                            {"feed_forward_length", 96},
                                            {"attention.head_count", 4},
                                            {"attention.head_count_kv", 2}}) {
    put(raw_u32_entry("llama." + key, value));
  }
  put(raw_string_entry("tokenizer.ggml.model", "gpt2"));
  const std::string tokens = raw_string("a") + raw_string("b") + raw_string("c");
  put(raw_array_entry("tokenizer.ggml.tokens", 8, 3, tokens));
  put(raw_array_entry("tokenizer.ggml.merges", 8, 0, ""));
  put(raw_array_entry("tokenizer.ggml.token_type", 5, 3, std::string(12, '\1')));
  put(raw_u32_entry("tokenizer.ggml.bos_token_id", 2));
  for (const std::string& change : changes) put(change);

  RawGguf raw;
  for (const auto& [key, entry] : entries) raw.entries.push_back(entry);
  std::uint64_t offset = 0;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    std::uint64_t bytes = 4;
    for (const auto extent : shape) bytes *= extent;
    raw.tensors.push_back({.name = name, .shape = std::move(shape), .offset = offset});
    offset += (bytes + 31) / 32 * 32;
  };
  add("token_embd.weight", {64, 3});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    add(layer + "attn_q.weight", {64, 64});
    add(layer + "attn_k.weight", {64, 32});
    add(layer + "ffn_up.weight", {64, 96});
    add(layer + "ffn_down.weight", {96, 64});
  }
  raw.data_bytes = offset;
  const TempFolder folder;
  const auto file = ModelFile::open(folder.write("m.gguf", raw.bytes()));
  EXPECT_TRUE(file) << file.error().message();
  return check_model(**file);
}

TEST(CheckModel, FindsNothingWrongWithASoundModel) {
  EXPECT_THAT(problems_of({}), ::testing::IsEmpty());
}

TEST(CheckModel, NamesFieldsThatContradictEachOther) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string nan_bytes(reinterpret_cast<const char*>(&nan), sizeof(nan));
  const std::vector<Contradiction> cases = {
      {"Vocabulary",
       {raw_array_entry("tokenizer.ggml.tokens", 8, 1, raw_string("a"))},
       "the vocabulary has 1 tokens, but 'token_embd.weight' has 3 rows"},
      {"TokenTypes",
       {raw_array_entry("tokenizer.ggml.token_type", 5, 1, raw_u32(1))},
       "tokenizer.ggml.token_type has 1 entries for 3 tokens"},
      {"SpecialId",
       {raw_u32_entry("tokenizer.ggml.eos_token_id", 3)},
       "tokenizer.ggml.eos_token_id is not one of the 3 tokens"},
      {"SpecialIdText",
       {raw_string_entry("tokenizer.ggml.eos_token_id", "0")},
       "tokenizer.ggml.eos_token_id is not one of"},
      {"HeadsZero",
       {raw_u32_entry("llama.attention.head_count", 0)},
       "llama.attention.head_count is 0"},
      {"KeyHeadsZero",
       {raw_u32_entry("llama.attention.head_count_kv", 0)},
       "4 query heads cannot share 0 key/value heads"},
      {"KeyHeadsUneven",
       {raw_u32_entry("llama.attention.head_count_kv", 3)},
       "4 query heads cannot share 3 key/value heads"},
      {"HeadsAgainstWidth",
       {raw_u32_entry("llama.attention.head_count", 6)},
       "an embedding of 64 cannot be split into 6 heads"},
      {"HeadLength",
       {raw_u32_entry("llama.attention.key_length", 1U << 31)},
       "the tensor 'blk.0.attn_q.weight' has 64 rows"},
      {"Width",
       {raw_u32_entry("llama.embedding_length", 128)},
       "the tensor 'token_embd.weight' has 64 columns, but llama.embedding_length asks for 128"},
      {"FeedForward",
       {raw_u32_entry("llama.feed_forward_length", 32)},
       "the tensor 'blk.0.ffn_up.weight' has 96 rows"},
      {"LayersTooMany",
       {raw_u32_entry("llama.block_count", 0xFFFFFFFFU)},
       "says 4294967295 layers, but layer 2 has no tensor"},
      {"LayersTooFew",
       {raw_u32_entry("llama.block_count", 1)},
       "says 1 layers, but there are tensors of layer 1"},
      {"LayersZero", {raw_u32_entry("llama.block_count", 0)}, "must be a whole number above 0"},
      {"NotANumber",
       {raw_entry("llama.rope.freq_base", 6, nan_bytes)},
       "llama.rope.freq_base is nan"},
      {"OtherArchitecture",
       {raw_string_entry("general.architecture", "other")},
       "the metadata key 'other.block_count' is missing"},
      {"TokensOfWrongType",
       {raw_u32_entry("tokenizer.ggml.tokens", 3)},
       "tokenizer.ggml.tokens is missing or empty"},
      {"NoScores",
       {raw_string_entry("tokenizer.ggml.model", "llama")},
       "needs tokenizer.ggml.scores"},
  };
  for (const Contradiction& test : cases) {
    SCOPED_TRACE(std::string(test.name));
    EXPECT_THAT(problems_of(test.entries), ::testing::Contains(HasSubstr(test.message)));
  }
}

}  // namespace
}  // namespace spud::formats
