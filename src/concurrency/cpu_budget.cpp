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

bool has_word(std::string_view words, std::string_view word) {
  std::istringstream in{std::string(words)};
  for (std::string item; std::getline(in, item, ',');) {
    if (item == word) return true;
  }
  return false;
}

// Where a hierarchy of cgroups is to be found.
struct CgroupMount {
  std::string kind;         // cgroup2, or cgroup for version 1
  std::string controllers;  // version 1: "rw,cpu,cpuacct"
  fs::path top;             // the group that the mount shows; not "/" in a container
  fs::path point;
};

// From lines like "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";
// the usual places where that file cannot be read.
std::vector<CgroupMount> find_mounts(const fs::path& root) {
  const auto text = read_text(root / "proc/self/mountinfo");
  const fs::path usual = root / "sys/fs/cgroup";
  if (!text) {
    return {{"cgroup2", "", "/", usual},
            {"cgroup", "cpu", "/", usual / "cpu"},
            {"cgroup", "memory", "/", usual / "memory"}};
  }
  std::vector<CgroupMount> mounts;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    CgroupMount mount;
    std::string word, top, point;
    std::istringstream words(line);
    words >> word >> word >> word >> top >> point;
    while (words >> word && word != "-") continue;
    if (!(words >> mount.kind >> word >> mount.controllers)) continue;
    if (mount.kind != "cgroup" && mount.kind != "cgroup2") continue;
    mount.top = top;
    mount.point = root / fs::path(point).relative_path();
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// All groups from `group` (as /proc/self/cgroup names it) up to the top of the mount: a limit of
// any parent holds for us too. A group that is not below the mount's top (a container that sees
// the machine's names) counts as the top itself.
void append_with_parents(const CgroupMount& mount, const fs::path& group,
                         std::vector<fs::path>& dirs) {
  fs::path relative = group.lexically_relative(mount.top);
  if (relative.empty() || *relative.begin() == "..") relative = group.relative_path();
  for (; !relative.empty() && relative != "."; relative = relative.parent_path()) {
    std::error_code ignored;
    if (fs::is_directory(mount.point / relative, ignored)) dirs.push_back(mount.point / relative);
  }
  dirs.push_back(mount.point);
}

// Lines of /proc/self/cgroup: "0::/path" (v2), "4:cpu,cpuacct:/path" (v1).
CgroupDirs find_cgroups(const fs::path& root) {
  CgroupDirs dirs;
  const std::vector<CgroupMount> mounts = find_mounts(root);
  std::istringstream lines(read_text(root / "proc/self/cgroup").value_or("0::/"));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const fs::path group(line.substr(second + 1));
    const auto add = [&](std::string_view name, std::vector<fs::path>& to) {
      for (const CgroupMount& mount : mounts) {
        const bool here = controllers.empty()
                              ? mount.kind == "cgroup2"
                              : mount.kind == "cgroup" && has_word(mount.controllers, name);
        if (here && (controllers.empty() || has_word(controllers, name))) {
          append_with_parents(mount, group, to);
        }
      }
    };
    add("cpu", dirs.cpu);
    add("memory", dirs.memory);
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
    budget.reason += fmt::format("; the cgroup's quota allows {}", std::round(*quota * 100) / 100);
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
