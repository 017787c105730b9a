// SPDX-License-Identifier: Apache-2.0
// Gemma 3, text part. Norm weights in GGUF already contain the "1 +" of the original. Every sixth
// layer sees everything; the others see a sliding window and rotate with a base of their own.
#include <cmath>

#include "model/arch/arch.hpp"
#include "model/hyper_reader.hpp"

namespace spud::model::arch {
namespace {

constexpr std::int64_t kMaxWindow = 1 << 24;
constexpr std::size_t kPattern = 6;  // five local layers, then a global one
constexpr double kLocalRopeBase = 10000;
// The 27B model, alone in the family, scales scores by the width per head instead of the head's
// size (query_pre_attn_scalar 168 with heads of 128); the metadata does not say, the depth does.
constexpr std::int64_t kLayersOf27B = 62;

Result<void> add_windows(const HyperReader& reader, DecoderSpec& spec) {
  if (!reader.has("attention.sliding_window")) return {};
  SPUD_TRY(spec.hyper.sliding_window, reader.count("attention.sliding_window", kMaxWindow));
  RopeSpec local = spec.ropes.front();
  SPUD_TRY(local.base, reader.positive_or("rope.freq_base_swa", kLocalRopeBase));
  local.position_scale = 1;  // linear scaling is for the global layers only
  local.factors_tensor.clear();
  spec.ropes.push_back(std::move(local));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (i % kPattern == kPattern - 1) continue;
    spec.layers[i] = {.window = spec.hyper.sliding_window, .rope = 1};
  }
  return {};
}

}  // namespace

Result<DecoderSpec> describe_gemma3(const formats::ModelFile& file) {
  const HyperReader reader(file);
  SPUD_TRY(DecoderSpec spec, describe_common(reader, /*interleaved=*/false));
  spec.activation = Activation::kGeluTanh;
  spec.qk_norm = true;
  spec.post_norms = true;
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.hyper.hidden));
  if (spec.hyper.num_layers == kLayersOf27B) {
    spec.attention_scale = 1 / std::sqrt(static_cast<float>(spec.hyper.hidden) /
                                         static_cast<float>(spec.hyper.num_heads));
  }
  SPUD_TRY(const double softcap, reader.optional_positive("final_logit_softcapping"));
  spec.final_softcap = static_cast<float>(softcap);
  SPUD_TRY(add_windows(reader, spec));
  return spec;
}

}  // namespace spud::model::arch
