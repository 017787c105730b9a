// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "io/atomic_file.hpp"
#include "io/byte_reader.hpp"
#include "io/mapped_file.hpp"

namespace spud::io {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class IoTest : public ::testing::Test {
 public:
  ~IoTest() override { fs::remove_all(folder_); }

 protected:
  IoTest() {
    folder_ = fs::temp_directory_path() /
              fmt::format("spud-io-{}-{}", ::getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }

  fs::path write(std::string_view name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  fs::path folder_;
};

using MappedFileTest = IoTest;
using AtomicFileTest = IoTest;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST_F(MappedFileTest, ShowsTheBytesAndMoves) {
  auto file = MappedFile::open(write("a", "hello"));
  ASSERT_TRUE(file);
  MappedFile moved = *std::move(file);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), 5), "hello");
  EXPECT_TRUE(file->bytes().empty());  // NOLINT(bugprone-use-after-move): that is the question
}

TEST_F(MappedFileTest, RefusesWhatIsNoFileWithOneSentence) {
  EXPECT_THAT(MappedFile::open(folder_).error().message(), HasSubstr("is a folder"));
  EXPECT_THAT(MappedFile::open(write("e", "")).error().message(), HasSubstr("is empty"));
  EXPECT_EQ(MappedFile::open(folder_ / "none").error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(MappedFile::open("/dev/null").error().message(), HasSubstr("not a regular file"));
}

TEST(ByteReader, ReadsLittleEndianFields) {
  ByteReader reader(bytes_of(std::string_view("\x01\x02\x00\x00\x00\x00\x00\x00\x80\x3f", 10)));
  EXPECT_EQ(reader.read<std::uint8_t>("a"), 1);
  EXPECT_EQ(reader.read<std::uint32_t>("b"), 2U);
  EXPECT_EQ(reader.read<std::uint8_t>("c"), 0);
  EXPECT_EQ(reader.read<float>("d"), 1.0F);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(ByteReader, StaysFailedAndKeepsTheFirstError) {
  ByteReader reader(bytes_of("abc"));
  EXPECT_EQ(reader.read<std::uint32_t>("the first"), 0U);
  EXPECT_EQ(reader.read<std::uint8_t>("the second"), 0);  // there would be bytes for it
  EXPECT_FALSE(reader.ok());
  EXPECT_THAT(reader.status().error().message(),
              HasSubstr("the first needs 4 bytes at offset 0, but the file ends after 3 more"));
}

TEST(ByteReader, RefusesACountThatTheRestCannotHold) {
  ByteReader reader(bytes_of("0123456789"));
  EXPECT_EQ(reader.count(5, 2, "the count"), 5U);
  EXPECT_EQ(reader.count(6, 2, "the count"), 0U);
  EXPECT_THAT(reader.status().error().message(), HasSubstr("the count is 6"));
}

TEST(ByteReader, LengthsCannotWrap) {
  const std::string huge(8, '\xff');
  ByteReader reader(bytes_of(huge));
  EXPECT_EQ(reader.string(UINT64_MAX, "a name"), "");
  EXPECT_FALSE(reader.ok());
  ByteReader counting(bytes_of(huge));
  EXPECT_EQ(counting.count(UINT64_MAX / 8 + 2, 8, "a count"), 0U);
  ByteReader aligning(bytes_of(huge));
  aligning.bytes(3, "x");
  aligning.align(std::uint64_t{1} << 63, "the data");
  EXPECT_FALSE(aligning.ok());
}

TEST(ByteReader, AlignsFromTheStart) {
  ByteReader reader(bytes_of("0123456789"));
  reader.bytes(3, "x");
  reader.align(4, "the data");
  EXPECT_EQ(reader.position(), 4U);
  reader.align(4, "the data");
  EXPECT_EQ(reader.position(), 4U);
}

TEST(Printable, EscapesControlsAndBrokenUtf8AndCuts) {
  EXPECT_EQ(printable("Grüße €"), "Grüße €");
  EXPECT_EQ(printable("a\x1b[31m\n"), "a\\x1b[31m\\x0a");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // C1: a one-character CSI
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable(std::string(100, 'x'), 10), "xxxxxxxxxx...");
}

TEST_F(AtomicFileTest, AppearsOnlyOnCommit) {
  const fs::path target = write("model", "old");
  auto file = AtomicFile::create(target);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new content"));
  EXPECT_EQ(read(target), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read(target), "new content");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(AtomicFileTest, LeavesNothingWhenNotCommitted) {
  {
    auto file = AtomicFile::create(folder_ / "model");
    ASSERT_TRUE(file && file->write("half"));
    ASSERT_EQ(num_files(), 1U);
    EXPECT_TRUE(is_temporary_name(fs::directory_iterator(folder_)->path().filename().string()));
  }
  EXPECT_EQ(num_files(), 0U);
}

TEST_F(AtomicFileTest, PadsWithZeros) {
  auto file = AtomicFile::create(folder_ / "padded");
  ASSERT_TRUE(file && file->write("abc") && file->pad_to(8) && file->pad_to(8) && file->commit());
  EXPECT_EQ(read(folder_ / "padded"), std::string("abc\0\0\0\0\0", 8));
}

TEST_F(AtomicFileTest, SaysWhyItCannotWrite) {
  EXPECT_THAT(AtomicFile::create(folder_ / "no" / "file").error().message(),
              HasSubstr("its folder does not exist"));
  EXPECT_THAT(AtomicFile::create(folder_).error().message(), HasSubstr("it is a folder"));
}

// A file size limit stands in for a full disk: the write fails half-way.
TEST_F(AtomicFileTest, AFailedWriteKeepsTheOldFile) {
  const fs::path target = write("model", "old");
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = write_file_atomically(target, std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("cannot write"));
  EXPECT_EQ(read(target), "old");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(AtomicFileTest, ReplacesALinkAndNotWhatItPointsTo) {
  const fs::path victim = write("victim", "untouched");
  fs::create_symlink(victim, folder_ / "link");
  ASSERT_TRUE(write_file_atomically(folder_ / "link", "text"));
  EXPECT_FALSE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "link"), "text");
  EXPECT_EQ(read(victim), "untouched");
}

}  // namespace
}  // namespace spud::io
