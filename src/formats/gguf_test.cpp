// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "formats/gguf_bytes.hpp"
#include "formats/testing/temp_folder.hpp"
#include "io/mapped_file.hpp"

namespace spud::formats {
namespace {

using tensor::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

WriteTensor constant_tensor(std::string name, std::vector<std::uint64_t> shape, float value) {
  TensorInfo info{std::move(name), DType::kF32, std::move(shape), 0};
  info.size_bytes = info.num_values() * sizeof(float);
  return {info, [value](std::span<std::byte> out) -> Result<void> {
            for (std::size_t i = 0; i < out.size(); i += sizeof(value)) {
              std::memcpy(&out[i], &value, sizeof(value));
            }
            return {};
          }};
}

// One value of every type, with the edges of each.
Metadata every_type() {
  Metadata metadata;
  metadata.set("general.architecture", {std::string("llama")});
  metadata.set("a.u8", {std::uint8_t{255}});
  metadata.set("a.i8", {std::int8_t{-128}});
  metadata.set("a.u16", {std::uint16_t{65535}});
  metadata.set("a.i16", {std::int16_t{-32768}});
  metadata.set("a.u32", {std::uint32_t{0xFFFFFFFF}});
  metadata.set("a.i32", {std::numeric_limits<std::int32_t>::min()});
  metadata.set("a.f32", {std::numeric_limits<float>::quiet_NaN()});
  metadata.set("a.true", {true});
  metadata.set("a.u64", {std::numeric_limits<std::uint64_t>::max()});
  metadata.set("a.i64", {std::numeric_limits<std::int64_t>::min()});
  metadata.set("a.f64", {-0.0});
  metadata.set("a.text", {std::string("with \0 zero and \xff", 17)});
  metadata.set("a.empty", {MetadataArray{std::vector<std::uint16_t>{}}});
  metadata.set("a.bools", {MetadataArray{std::vector<bool>{true, false, true}}});
  metadata.set("a.strings", {MetadataArray{std::vector<std::string>{"", "x", "yy"}}});
  metadata.set("a.floats", {MetadataArray{std::vector<float>{1.5F, -2}}});
  metadata.set("a.longs", {MetadataArray{std::vector<std::int64_t>{-1, 1}}});
  return metadata;
}

TEST(Gguf, WritesWhatItReadsForEveryMetadataType) {
  const TempFolder folder;
  const Metadata metadata = every_type();
  const auto path = folder.path() / "m.gguf";
  const std::vector<WriteTensor> tensors = {constant_tensor("b", {5, 3}, 2.5F),
                                            constant_tensor("a", {7}, -1)};
  ASSERT_TRUE(write_gguf(path, metadata, tensors));

  const auto file = ModelFile::open(path);
  ASSERT_TRUE(file) << file.error().message();
  std::string written;
  std::string read;
  for (const auto& entry : metadata.entries()) append_gguf_entry(written, entry);
  for (const auto& entry : (*file)->metadata().entries()) append_gguf_entry(read, entry);
  EXPECT_EQ(written, read);
  ASSERT_EQ((*file)->tensors().size(), 2U);
  EXPECT_EQ((*file)->tensors()[0].name, "b");
  EXPECT_THAT((*file)->tensors()[0].shape, ElementsAre(5, 3));
  EXPECT_THAT(*read_floats(**file, "b"), ::testing::Each(2.5F));
  EXPECT_THAT(*read_floats(**file, "a"), ::testing::SizeIs(7));
  EXPECT_EQ((*file)->architecture(), "llama");
  EXPECT_EQ(read_floats(**file, "c").error().code(), ErrorCode::kNotFound);
}

TEST(Gguf, AlignsAndPadsWithZeros) {
  const TempFolder folder;
  for (const std::uint32_t alignment : {8U, 32U, 4096U}) {
    Metadata metadata;
    metadata.set("general.alignment", {alignment});
    const auto path = folder.path() / "m.gguf";
    ASSERT_TRUE(write_gguf(
        path, metadata, std::vector{constant_tensor("a", {3}, 1), constant_tensor("b", {1}, 1)}));
    const auto mapped = io::MappedFile::open(path);
    const auto header = parse_gguf(mapped->bytes());
    ASSERT_TRUE(header) << header.error().message();
    EXPECT_EQ(header->offsets[0] % alignment, 0U);
    EXPECT_EQ(header->offsets[1], header->offsets[0] + std::max(16U, alignment));
    EXPECT_EQ(mapped->bytes().size() % alignment, 0U);
    for (std::uint64_t i = header->offsets[0] + 12; i < header->offsets[1]; ++i) {
      EXPECT_EQ(mapped->bytes()[i], std::byte{0});
    }
  }
}

TEST(Gguf, ABufferThatIsNotFilledIsZeros) {
  const TempFolder folder;
  WriteTensor lazy = constant_tensor("lazy", {1000}, 0);
  lazy.fill = [](std::span<std::byte>) -> Result<void> { return {}; };
  const auto path = folder.path() / "m.gguf";
  ASSERT_TRUE(write_gguf(path, {}, std::vector{constant_tensor("a", {1000}, 3), lazy}));
  EXPECT_THAT(*read_floats(**ModelFile::open(path), "lazy"), ::testing::Each(0.0F));
}

TEST(Gguf, AFailedWriteLeavesTheOldFile) {
  const TempFolder folder;
  const auto path = folder.write("m.gguf", "old");
  WriteTensor bad = constant_tensor("bad", {8}, 0);
  bad.fill = [](std::span<std::byte>) -> Result<void> {
    return fail(ErrorCode::kInvalidArgument, "no data");
  };
  const auto result = write_gguf(path, {}, std::vector{constant_tensor("a", {8}, 0), bad});
  EXPECT_EQ(result.error().message(), "tensor 'bad': no data");
  EXPECT_EQ(file_text(path), "old");
}

TEST(Gguf, DoesNotWriteWhatItWouldNotRead) {
  const TempFolder folder;
  const auto path = folder.path() / "m.gguf";
  const auto message = [&](WriteTensor tensor) {
    return write_gguf(path, {}, std::vector{std::move(tensor)}).error().message();
  };
  EXPECT_THAT(message(constant_tensor(std::string(64, 'x'), {1}, 0)), HasSubstr("64 bytes"));
  EXPECT_THAT(message(constant_tensor("x", {1, 1, 1, 1, 1}, 0)), HasSubstr("5 dimensions"));
  EXPECT_THAT(message(constant_tensor("x", {0}, 0)), HasSubstr("dimensions are 0"));
  WriteTensor partial = constant_tensor("x", {33}, 0);
  partial.info.dtype = DType::kQ8_0;
  EXPECT_THAT(message(partial), HasSubstr("33 values are not whole blocks of 32"));
  WriteTensor wrong = constant_tensor("x", {32}, 0);
  wrong.info.size_bytes = 127;
  EXPECT_THAT(message(wrong), HasSubstr("127 bytes do not match"));
  EXPECT_THAT(
      write_gguf(path, {}, std::vector{constant_tensor("x", {1}, 0), constant_tensor("x", {1}, 0)})
          .error()
          .message(),
      HasSubstr("two tensors are called 'x'"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Gguf, ReadsVersion2) {
  RawGguf raw{.version = 2, .tensors = {{.name = "t"}}, .data_bytes = 128};
  const auto header = parse_gguf(as_bytes(raw.bytes()));
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->tensors.size(), 1U);
}

TEST(Gguf, NeedsNoPaddingAfterTheLastTensor) {
  RawGguf raw{.tensors = {{.name = "t", .shape = {3}}}, .data_bytes = 12};
  EXPECT_TRUE(parse_gguf(as_bytes(raw.bytes())));
}

TEST(Metadata, KeepsOrderReplacesInPlaceAndErases) {
  Metadata metadata;
  metadata.set("b", {std::uint32_t{1}});
  metadata.set("a", {std::uint32_t{2}});
  metadata.set("c", {std::uint32_t{3}});
  metadata.set("b", {std::string("text")});
  EXPECT_TRUE(metadata.erase("a"));
  EXPECT_FALSE(metadata.erase("a"));
  ASSERT_EQ(metadata.entries().size(), 2U);
  EXPECT_EQ(metadata.entries()[0].key, "b");
  EXPECT_EQ(*metadata.find_string("b"), "text");
  EXPECT_EQ(metadata.find_uint("c"), 3U);
}

TEST(Metadata, ConvertsNumbersOnlyWhereTheyFit) {
  Metadata metadata = every_type();
  EXPECT_EQ(metadata.find_uint("a.u8"), 255U);
  EXPECT_EQ(metadata.find_uint("a.i8"), std::nullopt);
  EXPECT_EQ(metadata.find_int("a.i8"), -128);
  EXPECT_EQ(metadata.find_int("a.u64"), std::nullopt);
  EXPECT_EQ(metadata.find_uint("a.true"), std::nullopt);
  EXPECT_EQ(metadata.find_bool("a.true"), true);
  EXPECT_EQ(metadata.find_bool("a.u8"), std::nullopt);
  EXPECT_EQ(metadata.find_number("a.i16"), -32768.0);
  EXPECT_EQ(metadata.find_number("a.text"), std::nullopt);
  EXPECT_EQ(metadata.find_strings("a.floats"), nullptr);
  EXPECT_THAT(*metadata.find_floats("a.floats"), ElementsAre(1.5F, -2.0F));
}

TEST(Digests, DependOnContentAndNotOnOrder) {
  const TempFolder folder;
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", {std::string("gpt2")});
  metadata.set("tokenizer.ggml.tokens", {MetadataArray{std::vector<std::string>{"a", "b"}}});
  metadata.set("tokenizer.chat_template", {std::string("{{ x }}")});
  Metadata turned;
  for (std::size_t i = metadata.entries().size(); i-- > 0;) {
    turned.set(metadata.entries()[i].key, metadata.entries()[i].value);
  }
  const auto a = constant_tensor("a", {4}, 1);
  const auto b = constant_tensor("b", {4}, 2);
  ASSERT_TRUE(write_gguf(folder.path() / "1", metadata, std::vector{a, b}));
  ASSERT_TRUE(write_gguf(folder.path() / "2", turned, std::vector{b, a}));
  ASSERT_TRUE(
      write_gguf(folder.path() / "3", turned, std::vector{constant_tensor("b", {4}, 3), a}));
  const auto one = *ModelFile::open(folder.path() / "1");
  const auto two = *ModelFile::open(folder.path() / "2");
  const auto three = *ModelFile::open(folder.path() / "3");
  EXPECT_EQ(tensor_digest(*one), tensor_digest(*two));
  EXPECT_NE(tensor_digest(*one), tensor_digest(*three));
  EXPECT_EQ(tokenizer_digest(one->metadata()), tokenizer_digest(two->metadata()));
  EXPECT_EQ(chat_template_digest(one->metadata()), chat_template_digest(two->metadata()));

  // "ab","c" is not "a","bc"; the template is no part of the tokenizer.
  turned.set("tokenizer.ggml.tokens", {MetadataArray{std::vector<std::string>{"ab", ""}}});
  EXPECT_NE(tokenizer_digest(turned), tokenizer_digest(metadata));
  turned = metadata;
  turned.set("tokenizer.chat_template", {std::string("{{ y }}")});
  EXPECT_EQ(tokenizer_digest(turned), tokenizer_digest(metadata));
  EXPECT_NE(chat_template_digest(turned), chat_template_digest(metadata));
}

// ---- split files ----

std::string part_bytes(std::uint16_t number, std::uint16_t count, std::int32_t total,
                       const std::string& tensor) {
  const auto u16 = [](std::uint16_t v) {
    return std::string(reinterpret_cast<const char*>(&v), sizeof(v));
  };
  RawGguf raw{
      .entries = {raw_entry("split.no", 2, u16(number)), raw_entry("split.count", 2, u16(count)),
                  raw_entry("split.tensors.count", 5, raw_u32(static_cast<std::uint32_t>(total)))},
      .tensors = {{.name = tensor}},
      .data_bytes = 128};
  if (number == 0) raw.entries.insert(raw.entries.begin(), raw_string_entry("general.name", "x"));
  return raw.bytes();
}

TEST(SplitGguf, IsReadAsOneModel) {
  const TempFolder folder;
  const auto first = folder.write("m-00001-of-00002.gguf", part_bytes(0, 2, 2, "a"));
  folder.write("m-00002-of-00002.gguf", part_bytes(1, 2, 2, "b"));
  const auto file = ModelFile::open(first);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ((*file)->tensors().size(), 2U);
  EXPECT_TRUE(read_floats(**file, "a") && read_floats(**file, "b"));
  EXPECT_EQ((*file)->file_bytes(),
            part_bytes(0, 2, 2, "a").size() + part_bytes(1, 2, 2, "b").size());
  EXPECT_EQ(*(*file)->metadata().find_string("general.name"), "x");
  EXPECT_EQ((*file)->metadata().find("split.count"), nullptr);  // written, it is one file
}

TEST(SplitGguf, NamesWhatIsMissingOrWrong) {
  const TempFolder folder;
  const auto first = folder.write("m-00001-of-00002.gguf", part_bytes(0, 2, 2, "a"));
  const auto message = [](const std::filesystem::path& path) {
    return ModelFile::open(path).error().message();
  };
  EXPECT_THAT(message(first), HasSubstr("part 2 of 2: no file"));
  EXPECT_THAT(message(first), HasSubstr("m-00002-of-00002.gguf"));
  const auto second = folder.write("m-00002-of-00002.gguf", part_bytes(1, 2, 2, "a"));
  EXPECT_THAT(message(first), HasSubstr("occurs in two parts"));
  EXPECT_THAT(message(second), HasSubstr("part 2 of 2: open the first part"));
  folder.write("m-00002-of-00002.gguf", part_bytes(0, 2, 2, "b"));
  EXPECT_THAT(message(first), HasSubstr("does not say that it is part 2 of 2"));
  EXPECT_THAT(message(folder.write("n.gguf", part_bytes(0, 3, 2, "a"))),
              HasSubstr("does not end with '-00001-of-00003.gguf'"));
  folder.write("m-00001-of-00002.gguf", part_bytes(0, 2, 7, "a"));
  folder.write("m-00002-of-00002.gguf", part_bytes(1, 2, 7, "b"));
  EXPECT_THAT(message(first), HasSubstr("hold 2 tensors, but split.tensors.count says 7"));
  EXPECT_THAT(message(folder.write("h.gguf", part_bytes(0, 60000, 2, "a"))),
              HasSubstr("at most 1000 parts"));
}

// ---- real files ----

class RealModel : public ::testing::TestWithParam<const char*> {};

TEST_P(RealModel, SurvivesReadingAndWritingByteForByte) {
  const auto source = real_model(GetParam());
  if (!std::filesystem::exists(source)) GTEST_SKIP() << "no " << source;
  const auto file = ModelFile::open(source);
  ASSERT_TRUE(file) << file.error().message();
  std::vector<WriteTensor> tensors;
  for (std::size_t i = 0; i < (*file)->tensors().size(); ++i) {
    tensors.push_back({(*file)->tensors()[i], [&, i](std::span<std::byte> out) -> Result<void> {
                         std::ranges::copy((*file)->tensor_bytes(i), out.begin());
                         return {};
                       }});
  }
  const TempFolder folder;
  const auto copy = folder.path() / "copy.gguf";
  ASSERT_TRUE(write_gguf(copy, (*file)->metadata(), tensors));
  const auto before = io::MappedFile::open(source);
  const auto after = io::MappedFile::open(copy);
  ASSERT_EQ(before->bytes().size(), after->bytes().size());
  EXPECT_EQ(std::memcmp(before->bytes().data(), after->bytes().data(), before->bytes().size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, RealModel,
                         ::testing::Values("smollm2-135m-instruct-q4_1.gguf",
                                           "gemma-3-270m-q4_k_m.gguf"),
                         [](const auto& model) { return model.index == 0 ? "SmolLM2" : "Gemma3"; });

}  // namespace
}  // namespace spud::formats
