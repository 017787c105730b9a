// SPDX-License-Identifier: Apache-2.0
// Logits reduced as they are computed, against the same rows' full logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/log_sum_exp.hpp"
#include "model/model.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::model {
namespace {

// More than one group of rows, and 300 logits: a whole tile and a part of one.
constexpr std::size_t kRows = 40;
constexpr auto kVocabulary = static_cast<std::size_t>(testing::kTinyVocabulary);

// One token each of kRows sequences.
class HeadBatch {
 public:
  explicit HeadBatch(kernels::Isa isa, const char* architecture) : loader_(1) {
    const testing::TinyModelFile file({.architecture = architecture});
    model_ = *Model::load(*formats::ModelFile::open(file.path()), loader_, {.isa_limit = isa});
    workspace_ = model_->make_workspace();
  }

  const kernels::KernelTable& kernels() const { return model_->kernel_table(); }

  // Rows with a summary fill it in; the logits of the others.
  std::vector<float> run(std::vector<LogitSummary*> summaries, concurrency::ThreadPool& pool) {
    auto cache = *kvcache::KvCache::create(model_->kv_geometry(), kRows);
    std::vector<kvcache::BlockTable> pages(kRows);
    std::vector<TokenId> tokens(kRows);
    std::vector<SequenceSlice> batch;
    for (std::size_t i = 0; i < kRows; ++i) {
      tokens[i] = static_cast<TokenId>(7 * i);
      EXPECT_TRUE(cache->grow(pages[i], 1));
      batch.push_back({.tokens = {&tokens[i], 1}, .pages = &pages[i], .summary = summaries[i]});
    }
    const auto full = static_cast<std::size_t>(std::ranges::count(summaries, nullptr));
    std::vector<float> logits(full * kVocabulary);
    model_->forward(batch, *cache, *workspace_, pool, logits);
    return logits;
  }

 private:
  concurrency::ThreadPool loader_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<Model::Workspace> workspace_;
};

void expect_summary(const LogitSummary& summary, std::span<const float> logits,
                    const kernels::KernelTable& kernels) {
  std::vector<TopLogit> expected;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    expected.push_back({.token = static_cast<TokenId>(i), .logit = logits[i]});
  }
  std::ranges::stable_sort(expected, [](auto& a, auto& b) { return a.logit > b.logit; });
  ASSERT_EQ(std::ssize(summary.top), summary.top_count);
  for (std::size_t i = 0; i < summary.top.size(); ++i) {
    EXPECT_EQ(summary.top[i].token, expected[i].token);
    EXPECT_EQ(summary.top[i].logit, expected[i].logit);
  }
  if (summary.wants_log_sum_exp) {
    EXPECT_EQ(summary.log_sum_exp,
              kernels::log_sum_exp(kernels, logits.data(), std::ssize(logits)));
  }
}

TEST(DecoderHead, SummariesHaveTheBitsOfFullLogitsWhateverTheMixOfRows) {
  concurrency::ThreadPool one(1);
  concurrency::ThreadPool two(2);
  for (const char* architecture : {"llama", "gemma3"}) {
    for (const auto isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
      HeadBatch batch(isa, architecture);
      const auto all = batch.run(std::vector<LogitSummary*>(kRows, nullptr), one);
      const auto row = [&](std::size_t i) {
        return std::span(all).subspan(i * kVocabulary, kVocabulary);
      };
      for (const std::size_t every : {1U, 2U, 7U}) {  // each so manyth row has a summary
        for (concurrency::ThreadPool* pool : {&one, &two}) {
          std::vector<LogitSummary> summaries(kRows);
          std::vector<LogitSummary*> wanted(kRows, nullptr);
          for (std::size_t i = 0; i < kRows; i += every) {
            summaries[i].top_count = i % 3 == 0 ? 1 : i % 3 == 1 ? 20 : 256;
            summaries[i].wants_log_sum_exp = i % 4 < 2;
            wanted[i] = &summaries[i];
          }
          const auto logits = batch.run(wanted, *pool);
          std::size_t at = 0;
          for (std::size_t i = 0; i < kRows; ++i) {
            if (wanted[i] != nullptr) {
              expect_summary(summaries[i], row(i), batch.kernels());
            } else {
              EXPECT_EQ(std::memcmp(logits.data() + at, row(i).data(), 4 * kVocabulary), 0);
              at += kVocabulary;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace spud::model
