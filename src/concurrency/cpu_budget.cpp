// SPDX-License-Identifier: Apache-2.0
#include "concurrency/cpu_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace spud::concurrency {
namespace {

namespace fs = std::filesystem;

// Small kernel files only; nothing when absent or unreadable.
std::optional<std::string> read_text(const fs::path& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

template <typename Int>
std::optional<Int> parse_int(std::string_view text) {
  text = trimmed(text);
  Int value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "0-3,8,10-11" -> 7.
int count_cpu_list(std::string_view list) {
  int count = 0;
  std::istringstream in{std::string(trimmed(list))};
  for (std::string range; std::getline(in, range, ',');) {
    const auto dash = range.find('-');
    const auto first = parse_int<int>(std::string_view(range).substr(0, dash));
    const auto last = dash == std::string::npos
                          ? first
                          : parse_int<int>(std::string_view(range).substr(dash + 1));
    if (first && last && *last >= *first) count += *last - *first + 1;
  }
  return count;
}

// The affinity mask of this process, as the kernel prints it.
int affinity_cpus(const fs::path& root) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  const auto status = read_text(root / "proc/self/status");
  if (!status) return 0;
  const auto at = status->find(kKey);
  if (at == std::string::npos) return 0;
  const auto begin = at + kKey.size();
  return count_cpu_list(std::string_view(*status).substr(begin, status->find('\n', begin) - begin));
}

struct CgroupDirs {
  std::vector<fs::path> cpu;  // from the process's own group up to the mount
  std::vector<fs::path> memory;
};

// All groups from `group` (as /proc/self/cgroup names it) up to the mount point: a limit of any
// parent holds for us too. Inside a container the path may not exist below the mount: then the
// mount itself is our group.
std::vector<fs::path> with_parents(const fs::path& mount, std::string_view group) {
  std::vector<fs::path> dirs;
  for (fs::path relative = fs::path(group).relative_path(); !relative.empty();
       relative = relative.parent_path()) {
    std::error_code ignored;
    if (fs::is_directory(mount / relative, ignored)) dirs.push_back(mount / relative);
  }
  dirs.push_back(mount);
  return dirs;
}

bool has_controller(std::string_view controllers, std::string_view name) {
  std::istringstream in{std::string(controllers)};
  for (std::string item; std::getline(in, item, ',');) {
    if (item == name) return true;
  }
  return false;
}

// Lines of /proc/self/cgroup: "0::/path" (v2), "4:cpu,cpuacct:/path" (v1).
CgroupDirs find_cgroups(const fs::path& root) {
  CgroupDirs dirs;
  const fs::path mount = root / "sys/fs/cgroup";
  std::istringstream lines(read_text(root / "proc/self/cgroup").value_or("0::/"));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const auto group = std::string_view(line).substr(second + 1);
    const auto append = [&](std::vector<fs::path>& to, const fs::path& at) {
      for (fs::path& dir : with_parents(at, group)) to.push_back(std::move(dir));
    };
    if (controllers.empty()) {
      append(dirs.cpu, mount);
      append(dirs.memory, mount);
    }
    if (has_controller(controllers, "cpu")) append(dirs.cpu, mount / "cpu");
    if (has_controller(controllers, "memory")) append(dirs.memory, mount / "memory");
  }
  return dirs;
}

// CPUs that the quota of one group is worth; nothing when unlimited.
std::optional<double> quota_cpus(const fs::path& dir) {
  if (const auto text = read_text(dir / "cpu.max")) {  // v2: "150000 100000" or "max 100000"
    const auto line = trimmed(*text);
    const auto space = line.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    const auto quota = parse_int<std::int64_t>(line.substr(0, space));
    const auto period = parse_int<std::int64_t>(line.substr(space + 1));
    if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
  }
  const auto quota_text = read_text(dir / "cpu.cfs_quota_us");  // v1: -1 = unlimited
  const auto period_text = read_text(dir / "cpu.cfs_period_us");
  if (!quota_text || !period_text) return std::nullopt;
  const auto quota = parse_int<std::int64_t>(*quota_text);
  const auto period = parse_int<std::int64_t>(*period_text);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<std::uint64_t> memory_limit(const fs::path& dir) {
  // v1 says "no limit" with a huge number of pages.
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;
  for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
    const auto text = read_text(dir / name);
    const auto value = text ? parse_int<std::uint64_t>(*text) : std::nullopt;
    if (value && *value < kUnlimited) return value;
  }
  return std::nullopt;
}

}  // namespace

CpuBudget read_cpu_budget(const fs::path& root) {
  CpuBudget budget;
  const CgroupDirs dirs = find_cgroups(root);
  const int affinity = affinity_cpus(root);
  const auto online = read_text(root / "sys/devices/system/cpu/online");
  const int machine = std::max(online ? count_cpu_list(*online) : 0, affinity);

  std::optional<double> quota;
  for (const fs::path& dir : dirs.cpu) {
    if (const auto cpus = quota_cpus(dir)) quota = std::min(quota.value_or(*cpus), *cpus);
  }
  for (const fs::path& dir : dirs.memory) {
    if (const auto bytes = memory_limit(dir)) {
      budget.memory_limit_bytes = std::min(budget.memory_limit_bytes.value_or(*bytes), *bytes);
    }
  }

  budget.threads = std::max(affinity, 1);
  budget.most_threads = budget.threads;
  budget.reason = affinity > 0 ? fmt::format("{} of {} CPUs by affinity", affinity, machine)
                               : "the CPU affinity could not be read, so one";
  if (quota) {
    const double allowed = std::min(*quota, 1e6);
    budget.threads = std::clamp(static_cast<int>(std::floor(allowed)), 1, budget.threads);
    budget.most_threads = std::clamp(static_cast<int>(std::ceil(allowed)), 1, budget.most_threads);
    budget.reason += fmt::format("; cpu.max allows {:.2g}", *quota);
  }
  return budget;
}

ThreadChoice choose_threads(std::int64_t asked, const CpuBudget& budget) {
  if (asked <= 0) return {budget.threads, budget.reason};
  if (asked <= budget.most_threads) return {static_cast<int>(asked), "as asked"};
  return {budget.most_threads, fmt::format("{} asked, but only {} can run at a time: {}", asked,
                                           budget.most_threads, budget.reason)};
}

}  // namespace spud::concurrency
