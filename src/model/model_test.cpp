// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <ostream>
#include <random>

#include "model/testing/tiny_model.hpp"

namespace spud::model {
namespace {

using testing::TinyModelFile;
using testing::TinyModelOptions;

std::shared_ptr<const Model> must_load(const TinyModelOptions& options,
                                       concurrency::ThreadPool& pool,
                                       kernels::Isa isa = kernels::Isa::kAvx512) {
  const TinyModelFile file(options);
  auto opened = formats::ModelFile::open(file.path());
  EXPECT_TRUE(opened.has_value()) << (opened ? "" : opened.error().message());
  auto model = Model::load(*opened, pool, {.isa_limit = isa});
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message());
  return *model;
}

std::unique_ptr<kvcache::KvCache> make_cache(const Model& model, std::size_t pages,
                                             kernels::KvType type = kernels::kDefaultKvType) {
  auto cache = kvcache::KvCache::create(model.kv_geometry(type), pages);
  EXPECT_TRUE(cache.has_value());
  // Not-a-number everywhere: what no one has written must not reach any result.
  const kvcache::Geometry geometry = (*cache)->geometry();
  for (std::uint32_t page = 0; page < pages; ++page) {
    auto* first = reinterpret_cast<std::uint16_t*>((*cache)->block(kvcache::PageId(page), 0, 0));
    std::fill_n(first, geometry.page_bytes() / sizeof(std::uint16_t), std::uint16_t{0x7E00});
  }
  return std::move(*cache);
}

std::vector<TokenId> random_tokens(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random() % static_cast<std::uint64_t>(testing::kTinyVocabulary));
  }
  return tokens;
}

// All logits of one text, one token at a time: the reference of the schedule tests.
std::vector<float> logits_one_by_one(const Model& model, std::span<const TokenId> tokens,
                                     concurrency::ThreadPool& pool,
                                     kernels::KvType kv_type = kernels::kDefaultKvType) {
  auto cache = make_cache(model, kvcache::pages_for(tokens.size()), kv_type);
  auto workspace = model.make_workspace();
  kvcache::BlockTable pages;
  EXPECT_TRUE(cache->grow(pages, tokens.size()));
  const auto vocabulary = static_cast<std::size_t>(model.hyper_parameters().vocabulary);
  std::vector<float> logits(tokens.size() * vocabulary);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const SequenceSlice slice{.tokens = tokens.subspan(i, 1),
                              .first_position = static_cast<std::int64_t>(i),
                              .pages = &pages};
    model.forward(std::span(&slice, 1), *cache, *workspace, pool,
                  std::span(logits).subspan(i * vocabulary, vocabulary));
  }
  return logits;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

struct ScheduleCase {
  const char* architecture;
  tensor::DType weights;
  kernels::Isa isa;
  kernels::KvType kv = kernels::KvType::kInt8;

  // Without it GoogleTest prints the bytes, addresses included, into the case's name.
  friend std::ostream& operator<<(std::ostream& out, const ScheduleCase& c) {
    return out << c.architecture << ' ' << tensor::to_string(c.weights) << ' '
               << kernels::to_string(c.isa) << ' ' << kernels::to_string(c.kv);
  }
};

class ModelSchedules : public ::testing::TestWithParam<ScheduleCase> {};

// Several texts advance in random pieces, in random company, on one or two threads; every row's
// logits must equal, bit for bit, those of the text alone, one token at a time.
TEST_P(ModelSchedules, LogitsDoNotDependOnBatchChunkingOrThreads) {
  const ScheduleCase& param = GetParam();
  concurrency::ThreadPool one(1);
  concurrency::ThreadPool two(2);
  const auto model =
      must_load({.architecture = param.architecture, .weights = param.weights}, one, param.isa);
  const auto vocabulary = static_cast<std::size_t>(model->hyper_parameters().vocabulary);
  const std::size_t lengths[] = {1, 33, 90, 130};
  std::vector<std::vector<TokenId>> texts;
  std::vector<std::vector<float>> expected;
  for (const std::size_t length : lengths) {
    texts.push_back(random_tokens(length, length));
    expected.push_back(logits_one_by_one(*model, texts.back(), one, param.kv));
  }

  std::mt19937_64 random(7);
  auto workspace = model->make_workspace();
  for (int round = 0; round < 6; ++round) {
    auto cache = make_cache(*model, 20, param.kv);
    std::vector<kvcache::BlockTable> tables(texts.size());
    std::vector<std::size_t> done(texts.size(), 0);
    while (true) {
      std::vector<SequenceSlice> batch;
      std::vector<std::span<const float>> want;
      std::size_t rows = 0;
      for (std::size_t s = 0; s < texts.size(); ++s) {
        const std::size_t left = texts[s].size() - done[s];
        if (left == 0 || random() % 3 == 0) continue;
        const std::size_t take = 1 + random() % std::min<std::size_t>(left, round < 3 ? 8 : 130);
        ASSERT_TRUE(cache->grow(tables[s], done[s] + take));
        const std::size_t first_logit = random() % (take + 1);
        batch.push_back({.tokens = std::span<const TokenId>(texts[s]).subspan(done[s], take),
                         .first_position = static_cast<std::int64_t>(done[s]),
                         .pages = &tables[s],
                         .first_logit = static_cast<std::int64_t>(first_logit)});
        want.push_back(
            std::span<const float>(expected[s])
                .subspan((done[s] + first_logit) * vocabulary, (take - first_logit) * vocabulary));
        rows += take - first_logit;
        done[s] += take;
      }
      std::vector<float> logits(rows * vocabulary);
      model->forward(batch, *cache, *workspace, random() % 2 == 0 ? one : two, logits);
      std::size_t at = 0;
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_TRUE(same_bits(std::span(logits).subspan(at, want[i].size()), want[i]))
            << "round " << round << " slice of " << batch[i].tokens.size() << " at "
            << batch[i].first_position;
        at += want[i].size();
      }
      std::size_t left = 0;
      for (std::size_t s = 0; s < texts.size(); ++s) left += texts[s].size() - done[s];
      if (left == 0) break;
    }
  }
}

constexpr ScheduleCase kSchedules[] = {
    {"llama", tensor::DType::kQ8_0, kernels::Isa::kScalar},
    {"llama", tensor::DType::kQ8_0, kernels::Isa::kAvx2},
    {"llama", tensor::DType::kQ8_0, kernels::Isa::kAvx512},
    {"llama", tensor::DType::kQ4_0, kernels::Isa::kAvx512},
    {"llama", tensor::DType::kQ4_1, kernels::Isa::kAvx512},
    {"llama", tensor::DType::kIQ4_NL, kernels::Isa::kAvx512},
    {"llama", tensor::DType::kF16, kernels::Isa::kAvx512},
    {"llama", tensor::DType::kF32, kernels::Isa::kAvx512},
    {"qwen2", tensor::DType::kQ8_0, kernels::Isa::kAvx512},
    {"qwen3", tensor::DType::kQ4_0, kernels::Isa::kAvx512},
    {"gemma3", tensor::DType::kQ8_0, kernels::Isa::kAvx512},
    {"llama", tensor::DType::kQ8_0, kernels::Isa::kScalar, kernels::KvType::kF16},
    {"llama", tensor::DType::kQ8_0, kernels::Isa::kAvx2, kernels::KvType::kF16},
    {"llama", tensor::DType::kQ8_0, kernels::Isa::kAvx512, kernels::KvType::kF16},
    {"gemma3", tensor::DType::kQ8_0, kernels::Isa::kAvx512, kernels::KvType::kF16},
};
INSTANTIATE_TEST_SUITE_P(All, ModelSchedules, ::testing::ValuesIn(kSchedules),
                         [](const auto& test_case) {
                           return fmt::format("{}_{}_{}_{}", test_case.param.architecture,
                                              tensor::to_string(test_case.param.weights),
                                              kernels::to_string(test_case.param.isa),
                                              kernels::to_string(test_case.param.kv));
                         });

TEST(Model, LongBatchIsCutIntoChunksWithoutChangingIt) {
  concurrency::ThreadPool pool(2);
  const auto model = must_load({}, pool);
  const auto tokens = random_tokens(400, 3);
  const auto expected = logits_one_by_one(*model, tokens, pool);
  auto cache = make_cache(*model, 13);
  auto workspace = model->make_workspace();
  kvcache::BlockTable pages;
  ASSERT_TRUE(cache->grow(pages, tokens.size()));
  std::vector<float> logits(expected.size());
  const SequenceSlice slice{.tokens = tokens, .pages = &pages};
  model->forward(std::span(&slice, 1), *cache, *workspace, pool, logits);
  EXPECT_TRUE(same_bits(logits, expected));
}

// Sequences that hold the same pages for what they have in common, in steps of one and of several
// tokens, among others: each row as if it were alone.
TEST(Model, SequencesThatShareTheirFirstPagesKeepTheirBits) {
  concurrency::ThreadPool pool(2);
  for (const auto type : {kernels::KvType::kInt8, kernels::KvType::kF16}) {
    for (const char* architecture : {"llama", "gemma3"}) {  // gemma's window slides out of them
      const auto model = must_load({.architecture = architecture}, pool);
      const auto vocabulary = static_cast<std::size_t>(model->hyper_parameters().vocabulary);
      constexpr std::size_t kShared = 64;
      constexpr std::size_t kOwn = 20;
      constexpr std::size_t kSequences = 7;  // the last shares nothing
      const auto prefix = random_tokens(kShared, 1);
      auto cache = make_cache(*model, 40, type);
      auto workspace = model->make_workspace();
      std::vector<std::vector<TokenId>> texts;
      std::vector<std::vector<float>> expected;
      std::vector<kvcache::BlockTable> tables(kSequences);
      for (std::size_t s = 0; s < kSequences; ++s) {
        texts.push_back(s + 1 < kSequences ? prefix : random_tokens(kShared, 77));
        const auto own = random_tokens(kOwn, 10 + s);
        texts.back().insert(texts.back().end(), own.begin(), own.end());
        expected.push_back(logits_one_by_one(*model, texts.back(), pool, type));
        if (s > 0 && s + 1 < kSequences) {
          for (const kvcache::PageId page : {tables[0].pages[0], tables[0].pages[1]}) {
            cache->pages().hold(page);
            tables[s].pages.push_back(page);
          }
        }
        ASSERT_TRUE(cache->grow(tables[s], kShared + kOwn));
        if (s > 0 && s + 1 < kSequences) continue;
        const SequenceSlice slice{.tokens = std::span(texts[s]).first(kShared),
                                  .pages = &tables[s],
                                  .first_logit = static_cast<std::int64_t>(kShared)};
        model->forward(std::span(&slice, 1), *cache, *workspace, pool, {});
      }
      for (std::size_t at = kShared; at < kShared + kOwn;) {
        const std::size_t take = std::min<std::size_t>(at % 3 == 0 ? 3 : 1, kShared + kOwn - at);
        std::vector<SequenceSlice> batch;
        for (const std::size_t s : {3U, 6U, 0U, 5U, 1U, 4U, 2U}) {
          batch.push_back({.tokens = std::span<const TokenId>(texts[s]).subspan(at, take),
                           .first_position = static_cast<std::int64_t>(at),
                           .pages = &tables[s]});
        }
        std::vector<float> logits(kSequences * take * vocabulary);
        model->forward(batch, *cache, *workspace, pool, logits);
        std::size_t row = 0;
        for (const std::size_t s : {3U, 6U, 0U, 5U, 1U, 4U, 2U}) {
          EXPECT_TRUE(same_bits(std::span(logits).subspan(row * vocabulary, take * vocabulary),
                                std::span(expected[s]).subspan(at * vocabulary, take * vocabulary)))
              << architecture << " sequence " << s << " at " << at;
          row += take;
        }
        at += take;
      }
    }
  }
}

TEST(Model, SlidingWindowForgetsWhatIsOutside) {
  concurrency::ThreadPool pool(1);
  // One layer, so that a window's reach is the window itself.
  const auto model =
      must_load({.architecture = "gemma3", .num_layers = 1, .sliding_window = 40}, pool);
  auto tokens = random_tokens(100, 5);
  const auto before = logits_one_by_one(*model, tokens, pool);
  tokens[20] = (tokens[20] + 1) % 256;
  const auto after = logits_one_by_one(*model, tokens, pool);
  const auto vocabulary = static_cast<std::size_t>(model->hyper_parameters().vocabulary);
  const auto row = [&](const std::vector<float>& logits, std::size_t position) {
    return std::span(logits).subspan(position * vocabulary, vocabulary);
  };
  EXPECT_TRUE(same_bits(row(before, 19), row(after, 19)));
  EXPECT_FALSE(same_bits(row(before, 59), row(after, 59)));
  EXPECT_TRUE(same_bits(row(before, 60), row(after, 60)));
}

TEST(Model, IsaVersionsAgreeClosely) {
  concurrency::ThreadPool pool(1);
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const auto tokens = random_tokens(50, 11);
    const auto scalar = must_load({.architecture = architecture}, pool, kernels::Isa::kScalar);
    const auto best = must_load({.architecture = architecture}, pool, kernels::Isa::kAvx512);
    const auto a = logits_one_by_one(*scalar, tokens, pool);
    const auto b = logits_one_by_one(*best, tokens, pool);
    double difference = 0;
    double size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      size += std::pow(static_cast<double>(a[i]), 2);
    }
    // Activations are rounded to 8 bits, so that a last-bit difference may flip a rounding.
    EXPECT_LT(std::sqrt(difference / size), 0.02) << architecture;
    EXPECT_GT(size, 0);
  }
}

TEST(Model, ObserverSeesTheInputsOfEveryProduct) {
  concurrency::ThreadPool pool(1);
  const auto model = must_load({.tied = false}, pool);
  const auto tokens = random_tokens(10, 1);
  auto cache = make_cache(*model, 1);
  auto workspace = model->make_workspace();
  kvcache::BlockTable pages;
  ASSERT_TRUE(cache->grow(pages, tokens.size()));
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> seen;
  const ActivationObserver observer = [&](std::string_view name, const float* x, std::int64_t rows,
                                          std::int64_t k) {
    seen[std::string(name)] = {rows, k};
    EXPECT_TRUE(std::isfinite(x[rows * k - 1]));
  };
  std::vector<float> logits(static_cast<std::size_t>(testing::kTinyVocabulary));
  const SequenceSlice slice{.tokens = tokens, .pages = &pages, .first_logit = 9};
  model->forward(std::span(&slice, 1), *cache, *workspace, pool, logits, &observer);
  EXPECT_EQ(seen.size(), 2 * 7 + 1U);
  EXPECT_EQ(seen["blk.1.ffn_down.weight"], std::pair(std::int64_t{10}, std::int64_t{96}));
  EXPECT_EQ(seen["blk.0.attn_v.weight"], std::pair(std::int64_t{10}, std::int64_t{64}));
  EXPECT_EQ(seen["output.weight"], std::pair(std::int64_t{1}, std::int64_t{64}));
}

TEST(Model, WeightsDoNotNeedTheFileAfterLoading) {
  concurrency::ThreadPool pool(1);
  const auto model = must_load({}, pool);  // the file is closed and deleted by now
  const auto logits = logits_one_by_one(*model, random_tokens(3, 1), pool);
  for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_GT(model->weight_bytes(), 60'000U);
}

}  // namespace
}  // namespace spud::model
