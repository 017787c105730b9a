// SPDX-License-Identifier: Apache-2.0
#include "compress/passes/mixed.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "quantize/quantize.hpp"

namespace spud::compress::int4 {
namespace {

using tensor::DType;

// Of the tighter of the divergence and perplexity margins. On our models the rise of log perplexity
// is 0.5 to 1.0 times the mean divergence (facts of quality/), so aiming with the divergence, which
// a small sample measures much more precisely, is the safe side.
constexpr double kBudgetShares[] = {0.75, 0.55, 0.4};
// The joint loss decides the mix: it gets more tokens than one tensor's ranking does.
constexpr std::int64_t kJointSampleFactor = 8;
constexpr std::size_t kRowStride = 8;
constexpr std::size_t kSaveEvery = 8;
constexpr std::uint64_t kHeavyShare = 8;
constexpr std::string_view kNote = "sensitivity";

std::string to_text(double value) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::hex).ptr};
}

// "blk.0.attn_q.weight IQ4_NL 1.8p-10", one a line: exact, so that a resume orders tensors alike.
class SensitivityNote {
 public:
  explicit SensitivityNote(Calibration& calibration) : calibration_(calibration) {
    std::string_view text = text_ = calibration.load_note(kNote);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  const std::pair<DType, double>* find(std::string_view name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? nullptr : &found->second;
  }
  Result<void> add(const std::string& name, DType type, double kld) {
    known_[name] = {type, kld};
    text_ += fmt::format("{} {} {}\n", name, tensor::to_string(type), to_text(kld));
    return ++unsaved_ >= kSaveEvery ? save() : Result<void>{};
  }
  Result<void> save() {
    unsaved_ = 0;
    return calibration_.save_note(kNote, text_);
  }

 private:
  void read_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t second = line.find(' ', first + 1);
    if (first == line.npos || second == line.npos) return;
    const auto type = tensor::find_dtype(line.substr(first + 1, second - first - 1));
    double kld = 0;
    const char* end = line.data() + line.size();
    const auto parsed = std::from_chars(line.data() + second + 1, end, kld, std::chars_format::hex);
    if (type && parsed.ptr == end) known_[std::string(line.substr(0, first))] = {*type, kld};
  }

  Calibration& calibration_;
  std::string text_;
  std::map<std::string, std::pair<DType, double>, std::less<>> known_;
  std::size_t unsaved_ = 0;
};

class MixedPlanner {
 public:
  explicit MixedPlanner(const PassContext& context)
      : context_(context), file_(context.original), note_(context.calibration) {}

  Result<TensorPlan> run() {
    SPUD_TRY(importance_, context_.calibration.importance());
    SPUD_TRY(probe_, context_.calibration.probe());
    SPUD_TRY(auto sensitivities, measure_each());
    order_ = by_harm_per_byte(std::move(sensitivities));
    SPUD_TRY(const double kld_target, target());
    SPUD_TRY(num_four_bit_, fit_most(order_, [&](std::size_t n) { return fits(n, kld_target); }));
    return plan_of(num_four_bit_);
  }

  std::string note() const {
    const auto embedding = std::find_if(order_.begin(), order_.end(), [&](const Sensitivity& s) {
      return is_embedding(file_.tensors()[s.index]);
    });
    const bool in = embedding != order_.end() &&
                    embedding - order_.begin() < static_cast<std::ptrdiff_t>(num_four_bit_);
    return fmt::format("{} of {} tensors at 4 bits, embedding at {}", num_four_bit_, order_.size(),
                       in ? 4 : 8);
  }

 private:
  const std::string& name(std::size_t index) const { return file_.tensors()[index].name; }

  // A token embedding that is not also the output is looked up, not multiplied: no activations.
  bool has_importance(std::size_t index) const { return importance_->contains(name(index)); }
  TensorChoice four_bit(std::size_t index, DType type) const {
    return {.type = type, .search_scale = true, .use_importance = has_importance(index)};
  }

  // Weighted squared error of a type on every kRowStride-th row, for choosing between the two
  // grids. No forward pass.
  Result<double> error_of(std::size_t index, DType type) const {
    const formats::TensorInfo& info = file_.tensors()[index];
    const auto bytes = file_.tensor_bytes(index);
    const std::span<const float> weights =
        has_importance(index) ? std::span<const float>(importance_->find(name(index))->second)
                              : std::span<const float>{};
    std::vector<float> before(info.columns());
    std::vector<float> after(info.columns());
    std::vector<std::byte> blocks(*tensor::bytes_for(type, info.columns()));
    const std::size_t row_bytes = bytes.size() / info.rows();
    double sum = 0;
    for (std::size_t row = 0; row < info.rows(); row += kRowStride) {
      SPUD_TRY(quantize::dequantize(info.dtype, bytes.subspan(row * row_bytes, row_bytes), before));
      SPUD_TRY(quantize::quantize_row(type, before, {.importance = weights, .search_scale = true},
                                      blocks));
      SPUD_TRY(quantize::dequantize(type, blocks, after));
      for (std::size_t i = 0; i < before.size(); ++i) {
        const double difference = static_cast<double>(before[i]) - after[i];
        sum += difference * difference * (weights.empty() ? 1.0 : weights[i]);
      }
    }
    return sum;
  }

  Result<std::vector<Sensitivity>> measure_each() {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < file_.tensors().size(); ++i) {
      if (is_quantisable(file_.tensors()[i])) indices.push_back(i);
    }
    std::vector<Sensitivity> all;
    for (const std::size_t index : indices) {
      if (context_.progress) {
        context_.progress(static_cast<std::int64_t>(all.size()),
                          static_cast<std::int64_t>(indices.size()), name(index));
      }
      SPUD_TRY(all.emplace_back(), measure_one(index));
    }
    SPUD_TRY(note_.save());
    return all;
  }

  Result<Sensitivity> measure_one(std::size_t index) {
    if (note_.find(name(index)) == nullptr) {
      SPUD_TRY(const double q4_0, error_of(index, DType::kQ4_0));
      SPUD_TRY(const double iq4_nl, error_of(index, DType::kIQ4_NL));
      const DType type = q4_0 < iq4_nl ? DType::kQ4_0 : DType::kIQ4_NL;
      SPUD_TRY(const auto loss,
               probe_->measure({{index, four_bit(index, type)}}, context_.sensitivity_tokens));
      SPUD_TRY(note_.add(name(index), type, loss.mean_kld));
    }
    const auto [type, kld] = *note_.find(name(index));
    const std::uint64_t values = file_.tensors()[index].num_values();
    return Sensitivity{
        .index = index,
        .type = type,
        .mean_kld = kld,
        .bytes_saved = *tensor::bytes_for(DType::kQ8_0, values) - *tensor::bytes_for(type, values)};
  }

  Result<double> target() const {
    SPUD_TRY(const quality::Budget budget, budget_of(context_.step));
    double limit = budget.kld_mean_max.value_or(std::numeric_limits<double>::infinity());
    if (budget.ppl_ratio_max) limit = std::min(limit, std::log(*budget.ppl_ratio_max));
    if (!std::isfinite(limit)) {
      return fail(
          ErrorCode::kInvalidArgument,
          "the mixed alternative needs a margin for perplexity_ratio or mean_kld to aim at");
    }
    const auto share = std::min<std::size_t>(static_cast<std::size_t>(context_.attempt),
                                             std::size(kBudgetShares) - 1);
    return limit * kBudgetShares[share];
  }

  Result<bool> fits(std::size_t n, double kld_target) {
    if (context_.progress) context_.progress(0, 0, fmt::format("{} tensors at 4 bits", n));
    std::map<std::size_t, TensorChoice> replaced;
    const TensorPlan plan = plan_of(n);
    for (const Sensitivity& s : order_) replaced[s.index] = plan.choices[s.index];
    SPUD_TRY(const auto loss,
             probe_->measure(replaced, kJointSampleFactor * context_.sensitivity_tokens));
    SPUD_TRY(const quality::Budget budget, budget_of(context_.step));
    return loss.mean_kld <= kld_target && loss.top1_agreement >= budget.top1_min.value_or(0.0);
  }

  TensorPlan plan_of(std::size_t n) const {
    TensorPlan plan = uniform_plan(file_, {.type = DType::kQ8_0});
    for (std::size_t i = 0; i < n; ++i) {
      plan.choices[order_[i].index] = four_bit(order_[i].index, order_[i].type);
    }
    return plan;
  }

  const PassContext& context_;
  const formats::ModelFile& file_;
  SensitivityNote note_;
  const Importance* importance_ = nullptr;
  SensitivityProbe* probe_ = nullptr;
  std::vector<Sensitivity> order_;
  std::size_t num_four_bit_ = 0;
};

}  // namespace

std::vector<Sensitivity> by_harm_per_byte(std::vector<Sensitivity> sensitivities) {
  const auto harm = [](const Sensitivity& s) {
    // A tensor that looks harmless by chance has no negative harm.
    return std::max(s.mean_kld, 0.0) /
           static_cast<double>(std::max<std::uint64_t>(s.bytes_saved, 1));
  };
  std::stable_sort(sensitivities.begin(), sensitivities.end(),
                   [&](const auto& a, const auto& b) { return harm(a) < harm(b); });
  return sensitivities;
}

Result<std::size_t> largest_fitting(std::size_t low, std::size_t high, const Fits& fits) {
  while (low < high) {
    const std::size_t middle = low + (high - low + 1) / 2;
    SPUD_TRY(const bool good, fits(middle));
    (good ? low : high) = good ? middle : middle - 1;
  }
  return low;
}

Result<std::size_t> fit_most(std::vector<Sensitivity>& order, const Fits& fits) {
  std::size_t fitting = 0;
  for (std::size_t end = order.size();; --end) {  // behind `end`: passed over
    SPUD_TRY(fitting, largest_fitting(fitting, end, fits));
    if (fitting == end) return fitting;
    const auto blocking = order.begin() + static_cast<std::ptrdiff_t>(fitting);
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(end);
    const std::uint64_t left = std::accumulate(
        blocking, last, std::uint64_t{0},
        [](std::uint64_t sum, const Sensitivity& s) { return sum + s.bytes_saved; });
    if (blocking->bytes_saved < left / kHeavyShare || blocking + 1 == last) return fitting;
    std::rotate(blocking, blocking + 1, last);
  }
}

Result<PassOutput> run_mixed(const PassContext& context, const std::filesystem::path& out) {
  MixedPlanner planner(context);
  SPUD_TRY(const TensorPlan plan, planner.run());
  SPUD_TRY(PassOutput output, run_plan(context, plan, out));
  output.note = planner.note();
  return output;
}

}  // namespace spud::compress::int4
