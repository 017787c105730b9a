// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "telemetry/log.hpp"
#include "telemetry/metrics.hpp"

namespace spud::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Log, WritesJsonWithNumbersUnquotedAndTextEscaped) {
  EXPECT_EQ(
      format_line(LogFormat::kJson, "T", Level::warn, "kv pages low",
                  {{"free", 3}, {"who", "a\"b\n"}, {"on", true}}),
      R"({"time":"T","level":"warn","event":"kv pages low","free":3,"who":"a\"b\u000a","on":true})");
}

TEST(Log, WritesTextWithQuotesOnlyWhereNeeded) {
  EXPECT_EQ(format_line(LogFormat::kText, "T", Level::info, "listening",
                        {{"port", 8080}, {"note", "two words"}, {"empty", ""}}),
            R"(T info  listening port=8080 note="two words" empty="")");
}

TEST(Log, HoldsBackARepeatingLineButNotOthers) {
  init_logging({.level = Level::info, .burst = 2, .window_seconds = 3600});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) SPUD_LOG(info, "again", {"i", i});
  SPUD_LOG(info, "other");
  SPUD_LOG(debug, "too quiet");
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr("again i=1"));
  EXPECT_THAT(output, Not(HasSubstr("again i=2")));
  EXPECT_THAT(output, HasSubstr("other"));
  EXPECT_THAT(output, Not(HasSubstr("too quiet")));
}

TEST(Log, AStepOfTheWallClockNeitherOpensNorClosesAWindow) {
  init_logging({.level = Level::info, .burst = 2, .window_seconds = 3600});
  ::testing::internal::CaptureStderr();
  const auto now = spdlog::log_clock::now();
  for (int i = 0; i < 9; ++i) {
    spdlog::default_logger()->log(now + i * std::chrono::hours(2), spdlog::source_loc{},
                                  spdlog::level::info, "again");
  }
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(output, '\n'), 2);
}

TEST(Log, SuggestsTheNearestLevel) {
  EXPECT_EQ(parse_level("warn").value(), Level::warn);
  EXPECT_THAT(parse_level("wran").error().message(), HasSubstr("did you mean 'warn'"));
}

TEST(Metrics, GivesTheSameMetricForTheSameNameAndLabels) {
  MetricsRegistry registry;
  registry.counter("spud_test_things_total", "Things.", {{"kind", "a"}}).add(2);
  registry.counter("spud_test_things_total", "Things.", {{"kind", "a"}}).add();
  registry.counter("spud_test_things_total", "Things.", {{"kind", "b"}}).add(7);
  const std::string text = registry.exposition();
  EXPECT_THAT(text, HasSubstr("spud_test_things_total{kind=\"a\"} 3"));
  EXPECT_THAT(text, HasSubstr("spud_test_things_total{kind=\"b\"} 7"));
  EXPECT_THAT(text, HasSubstr("# TYPE spud_test_things_total counter"));
}

TEST(Metrics, CountsObservationsIntoCumulativeBuckets) {
  MetricsRegistry registry;
  const Histogram seconds =
      registry.histogram("spud_test_wait_seconds", "Waiting.", latency_buckets());
  seconds.observe(0.0015);
  seconds.observe(3);
  const std::string text = registry.exposition();
  EXPECT_THAT(text, HasSubstr("spud_test_wait_seconds_bucket{le=\"0.002\"} 1"));
  EXPECT_THAT(text, HasSubstr("spud_test_wait_seconds_bucket{le=\"5\"} 2"));
  EXPECT_THAT(text, HasSubstr("spud_test_wait_seconds_count 2"));
}

}  // namespace
}  // namespace spud::telemetry
