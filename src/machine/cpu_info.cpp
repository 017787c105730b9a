// SPDX-License-Identifier: Apache-2.0
#include "machine/cpu_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <thread>

namespace spud::machine {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// "1024K", "32768K", "8M" -> bytes; 0 when it is none of them.
std::uint64_t parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.starts_with('K')) return value << 10;
  if (unit.starts_with('M')) return value << 20;
  if (unit.starts_with('G')) return value << 30;
  return value;
}

int parse_int(std::string_view text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Generation {
  std::string_view vendor;
  int family;
  int first_model;
  int last_model;
  std::string_view name;
};
// The vendors' lists of family and model numbers, servers and what tends to stand in for them.
constexpr Generation kGenerations[] = {
    {"AuthenticAMD", 23, 0x00, 0x2f, "Zen"},
    {"AuthenticAMD", 23, 0x30, 0xff, "Zen 2"},
    {"AuthenticAMD", 25, 0x00, 0x0f, "Zen 3"},
    {"AuthenticAMD", 25, 0x10, 0x1f, "Zen 4"},
    {"AuthenticAMD", 25, 0x20, 0x5f, "Zen 3"},
    {"AuthenticAMD", 25, 0x60, 0xff, "Zen 4"},
    {"AuthenticAMD", 26, 0x00, 0xff, "Zen 5"},
    {"GenuineIntel", 6, 0x3c, 0x46, "Haswell"},
    {"GenuineIntel", 6, 0x4f, 0x4f, "Broadwell"},
    {"GenuineIntel", 6, 0x55, 0x55, "Skylake or Cascade Lake"},
    {"GenuineIntel", 6, 0x6a, 0x6c, "Ice Lake"},
    {"GenuineIntel", 6, 0x8f, 0x8f, "Sapphire Rapids"},
    {"GenuineIntel", 6, 0xad, 0xae, "Granite Rapids"},
    {"GenuineIntel", 6, 0xcf, 0xcf, "Emerald Rapids"},
};

std::string find_generation(std::string_view vendor, int family, int model) {
  for (const Generation& known : kGenerations) {
    if (known.vendor == vendor && known.family == family && model >= known.first_model &&
        model <= known.last_model) {
      return std::string(known.name);
    }
  }
  return {};
}

// The first processor's block of /proc/cpuinfo.
void read_names(const fs::path& root, CpuInfo& info) {
  std::ifstream in(root / "proc/cpuinfo");
  std::string vendor;
  int family = -1;
  int model = -1;
  for (std::string line; std::getline(in, line) && !line.empty();) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name = trimmed(std::string_view(line).substr(0, colon));
    const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
    if (name == "model name") info.model = value;
    if (name == "vendor_id") vendor = value;
    if (name == "cpu family") family = parse_int(value);
    if (name == "model") model = parse_int(value);
  }
  if (info.model.empty()) info.model = "unknown CPU";
  info.microarchitecture = find_generation(vendor, family, model);
}

void read_caches(const fs::path& root, CpuInfo& info) {
  constexpr int kMaxCaches = 16;
  for (int i = 0; i < kMaxCaches; ++i) {
    const fs::path folder = root / "sys/devices/system/cpu/cpu0/cache" / fmt::format("index{}", i);
    const int level = parse_int(first_line(folder / "level"));
    if (level < 0) break;
    if (first_line(folder / "type") == "Instruction") continue;
    const std::uint64_t bytes = parse_size(first_line(folder / "size"));
    if (level == 1) info.l1_bytes = bytes;
    if (level == 2) info.l2_bytes = bytes;
    if (level == 3) info.l3_bytes = bytes;
  }
}

}  // namespace

CpuInfo read_cpu_info(const fs::path& root) {
  CpuInfo info;
  info.cpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  read_names(root, info);
  read_caches(root, info);
  return info;
}

}  // namespace spud::machine
