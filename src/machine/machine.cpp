// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "concurrency/cpu_budget.hpp"
#include "concurrency/thread_pool.hpp"
#include "machine/loops.hpp"
#include "machine/team.hpp"

namespace spud::machine {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kDefaultL2 = kMiB;

// What the patterns differ in; which one is fastest depends on the CPU and on where the data is.
constexpr ReadPattern kPatterns[] = {{1, 0},    {2, 0},    {4, 0},    {8, 0},
                                     {1, 1024}, {2, 1024}, {4, 1024}, {4, 4096}};

// Anonymous memory that asks for huge pages; freed with its last user.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        bytes_(bytes) {
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      bytes_ = 0;
      return;
    }
    madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  ~Pages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  std::size_t size() const noexcept { return bytes_; }

 private:
  void* data_;
  std::size_t bytes_;
};

class Meter {
 public:
  Meter(const LoopTable& loops, const CpuInfo& cpu, const MeasureOptions& options,
        const concurrency::Clock& clock)
      : loops_(loops), cpu_(cpu), time_each_(options.time_each), clock_(clock) {}

  Rates measure(int threads, const Pages& memory);

 private:
  double read_rate(int threads, const Pages& memory, std::uint64_t bytes_each);
  template <typename Loop>
  double operation_rate(int threads, Loop loop, double ops_per_iteration);
  double barrier_cost(int threads);
  double loop_cost(int threads);

  const LoopTable& loops_;
  const CpuInfo& cpu_;
  std::chrono::nanoseconds time_each_;
  const concurrency::Clock& clock_;
  std::atomic<std::uint64_t> sink_{0};  // results go here, so that no loop can be left out
};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

// Every thread reads its own part of `memory`, again and again within one round, so that a round of
// a small buffer is long against the barrier at its end.
double Meter::read_rate(int threads, const Pages& memory, std::uint64_t bytes_each) {
  bytes_each = std::min<std::uint64_t>(bytes_each, memory.size() / static_cast<unsigned>(threads));
  bytes_each -= bytes_each % kReadGrain;
  if (bytes_each == 0) return 0;
  constexpr std::uint64_t kRoundBytes = 16 * kMiB;
  const std::uint64_t passes = std::max<std::uint64_t>(1, kRoundBytes / bytes_each);
  const auto part = [&](int member) {
    return memory.data() + static_cast<std::uint64_t>(member) * bytes_each;
  };
  const auto read = [&](int member, int round) {
    std::uint64_t sum = 0;
    const ReadPattern& pattern = kPatterns[static_cast<std::size_t>(round) % std::size(kPatterns)];
    for (std::uint64_t i = 0; i < passes; ++i)
      sum += loops_.read(part(member), bytes_each, pattern);
    sink_.fetch_add(sum, std::memory_order_relaxed);
  };
  // Writing first: unwritten pages are all the same page of zeros, and memory belongs to the node
  // of the thread that touches it first.
  const auto touch = [&](int member, int) { std::memset(part(member), 1, bytes_each); };
  double best = std::numeric_limits<double>::infinity();
  run_team({.threads = threads,
            .min_rounds = 2 * static_cast<int>(std::size(kPatterns)),
            .time_limit = time_each_},
           clock_, touch, read,
           [&best](int, std::chrono::nanoseconds time) { best = std::min(best, seconds(time)); });
  return static_cast<double>(bytes_each * passes) * threads / best;
}

template <typename Loop>
double Meter::operation_rate(int threads, Loop loop, double ops_per_iteration) {
  constexpr std::int64_t kIterations = 50'000;  // about half a millisecond
  const auto work = [&](int, int) {
    sink_.fetch_add(static_cast<std::uint64_t>(loop(kIterations)), std::memory_order_relaxed);
  };
  double best = std::numeric_limits<double>::infinity();
  run_team(
      {.threads = threads, .min_rounds = 5, .time_limit = time_each_}, clock_, [](int, int) {},
      work, [&best](int, std::chrono::nanoseconds time) { best = std::min(best, seconds(time)); });
  return ops_per_iteration * static_cast<double>(kIterations) * threads / best;
}

double Meter::barrier_cost(int threads) {
  if (threads == 1) return 0;
  constexpr int kBarriers = 100;  // short: on a busy machine a long run is never undisturbed
  SpinBarrier barrier(threads);
  const auto work = [&barrier](int, int) {
    for (int i = 0; i < kBarriers; ++i) barrier.arrive_and_wait();
  };
  double best = std::numeric_limits<double>::infinity();
  run_team(
      {.threads = threads, .min_rounds = 5, .time_limit = time_each_ / 2}, clock_, [](int, int) {},
      work, [&best](int, std::chrono::nanoseconds time) { best = std::min(best, seconds(time)); });
  return best / kBarriers;
}

double Meter::loop_cost(int threads) {
  if (threads == 1) return 0;
  constexpr int kLoops = 50;
  concurrency::ThreadPool pool(threads);
  SpinBarrier barrier(threads);
  // Each piece waits for the others, so that every thread takes one: else the caller would have
  // done all before anybody looked.
  const auto meet = [&barrier](std::int64_t, std::int64_t) { barrier.arrive_and_wait(); };
  double best = std::numeric_limits<double>::infinity();
  const auto started = clock_.now();
  do {
    const auto begin = clock_.now();
    for (int i = 0; i < kLoops; ++i) pool.parallel_for(threads, 1, meet);
    best = std::min(best, seconds(clock_.now() - begin));
  } while (clock_.now() - started < time_each_ / 2);
  return best / kLoops;
}

// Far beyond L3: of four times its size a good part was still found there (84 instead of 37 GB/s on
// a Zen 4). Not more than a quarter of what this process may have.
std::uint64_t memory_to_read(const CpuInfo& cpu) {
  const std::uint64_t wanted =
      std::clamp<std::uint64_t>(16 * cpu.l3_bytes, 256 * kMiB, 1024 * kMiB);
  const auto limit = concurrency::read_cpu_budget().memory_limit_bytes;
  return limit ? std::max<std::uint64_t>(kMiB, std::min(wanted, *limit / 4)) : wanted;
}

Rates Meter::measure(int threads, const Pages& memory) {
  Rates rates{.threads = threads};
  const std::uint64_t l2 = cpu_.l2_bytes > 0 ? cpu_.l2_bytes : kDefaultL2;
  rates.l2_bytes_per_s = read_rate(threads, memory, l2 / 2);
  if (cpu_.l3_bytes > 0) {
    // More than four times L2, else it would be L2 that is measured; not much more, for a virtual
    // machine may have a small share of what it is told.
    const std::uint64_t share = cpu_.l3_bytes / 2 / static_cast<unsigned>(threads);
    rates.l3_bytes_per_s = read_rate(threads, memory, std::clamp(share, 4 * l2, 8 * l2));
  }
  rates.memory_bytes_per_s = read_rate(threads, memory, memory.size());
  rates.int8_ops_per_s = operation_rate(threads, loops_.int_dot, loops_.int_ops_per_iteration);
  rates.fp32_ops_per_s = operation_rate(threads, loops_.fma, loops_.fma_ops_per_iteration);
  rates.barrier_s = barrier_cost(threads);
  rates.loop_s = loop_cost(threads);
  return rates;
}

}  // namespace

Machine measure_machine(const MeasureOptions& options, const concurrency::Clock& clock) {
  const LoopTable loops = select_loops(options.isa_limit);
  Machine machine{
      .cpu = read_cpu_info(), .instructions = loops.name, .int_operation = loops.int_operation};
  const Pages memory(memory_to_read(machine.cpu));
  Meter meter(loops, machine.cpu, options, clock);
  machine.one = meter.measure(1, memory);
  machine.all = options.threads > 1 ? meter.measure(options.threads, memory) : machine.one;
  return machine;
}

}  // namespace spud::machine
