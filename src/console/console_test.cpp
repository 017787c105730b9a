// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "console/progress.hpp"
#include "console/table.hpp"
#include "console/text.hpp"

namespace spud::console {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Text, NumbersReadAsAPersonExpects) {
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(144'811'072), "144.8 MB");
  EXPECT_EQ(format_bytes(999'999), "1.0 MB");
  EXPECT_EQ(format_duration(milliseconds(850)), "850 ms");
  EXPECT_EQ(format_duration(seconds(245)), "4 min 05 s");
  EXPECT_EQ(format_duration(seconds(7260)), "2 h 01 min");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(134515008), "134,515,008");
}

TEST(Text, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("Straße"), 6u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3u);
}

TEST(Text, PrintableHidesControlCharactersAndCuts) {
  EXPECT_EQ(printable("a\x1b[2Jb\xff"), "a\xef\xbf\xbd[2Jb\xef\xbf\xbd");
  EXPECT_EQ(printable("line\nnext"), "line next");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Table, AlignsWideTextAndNumbers) {
  Table table({{"step"}, {"size", Align::kRight}});
  table.add_row({"größer", "1"});
  table.add_row({"a", "1000"});
  EXPECT_EQ(table.to_text(), "step    size\n------  ----\ngrößer     1\na       1000\n");
  EXPECT_EQ(table.to_markdown(), "| step | size |\n|---|---:|\n| größer | 1 |\n| a | 1000 |\n");
}

struct ProgressFixture : testing::Test {
  concurrency::FakeClock clock;
  std::string out;
  Progress::Writer writer = [this](std::string_view text) { out += text; };
};

TEST_F(ProgressFixture, PlainLinesAreAtMostOneEveryTenSeconds) {
  Progress progress({}, clock, writer, {.title = "work", .unit = "windows", .total = 100});
  for (int i = 1; i <= 25; ++i) {
    clock.advance(seconds(1));
    progress.update(i);
  }
  progress.finish("done");
  EXPECT_EQ(out,
            "work ...\nwork: 10/100 windows, 90.0 s left\nwork: 20/100 windows, 80.0 s "
            "left\nwork: 100 windows in 25.0 s - done\n");
}

TEST_F(ProgressFixture, ABarIsClearedWhenTheWorkIsAbandoned) {
  {
    const Progress progress({.interactive = true}, clock, writer, {.title = "work", .total = 2});
  }
  EXPECT_TRUE(out.ends_with("\r\x1b[2K"));
}

TEST_F(ProgressFixture, EstimatesFromATotalThatGrew) {
  Progress progress({}, clock, writer, {.title = "work", .total = 10});
  clock.advance(seconds(10));
  progress.update(12);  // more than was announced: nothing to estimate
  progress.set_total(40);
  clock.advance(seconds(10));
  progress.update(20);
  EXPECT_EQ(out, "work ...\nwork: 12/10\nwork: 20/40, 20.0 s left\n");
}

TEST_F(ProgressFixture, QuietWritesNothing) {
  Progress progress({}, clock, writer, {.title = "work", .total = 2, .quiet = true});
  progress.update(1);
  progress.finish();
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace spud::console
