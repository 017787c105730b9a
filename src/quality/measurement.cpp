// SPDX-License-Identifier: Apache-2.0
#include "quality/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "quality/row_math.hpp"

namespace spud::quality {
namespace {

// Logits are compared in blocks of this many rows, spread over the threads.
constexpr std::int64_t kBlockRows = 32;

Error not_finite(const Sequence& sequence, std::int64_t position, std::string_view whose) {
  return Error(ErrorCode::kDataLoss,
               fmt::format("sequence '{}', position {}: the {}'s logits hold NaN or infinity",
                           sequence.id, position, whose));
}

// Gathers rows as a scorer visits them and hands them on in blocks.
class RowBlocks {
 public:
  using Handler = std::function<void(std::int64_t first, std::span<const float> rows)>;
  RowBlocks(std::int64_t width, Handler handler) : width_(width), handler_(std::move(handler)) {
    rows_.reserve(static_cast<std::size_t>(kBlockRows * width));
  }
  void add(std::int64_t position, std::span<const float> logits) {
    if (rows_.empty()) first_ = position;
    rows_.insert(rows_.end(), logits.begin(), logits.end());
    if (std::ssize(rows_) >= kBlockRows * width_) flush();
  }
  void flush() {
    if (!rows_.empty()) handler_(first_, rows_);
    rows_.clear();
  }

 private:
  std::int64_t width_;
  Handler handler_;
  std::vector<float> rows_;
  std::int64_t first_ = 0;
};

// All of a sequence's tokens but the last: nothing follows it, so its prediction is not scored.
std::span<const TokenId> scored_input(const Sequence& sequence) {
  return std::span(sequence.tokens).first(sequence.tokens.size() - 1);
}

TokenId target_of(const Sequence& sequence, std::int64_t position) {
  return sequence.tokens[static_cast<std::size_t>(position) + 1];
}

std::span<const float> row_at(std::span<const float> rows, std::int64_t row, std::int64_t width) {
  return rows.subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
}

void add_token(const RowComparison& row, SequenceMeasure& sums, std::vector<float>& token_kld) {
  ++sums.tokens;
  sums.nll_reference += row.nll_reference;
  sums.nll_candidate += row.nll_candidate;
  sums.kld += row.kld;
  sums.top1_same += row.top1_same;
  token_kld.push_back(static_cast<float>(row.kld));
}

Result<void> check_targets(const Sequence& sequence, std::int64_t vocabulary) {
  for (const TokenId token : sequence.tokens) {
    if (token >= 0 && token < vocabulary) continue;
    return fail(ErrorCode::kInvalidArgument,
                "sequence '{}' has token {}, but the model knows {} tokens; the tokenizer and the "
                "model do not belong together",
                sequence.id, token, vocabulary);
  }
  if (sequence.num_scored() == 0) {
    return fail(ErrorCode::kInvalidArgument, "sequence '{}' has nothing to score ({} tokens)",
                sequence.id, sequence.tokens.size());
  }
  return {};
}

Result<SequenceMeasure> compare_sequence(const Sequence& sequence, std::span<const float> reference,
                                         engine::Scorer& candidate, concurrency::ThreadPool& pool,
                                         std::vector<float>& token_kld) {
  const std::int64_t width = candidate.vocabulary_size();
  SequenceMeasure sums{.key = key_of(sequence)};
  std::int64_t bad_position = -1;
  RowBlocks blocks(width, [&](std::int64_t first, std::span<const float> rows) {
    const std::int64_t count = std::ssize(rows) / width;
    std::vector<RowComparison> compared(static_cast<std::size_t>(count));
    pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t position = first + r;
        compared[static_cast<std::size_t>(r)] =
            compare_rows(row_at(reference, position - sequence.first_scored, width),
                         row_at(rows, r, width), target_of(sequence, position));
      }
    });
    for (std::int64_t r = 0; r < count; ++r) {
      const RowComparison& row = compared[static_cast<std::size_t>(r)];
      if (!row.finite && bad_position < 0) bad_position = first + r;
      add_token(row, sums, token_kld);
    }
  });
  SPUD_TRY(candidate.score(
      scored_input(sequence), sequence.first_scored,
      [&](std::int64_t position, std::span<const float> logits) { blocks.add(position, logits); }));
  blocks.flush();
  if (bad_position >= 0) {
    return std::unexpected<Error>(not_finite(sequence, bad_position, "candidate"));
  }
  if (sums.tokens != sequence.num_scored()) {
    return fail(ErrorCode::kInternal, "sequence '{}': {} of {} predictions came", sequence.id,
                sums.tokens, sequence.num_scored());
  }
  return sums;
}

}  // namespace

RowComparison compare_rows(std::span<const float> reference, std::span<const float> candidate,
                           TokenId target) noexcept {
  const internal::RowSums a = internal::sum_row(reference);
  const internal::RowSums b = internal::sum_row(candidate);
  RowComparison row;
  row.finite = a.finite && b.finite;
  if (!row.finite) return row;
  const auto wanted = static_cast<std::size_t>(target);
  row.nll_reference = a.log_sum_exp - static_cast<double>(reference[wanted]);
  row.nll_candidate = b.log_sum_exp - static_cast<double>(candidate[wanted]);
  // sum p (log p - log q), with the log-sum-exps taken out of the sum.
  row.kld =
      internal::expected_difference(reference, a.max, candidate) - (a.log_sum_exp - b.log_sum_exp);
  row.top1_same = a.argmax == b.argmax;
  return row;
}

std::int64_t Measurement::num_tokens() const noexcept {
  std::int64_t sum = 0;
  for (const SequenceMeasure& s : sequences) sum += s.tokens;
  return sum;
}

namespace {
template <typename Member>
double mean_of(const Measurement& m, Member member) noexcept {
  const std::int64_t tokens = m.num_tokens();
  if (tokens == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const SequenceMeasure& s : m.sequences) sum += static_cast<double>(s.*member);
  return sum / static_cast<double>(tokens);
}
}  // namespace

double Measurement::perplexity_reference() const noexcept {
  return std::exp(mean_of(*this, &SequenceMeasure::nll_reference));
}
double Measurement::perplexity_candidate() const noexcept {
  return std::exp(mean_of(*this, &SequenceMeasure::nll_candidate));
}
double Measurement::kld_mean() const noexcept { return mean_of(*this, &SequenceMeasure::kld); }
double Measurement::top1_share() const noexcept {
  return mean_of(*this, &SequenceMeasure::top1_same);
}
double Measurement::kld_quantile(double q) const {
  if (token_kld.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<float> values = token_kld;
  const auto place =
      static_cast<std::ptrdiff_t>(std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + place);
  return static_cast<double>(values[static_cast<std::size_t>(place)]);
}

Result<std::span<const float>> ReferenceLogits::rows_of(const Sequence& sequence) {
  const std::string key = digest_of(std::span(&sequence, 1));
  for (const Entry& entry : entries_) {
    if (entry.key == key) return std::span<const float>(entry.rows);
  }
  const std::int64_t width = vocabulary_size();
  const auto size = static_cast<std::size_t>(sequence.num_scored() * width);
  const std::uint64_t bytes = size * sizeof(float);
  const bool keep = kept_bytes_ + bytes <= limit_bytes_;
  std::vector<float> fresh;
  std::vector<float>& rows = keep ? fresh : scratch_;
  rows.resize(size);
  std::int64_t visited = 0;
  std::int64_t bad_position = -1;
  SPUD_TRY(reference_->score(
      scored_input(sequence), sequence.first_scored,
      [&](std::int64_t position, std::span<const float> logits) {
        const std::int64_t row = position - sequence.first_scored;
        SPUD_CHECK(row >= 0 && row < sequence.num_scored() && std::ssize(logits) == width);
        std::ranges::copy(logits, rows.begin() + static_cast<std::ptrdiff_t>(row * width));
        const auto finite = [](float x) { return std::isfinite(x); };
        if (bad_position < 0 && !std::ranges::all_of(logits, finite)) bad_position = position;
        ++visited;
      }));
  if (bad_position >= 0) {
    return std::unexpected<Error>(not_finite(sequence, bad_position, "reference"));
  }
  if (visited != sequence.num_scored()) {
    return fail(ErrorCode::kInternal, "sequence '{}': {} of {} reference predictions came",
                sequence.id, visited, sequence.num_scored());
  }
  if (!keep) return std::span<const float>(scratch_);
  kept_bytes_ += bytes;
  return std::span<const float>(entries_.emplace_back(key, std::move(fresh)).rows);
}

Result<void> measure(const SequenceSet& set, std::size_t up_to, ReferenceLogits& reference,
                     engine::Scorer& candidate, concurrency::ThreadPool& pool,
                     Measurement& measurement, const MeasureCallback& on_progress) {
  SPUD_CHECK(up_to <= set.sequences.size());
  if (candidate.vocabulary_size() != reference.vocabulary_size()) {
    return fail(ErrorCode::kInvalidArgument,
                "the candidate predicts {} tokens and the reference {}; they can not be compared",
                candidate.vocabulary_size(), reference.vocabulary_size());
  }
  for (std::size_t i = measurement.sequences.size(); i < up_to; ++i) {
    const Sequence& sequence = set.sequences[i];
    SPUD_TRY(check_targets(sequence, candidate.vocabulary_size()));
    SPUD_TRY(const auto rows, reference.rows_of(sequence));
    SPUD_TRY(const auto sums,
             compare_sequence(sequence, rows, candidate, pool, measurement.token_kld));
    measurement.sequences.push_back(sums);
    const MeasureProgress progress{static_cast<std::int64_t>(i) + 1,
                                   static_cast<std::int64_t>(up_to), measurement.num_tokens()};
    if (on_progress && !on_progress(progress)) {
      return fail(ErrorCode::kCancelled, "the measurement was stopped");
    }
  }
  measurement.sequences_digest = digest_of(std::span(set.sequences).first(up_to));
  return {};
}

Result<void> measure_alone(const SequenceSet& set, engine::Scorer& model,
                           concurrency::ThreadPool& pool, Measurement& measurement,
                           const MeasureCallback& on_progress) {
  const std::int64_t width = model.vocabulary_size();
  for (const Sequence& sequence : set.sequences) {
    SPUD_TRY(check_targets(sequence, width));
    SequenceMeasure sums{.key = key_of(sequence)};
    std::int64_t bad_position = -1;
    RowBlocks blocks(width, [&](std::int64_t first, std::span<const float> rows) {
      const std::int64_t count = std::ssize(rows) / width;
      std::vector<internal::RowSums> summed(static_cast<std::size_t>(count));
      pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          summed[static_cast<std::size_t>(r)] = internal::sum_row(row_at(rows, r, width));
        }
      });
      for (std::int64_t r = 0; r < count; ++r) {
        const auto& row = summed[static_cast<std::size_t>(r)];
        if (!row.finite && bad_position < 0) bad_position = first + r;
        const auto target = static_cast<std::size_t>(target_of(sequence, first + r));
        sums.nll_candidate += row.log_sum_exp - static_cast<double>(row_at(rows, r, width)[target]);
        ++sums.tokens;
      }
    });
    SPUD_TRY(model.score(scored_input(sequence), sequence.first_scored,
                         [&](std::int64_t position, std::span<const float> logits) {
                           blocks.add(position, logits);
                         }));
    blocks.flush();
    if (bad_position >= 0) {
      return std::unexpected<Error>(not_finite(sequence, bad_position, "model"));
    }
    measurement.sequences.push_back(sums);
    const MeasureProgress progress{std::ssize(measurement.sequences), std::ssize(set.sequences),
                                   measurement.num_tokens()};
    if (on_progress && !on_progress(progress)) {
      return fail(ErrorCode::kCancelled, "the measurement was stopped");
    }
  }
  measurement.sequences_digest = set.digest;
  return {};
}

}  // namespace spud::quality
