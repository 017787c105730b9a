// SPDX-License-Identifier: Apache-2.0
// A folder of its own for each test, deleted with it, and the places of optional model files.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace spud::formats {

class TempFolder {
 public:
  TempFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("spud-formats-{}-{}-{}", ::getpid(), test->test_suite_name(), test->name());
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Where `spud fetch` put a model; the test is skipped when it is not there.
inline std::filesystem::path real_model(std::string_view name) {
  const char* folder = std::getenv("SPUD_MODELS");
  const char* home = std::getenv("HOME");
  const std::filesystem::path base =
      folder != nullptr
          ? std::filesystem::path(folder)
          : std::filesystem::path(home != nullptr ? home : ".") / ".cache/spud/models";
  return base / name;
}

}  // namespace spud::formats
