// SPDX-License-Identifier: Apache-2.0
#include "compress/journal.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace spud::compress {
namespace {

TEST(Journal, ComesBackAsItWasWritten) {
  Journal journal{.source = "a \"b\".gguf", .model_name = "M", .dequantised = true};
  journal.steps.push_back({.pass = "int8", .status = StepStatus::kAccepted});
  journal.steps[0].attempts.push_back({.alternative = "q8_0",
                                       .state = AttemptState::kDecided,
                                       .expected_types = {{"x.weight", "Q8_0"}},
                                       .speed = SpeedComparison{.pairs = 5},
                                       .decision = Decision::kAccepted});
  quality::Finding watched{.metric = "kld_p99", .watched = true, .limit = std::nan("")};
  journal.steps[0].attempts[0].verdict =
      quality::Verdict{.kind = quality::VerdictKind::kPass, .findings = {watched}};
  const auto again = parse_journal(to_json(journal));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(to_json(*again), to_json(journal));
  EXPECT_TRUE(std::isnan(again->steps[0].attempts[0].verdict->findings[0].limit));
}

TEST(Journal, DamageIsNamed) {
  const auto journal = parse_journal("{\"source\": 3}");
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message(), ::testing::HasSubstr("source"));
  EXPECT_FALSE(parse_journal("{"));
}

TEST(Measured, ComesBackBitByBit) {
  Measured measured{.look = 2};
  auto& m = measured.measurement;
  m.sequences_digest = "d";
  for (int i = 1; i < 50; ++i) {
    m.sequences.push_back({.key = 0xFFFFFFFFFFFFFFF0ULL + i % 8,
                           .tokens = i,
                           .nll_reference = 1.0 / i,
                           .nll_candidate = std::sqrt(i),
                           .kld = 1e-17 * i,
                           .top1_same = i - 1});
    m.token_kld.push_back(0.1F / static_cast<float>(i));
  }
  measured.choices = {{.question_id = "q", .correct = true, .picked = 3}};
  const auto again = parse_measured(to_json(measured));
  ASSERT_TRUE(again) << again.error().message();
  for (std::size_t i = 0; i < m.sequences.size(); ++i) {
    EXPECT_EQ(again->measurement.sequences[i].key, m.sequences[i].key);
    EXPECT_EQ(again->measurement.sequences[i].nll_reference, m.sequences[i].nll_reference);
    EXPECT_EQ(again->measurement.sequences[i].nll_candidate, m.sequences[i].nll_candidate);
    EXPECT_EQ(again->measurement.sequences[i].kld, m.sequences[i].kld);
  }
  EXPECT_EQ(again->measurement.token_kld, m.token_kld);
  EXPECT_EQ(again->choices.front().picked, 3u);
  EXPECT_EQ(again->look, 2u);
}

}  // namespace
}  // namespace spud::compress
