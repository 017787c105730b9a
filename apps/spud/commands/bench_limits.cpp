// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/bench_limits.hpp"

#include <boost/json.hpp>
#include <cstdio>

#include "console/table.hpp"
#include "console/text.hpp"

namespace spud::app {
namespace {

namespace json = boost::json;

constexpr double kGiga = 1e9;

std::string giga(double rate) { return rate > 0 ? fmt::format("{:.1f}", rate / kGiga) : "-"; }

std::string nanoseconds(double seconds) {
  return seconds > 0 ? fmt::format("{:.0f}", seconds * 1e9) : "-";
}

json::object rates_to_json(const machine::Rates& rates) {
  return {{"threads", rates.threads},
          {"l2_bytes_per_s", rates.l2_bytes_per_s},
          {"l3_bytes_per_s", rates.l3_bytes_per_s},
          {"memory_bytes_per_s", rates.memory_bytes_per_s},
          {"int8_ops_per_s", rates.int8_ops_per_s},
          {"fp32_ops_per_s", rates.fp32_ops_per_s},
          {"barrier_s", rates.barrier_s},
          {"parallel_loop_s", rates.loop_s}};
}

}  // namespace

void print_machine(const machine::Machine& machine) {
  const machine::CpuInfo& cpu = machine.cpu;
  const std::string generation =
      cpu.microarchitecture.empty() ? "" : fmt::format(" ({})", cpu.microarchitecture);
  std::printf("%s%s, %d CPUs, %s; L2 %s a core, L3 %s\n\n", cpu.model.c_str(), generation.c_str(),
              cpu.cpus, machine.instructions.c_str(), console::format_bytes(cpu.l2_bytes).c_str(),
              console::format_bytes(cpu.l3_bytes).c_str());
  using console::Align;
  const machine::Rates& one = machine.one;
  const machine::Rates& all = machine.all;
  console::Table table(
      {{"limit"},
       {"1 thread", Align::kRight},
       {all.threads == 1 ? "" : fmt::format("{} threads", all.threads), Align::kRight},
       {"unit"}});
  const auto add = [&](const std::string& name, double a, double b, const char* unit,
                       std::string (*format)(double)) {
    table.add_row({name, format(a), all.threads == 1 ? "" : format(b), unit});
  };
  add("read L2", one.l2_bytes_per_s, all.l2_bytes_per_s, "GB/s", giga);
  add("read L3", one.l3_bytes_per_s, all.l3_bytes_per_s, "GB/s", giga);
  add("read memory", one.memory_bytes_per_s, all.memory_bytes_per_s, "GB/s", giga);
  add(fmt::format("int8 dot ({})", machine.int_operation), one.int8_ops_per_s, all.int8_ops_per_s,
      "Gop/s", giga);
  add("fp32 multiply-add", one.fp32_ops_per_s, all.fp32_ops_per_s, "Gop/s", giga);
  add("spin barrier", one.barrier_s, all.barrier_s, "ns", nanoseconds);
  add("parallel loop", one.loop_s, all.loop_s, "ns", nanoseconds);
  std::fputs(table.to_text().c_str(), stdout);
  std::printf(
      "\nBest of many short runs. Reading: wide loads over buffers of each thread's own. A "
      "multiplication and an addition are two operations.\n");
}

json::object machine_to_json(const machine::Machine& machine) {
  return {{"cpu", machine.cpu.model},
          {"microarchitecture", machine.cpu.microarchitecture},
          {"cpus", machine.cpu.cpus},
          {"l2_bytes", machine.cpu.l2_bytes},
          {"l3_bytes", machine.cpu.l3_bytes},
          {"instructions", machine.instructions},
          {"int8_operation", machine.int_operation},
          {"one_thread", rates_to_json(machine.one)},
          {"all_threads", rates_to_json(machine.all)}};
}

SpeedLimit speed_limit(const Measured& measured, const engine::StepWork& work,
                       const machine::Rates& rates) {
  machine::Work step{.bytes = work.weight_bytes};
  double tokens = 1;
  if (measured.streams == 0) {
    tokens = static_cast<double>(measured.tokens);
    step.int8_ops = tokens * work.row_ops + work.head_ops;
  } else {
    const auto streams = static_cast<double>(measured.streams);
    double kv_bytes = 0;  // the mean over the steps
    for (std::int64_t i = 0; i < measured.tokens; ++i)
      kv_bytes += work.kv_bytes(measured.depth + i);
    step.bytes += streams * kv_bytes / static_cast<double>(measured.tokens);
    step.int8_ops = streams * (work.row_ops + work.head_ops);
    tokens = streams;
  }
  const machine::Limit limit = machine::limit_of(step, rates);
  return {.tokens_per_s = tokens / limit.seconds, .bound = limit.bound};
}

}  // namespace spud::app
