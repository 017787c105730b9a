// SPDX-License-Identifier: Apache-2.0
#include "concurrency/cpu_budget.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace spud::concurrency {
namespace {

namespace fs = std::filesystem;

// A machine with 4 CPUs of which the process may use `allowed`.
class FakeRoot {
 public:
  explicit FakeRoot(const std::string& allowed) {
    std::string name = (fs::temp_directory_path() / "spud_cpu_budget_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    write("proc/self/status", "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t" + allowed + "\n");
    write("sys/devices/system/cpu/online", "0-3\n");
  }
  ~FakeRoot() { fs::remove_all(root_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  CpuBudget read() const { return read_cpu_budget(root_); }

 private:
  fs::path root_;
};

TEST(CpuBudget, AffinityAloneDecidesWithoutAQuota) {
  const FakeRoot root("0,2-3");
  EXPECT_EQ(root.read().threads, 3);
  EXPECT_EQ(root.read().reason, "3 of 4 CPUs by affinity");
  EXPECT_EQ(root.read().memory_limit_bytes, std::nullopt);
}

TEST(CpuBudget, QuotaOfCgroupTwoIsRoundedDownButNeverToZero) {
  const FakeRoot root("0-3");
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(root.read().threads, 2);
  EXPECT_EQ(root.read().reason, "4 of 4 CPUs by affinity; the cgroup's quota allows 2.5");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(root.read().threads, 1);
  root.write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(root.read().threads, 4);
}

TEST(CpuBudget, TheTightestOfAllParentsHolds) {
  const FakeRoot root("0-3");
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  root.write("sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
  root.write("sys/fs/cgroup/a/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(root.read().threads, 2);
  EXPECT_EQ(root.read().memory_limit_bytes, 1000000U);
}

TEST(CpuBudget, GroupThatIsNotVisibleInsideTheContainerMeansTheMount) {
  const FakeRoot root("0-3");
  root.write("proc/self/cgroup", "0::/docker/abc\n");
  root.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  root.write("sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_EQ(root.read().threads, 1);
  EXPECT_EQ(root.read().memory_limit_bytes, 536870912U);
}

TEST(CpuBudget, ReadsCgroupOne) {
  const FakeRoot root("0-3");
  root.write("proc/self/cgroup", "4:cpu,cpuacct:/x\n7:memory:/x\n");
  root.write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000\n");
  root.write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "4096000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(root.read().threads, 1);
  EXPECT_EQ(root.read().memory_limit_bytes, 4096000U);
  root.write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(root.read().threads, 4);
}

TEST(CpuBudget, FindsTheHierarchiesWhereTheyAreMounted) {
  const FakeRoot root("0-3");
  root.write("proc/self/mountinfo",
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
             "32 31 0:29 / /cg/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
             "31 23 0:28 / /sys rw - sysfs sysfs rw\n");
  root.write("proc/self/cgroup", "4:cpu,cpuacct:/x\n0::/y\n");
  root.write("cg/cpu,cpuacct/x/cpu.cfs_quota_us", "300000\n");
  root.write("cg/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/unified/y/memory.max", "4096000\n");
  EXPECT_EQ(root.read().threads, 3);
  EXPECT_EQ(root.read().memory_limit_bytes, 4096000U);
}

TEST(CpuBudget, GroupsInsideAContainerAreNamedFromTheMountsTop) {
  const FakeRoot root("0-3");
  root.write("proc/self/mountinfo",
             "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  root.write("proc/self/cgroup", "4:cpu:/docker/abc/worker\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/worker/cpu.cfs_quota_us", "200000\n");
  root.write("sys/fs/cgroup/cpu/worker/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.read().threads, 2);
}

TEST(CpuBudget, UnreadableSystemGivesOneThreadAndSaysSo) {
  const CpuBudget budget = read_cpu_budget("/nonexistent");
  EXPECT_EQ(budget.threads, 1);
  EXPECT_NE(budget.reason.find("could not be read"), std::string::npos);
}

TEST(CpuBudget, ThreadsThatWereAskedForAreCutToThoseThatCanRunAtATime) {
  const CpuBudget budget{
      .threads = 1, .most_threads = 2, .reason = "the cgroup's quota allows 1.5"};
  EXPECT_EQ(choose_threads(0, budget).threads, 1);
  EXPECT_EQ(choose_threads(2, budget).threads, 2);
  EXPECT_EQ(choose_threads(2, budget).reason, "as asked");
  const ThreadChoice cut = choose_threads(std::int64_t{1} << 40, budget);
  EXPECT_EQ(cut.threads, 2);
  EXPECT_NE(cut.reason.find("the cgroup's quota allows 1.5"), std::string::npos) << cut.reason;
}

TEST(CpuBudget, ThisMachineHasAtLeastOneThread) { EXPECT_GE(read_cpu_budget().threads, 1); }

}  // namespace
}  // namespace spud::concurrency
