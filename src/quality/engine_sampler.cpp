// SPDX-License-Identifier: Apache-2.0
#include "quality/engine_sampler.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>

namespace spud::quality {
namespace {

// One generation's tokens, filled on the engine thread. Guarded by `mutex` of Collector.
struct Collected {
  std::vector<TokenId> tokens;
  bool finished = false;
  std::optional<Error> error;
};

struct Collector {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Collected> all;
};

TokenId draw_plain_token(const tokenizer::Tokenizer& tokenizer, std::mt19937_64& random) {
  const auto size = tokenizer.vocabulary_size();
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto id = static_cast<TokenId>((static_cast<unsigned __int128>(random()) * size) >> 64);
    if (!tokenizer.is_special(id) && !tokenizer.token_bytes(id, false).empty()) return id;
  }
  return 0;
}

engine::GenerationRequest make_request(const tokenizer::Tokenizer& tokenizer,
                                       std::int64_t max_tokens, std::mt19937_64& random) {
  engine::GenerationRequest request;
  if (tokenizer.bos()) request.prompt.push_back(*tokenizer.bos());
  request.prompt.push_back(draw_plain_token(tokenizer, random));
  request.sampling.temperature = 1.0F;
  request.sampling.seed = random();
  request.max_tokens = max_tokens - std::ssize(request.prompt);
  request.ignore_eos = false;
  return request;
}

// The engine's queue is bounded; this many run at once.
constexpr std::int64_t kAtOnce = 16;

}  // namespace

Result<std::vector<std::vector<TokenId>>> EngineSampler::sample(std::int64_t count,
                                                                std::int64_t max_tokens,
                                                                std::uint64_t seed) {
  const tokenizer::Tokenizer& tokenizer = engine_.tokenizer();
  max_tokens = std::min(max_tokens, engine_.context_length());
  if (count < 1 || max_tokens < 4) {
    return fail(ErrorCode::kInvalidArgument,
                "sampling {} sequences of {} tokens: at least 1 of 4 tokens are needed", count,
                max_tokens);
  }
  // Shared with the sinks: a cancelled wait must not leave them with a dangling pointer.
  const auto collector = std::make_shared<Collector>();
  collector->all.resize(static_cast<std::size_t>(count));
  std::mt19937_64 random(seed);
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    const std::int64_t end = std::min(first + kAtOnce, count);
    for (std::int64_t i = first; i < end; ++i) {
      const auto slot = static_cast<std::size_t>(i);
      auto request = make_request(tokenizer, max_tokens, random);
      collector->all[slot].tokens = request.prompt;
      engine::GenerationSink sink{.on_token =
                                      [collector, slot](engine::TokenEvent&& event) {
                                        const std::lock_guard lock(collector->mutex);
                                        collector->all[slot].tokens.push_back(event.token);
                                      },
                                  .on_finish =
                                      [collector, slot](engine::FinishEvent&& event) {
                                        const std::lock_guard lock(collector->mutex);
                                        collector->all[slot].finished = true;
                                        collector->all[slot].error = std::move(event.error);
                                        collector->changed.notify_all();
                                      }};
      SPUD_TRY([[maybe_unused]] const auto id, engine_.submit(std::move(request), std::move(sink)));
    }
    std::unique_lock lock(collector->mutex);
    collector->changed.wait(lock, [&] {
      for (std::int64_t i = first; i < end; ++i) {
        if (!collector->all[static_cast<std::size_t>(i)].finished) return false;
      }
      return true;
    });
  }
  std::vector<std::vector<TokenId>> sequences;
  for (Collected& collected : collector->all) {
    if (collected.error) return std::unexpected<Error>(std::move(*collected.error));
    sequences.push_back(std::move(collected.tokens));
  }
  return sequences;
}

}  // namespace spud::quality
