// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "machine/loops.hpp"
#include "machine/team.hpp"

namespace spud::machine {
namespace {

namespace fs = std::filesystem;

std::vector<LoopTable> loops_of_this_cpu() {
  std::vector<LoopTable> tables{scalar_loops()};
  for (const auto isa : {kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (isa <= kernels::detect_isa()) tables.push_back(select_loops(isa));
  }
  return tables;
}

struct AlignedBuffer {
  explicit AlignedBuffer(std::size_t bytes)
      : storage(bytes + 64),
        data(storage.data() + (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) % 64) {}
  std::vector<std::byte> storage;
  std::byte* data;
};

TEST(Loops, ReadingSeesEveryByteOnceWhateverThePattern) {
  const std::size_t bytes = 4 * kReadGrain;
  AlignedBuffer buffer(bytes);
  for (std::size_t i = 0; i < bytes; ++i) buffer.data[i] = static_cast<std::byte>(i * 31 % 251);
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, buffer.data + i, 8);
    expected += word;
  }
  for (const LoopTable& loops : loops_of_this_cpu()) {
    for (const std::size_t streams : {1U, 2U, 4U, 8U}) {
      for (const std::size_t ahead : {0U, 1024U}) {
        EXPECT_EQ(loops.read(buffer.data, bytes, {.streams = streams, .prefetch_distance = ahead}),
                  expected)
            << loops.name << " " << streams << " streams";
      }
    }
  }
}

TEST(Loops, OperationsAreReallyDone) {
  // 3 * -5 four times (once for the base set's pairs), added `iterations` times in every lane: a
  // loop that the compiler emptied would not grow.
  for (const LoopTable& loops : loops_of_this_cpu()) {
    EXPECT_NE(loops.int_dot(1), loops.int_dot(2)) << loops.name;
    EXPECT_NE(loops.fma(1), loops.fma(2)) << loops.name;
    EXPECT_GT(loops.int_ops_per_iteration, 0);
    EXPECT_GT(loops.fma_ops_per_iteration, 0);
  }
}

TEST(Loops, AnInstructionSetIsNeverChosenAboveTheLimit) {
  EXPECT_STREQ(select_loops(kernels::Isa::kScalar).name, scalar_loops().name);
  EXPECT_STRNE(select_loops(kernels::Isa::kAvx2).name, avx512_loops().name);
}

TEST(Team, MembersRunEveryRoundAndNoneStartsTheNextBeforeAllAreDone) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 200;
  std::vector<int> done(kThreads, 0);
  bool apart = false;
  const concurrency::FakeClock clock;
  run_team(
      {.threads = kThreads, .min_rounds = kRounds}, clock, [](int, int) {},
      [&](int member, int round) {
        done[static_cast<std::size_t>(member)] += 1;
        EXPECT_EQ(done[static_cast<std::size_t>(member)], round + 1);
      },
      [&](int round, std::chrono::nanoseconds) {
        for (const int count : done) apart |= count != round + 1;
      });
  EXPECT_FALSE(apart);
  EXPECT_EQ(done, std::vector<int>(kThreads, kRounds));
}

TEST(Limits, TheLargerOfBothTimesApplies) {
  const Rates rates{.memory_bytes_per_s = 100, .int8_ops_per_s = 1000};
  const Limit reading = limit_of({.bytes = 200, .int8_ops = 1000}, rates);
  EXPECT_DOUBLE_EQ(reading.seconds, 2);
  EXPECT_EQ(reading.bound, Bound::kMemory);
  const Limit counting = limit_of({.bytes = 200, .int8_ops = 5000}, rates);
  EXPECT_DOUBLE_EQ(counting.seconds, 5);
  EXPECT_EQ(counting.bound, Bound::kCompute);
}

TEST(Limits, OfTwoMeasurementsTheBetterFigureCounts) {
  const Rates best = best_of({.threads = 2, .memory_bytes_per_s = 5, .barrier_s = 3},
                             {.threads = 2, .memory_bytes_per_s = 4, .barrier_s = 1});
  EXPECT_EQ(best.threads, 2);
  EXPECT_EQ(best.memory_bytes_per_s, 5);
  EXPECT_EQ(best.barrier_s, 1);
}

class CpuFiles : public testing::Test {
 public:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void write_cache(int index, int level, const char* type, const char* size) const {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu0/cache/index{}/", index);
    write(folder + "level", fmt::format("{}\n", level));
    write(folder + "type", fmt::format("{}\n", type));
    write(folder + "size", fmt::format("{}\n", size));
  }
  ~CpuFiles() override { fs::remove_all(root_); }

 protected:
  fs::path root_ = fs::temp_directory_path() / fmt::format("spud_cpu_{}", ::getpid());
};

TEST_F(CpuFiles, ModelGenerationAndCachesAreRead) {
  write("proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
        "model name\t: AMD EPYC 9R14\n\nprocessor\t: 1\nmodel name\t: another\n");
  write_cache(0, 1, "Data", "32K");
  write_cache(1, 1, "Instruction", "64K");
  write_cache(2, 2, "Unified", "1024K");
  write_cache(3, 3, "Unified", "32M");
  const CpuInfo info = read_cpu_info(root_);
  EXPECT_EQ(info.model, "AMD EPYC 9R14");
  EXPECT_EQ(info.microarchitecture, "Zen 4");
  EXPECT_EQ(info.l1_bytes, 32U << 10);
  EXPECT_EQ(info.l2_bytes, 1U << 20);
  EXPECT_EQ(info.l3_bytes, 32U << 20);
}

TEST_F(CpuFiles, AMachineThatSaysNothingIsStillDescribed) {
  const CpuInfo info = read_cpu_info(root_);
  EXPECT_EQ(info.model, "unknown CPU");
  EXPECT_EQ(info.microarchitecture, "");
  EXPECT_EQ(info.l3_bytes, 0U);
}

TEST(Machine, EveryFigureIsMeasured) {
  const concurrency::RealClock clock;
  const Machine machine =
      measure_machine({.threads = 2, .time_each = std::chrono::milliseconds(1)}, clock);
  for (const Rates* rates : {&machine.one, &machine.all}) {
    EXPECT_GT(rates->l2_bytes_per_s, 0);
    EXPECT_GT(rates->memory_bytes_per_s, 0);
    EXPECT_GT(rates->int8_ops_per_s, 0);
    EXPECT_GT(rates->fp32_ops_per_s, 0);
  }
  EXPECT_EQ(machine.one.barrier_s, 0);
  EXPECT_GT(machine.all.barrier_s, 0);
  EXPECT_GT(machine.all.loop_s, 0);
  EXPECT_FALSE(machine.instructions.empty());
}

}  // namespace
}  // namespace spud::machine
