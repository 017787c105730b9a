// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/allocation_meter.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_bytes.hpp"
#include "formats/testing/temp_folder.hpp"

namespace spud::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, std::size_t data_bytes) {
  return raw_u64(header.size()) + header + std::string(data_bytes, '\x3f');
}

TEST(Safetensors, ReadsWhatItWrites) {
  const TempFolder folder;
  const auto constant = [](float value) {
    return [value](std::span<std::byte> out) -> Result<void> {
      for (std::size_t i = 0; i < out.size(); i += 4) std::memcpy(&out[i], &value, 4);
      return {};
    };
  };
  const std::vector<WriteTensor> tensors = {
      {{"b\"\n", tensor::DType::kF32, {3, 2}, 24}, constant(2)},
      {{"a", tensor::DType::kF32, {1}, 4}, constant(1)}};
  const auto path = folder.path() / "t.safetensors";
  ASSERT_TRUE(write_safetensors(path, tensors));
  const auto file = ModelFile::open(path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_THAT((*file)->find_tensor("b\"\n")->shape, ElementsAre(3, 2));
  EXPECT_THAT(*read_floats(**file, "b\"\n"), ::testing::Each(2.0F));
  EXPECT_THAT(*read_floats(**file, "a"), ElementsAre(1.0F));
  EXPECT_EQ(*(*file)->metadata().find_string("safetensors.format"), "pt");
  // The data begins at a multiple of 8.
  EXPECT_EQ((file_text(path).size() - 28) % 8, 0U);
}

TEST(Safetensors, AcceptsScalarsEmptyTensorsAndSpaces) {
  const auto header = parse_safetensors(as_bytes(file_of(
      R"({"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
      R"("e":{"shape":[0,7],"data_offsets":[8,8],"dtype":"F32"},"__metadata__":{"k":"v"}}   )",
      8)));
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->entries.size(), 2U);
  EXPECT_THAT(header->metadata, ElementsAre(std::pair("k", "v")));
  EXPECT_THAT(to_tensor_info(header->entries[0])->shape, ElementsAre(1));
}

TEST(HostileSafetensors, EachGetsOneSentenceAndLittleMemory) {
  struct Case {
    std::string header;
    std::size_t data_bytes;
    std::string_view message;
  };
  const std::string deep(5000, '[');
  const Case cases[] = {
      {"", 0, "does not begin with '{'"},
      {"[]", 0, "does not begin with '{'"},
      {" {}", 0, "does not begin with '{'"},
      {"{", 0, "not valid JSON"},
      {"{} x", 0, "not valid JSON"},
      {R"({"a":1})", 0, "a number where none belongs"},
      {R"({"a":"x"})", 0, "a text where none belongs"},
      {R"({"a":null})", 0, "a null where none belongs"},
      {R"({"a":[]})", 0, "a list where none belongs"},
      {R"({"a":{}})", 0, "lacks dtype, shape or data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "must be two numbers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "must be two numbers"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "negative number -1"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "not a whole one"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "a list where none"},
      {R"({"a":{"dtype":"F32","shape":{"x":1},"data_offsets":[0,4]}})", 4, "nested too deeply"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       "'dtype' is unknown or occurs twice"},
      {R"({"a":{"type":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "'type' is unknown"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "the type 'F33' is unknown"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       "has 4 bytes, but its type and shape ask for 8"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, "it is truncated"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "1 bytes follow"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8,
       "0 is where they must begin"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8, "must begin"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "tensor 'b' has the bytes 0 to 4, but 4 is where they must begin"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "'a' occurs twice"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}})", 0,
       "the size of its shape overflows"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,0]}})", 0,
       "not a whole one"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
       "more than 8 dimensions"},
      {R"({"__metadata__":{"k":1}})", 0, "a number where none belongs"},
      {R"({"__metadata__":{"k":{}}})", 0, "nested too deeply"},
      {"{\"a\":{\"shape\":" + deep + "}}", 0, "a list where none belongs"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.header.substr(0, 100));
    const std::string bytes = file_of(test.header, test.data_bytes);
    const AllocationMeter meter;
    const auto header = parse_safetensors(as_bytes(bytes));
    EXPECT_LE(meter.peak_bytes(), kParseMemoryFactor * bytes.size() + 16384);
    ASSERT_FALSE(header);
    EXPECT_THAT(header.error().message(), HasSubstr(test.message));
    EXPECT_LT(header.error().message().size(), 300U);
  }
}

TEST(HostileSafetensors, HeaderLengthsAreChecked) {
  EXPECT_THAT(parse_safetensors(as_bytes(std::string("short"))).error().message(),
              HasSubstr("needs 8 bytes"));
  EXPECT_THAT(parse_safetensors(as_bytes(raw_u64(~std::uint64_t{0}) + "{}")).error().message(),
              HasSubstr("18446744073709551615 bytes long, more than the limit of 100000000"));
  EXPECT_THAT(parse_safetensors(as_bytes(raw_u64(50'000'000) + "{}")).error().message(),
              HasSubstr("the header needs 50000000 bytes"));
}

TEST(HostileSafetensors, TheDearestLegalFileStaysBelowTheStatedFactor) {
  std::string header = "{";
  for (int i = 0; i < 50000; ++i) {
    header += fmt::format(R"({}"{}":{{"dtype":"I8","shape":[],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, i, i + 1);
  }
  const std::string bytes = file_of(header + "}", 50000);
  const AllocationMeter meter;
  const auto parsed = parse_safetensors(as_bytes(bytes));
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_LE(meter.peak_bytes(), kParseMemoryFactor * bytes.size());
}

}  // namespace
}  // namespace spud::formats
