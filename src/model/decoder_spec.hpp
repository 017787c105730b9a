// SPDX-License-Identifier: Apache-2.0
// What a decoder-only transformer of the usual family looks like, as data: one generic block
// (norm, attention, norm, gated feed-forward, residuals) with the options in which published
// architectures differ. An architecture file fills this in from the metadata; decoder.cpp runs it.
// Not for encoders, mixtures of experts or state-space layers: those need a graph of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace spud::model {

enum class Activation : std::uint8_t { kSilu, kGeluTanh };

// Rotary embedding of one kind of layer.
struct RopeSpec {
  double base = 10000;
  double position_scale = 1;   // angles are multiplied by it (linear scaling: 1 / factor)
  std::int64_t dim = 0;        // values of a head that are rotated
  bool interleaved = false;    // pairs (0,1),(2,3).. instead of halves
  std::string factors_tensor;  // divisors of the frequencies [dim / 2], "" = none; may be absent
};

struct LayerSpec {
  std::int64_t window = 0;  // sees the last `window` positions; 0 = all
  std::size_t rope = 0;     // index into DecoderSpec::ropes
};

struct DecoderSpec {
  HyperParameters hyper;
  Activation activation = Activation::kSilu;
  bool qk_norm = false;         // RMS norm of each query and key head before the rotation
  bool post_norms = false;      // norm of the attention and feed-forward outputs before adding
  bool qkv_bias = false;        // required; otherwise biases are used where the file has them
  float embedding_scale = 1;    // multiplies the token embedding
  float attention_scale = 0;    // multiplies q.k
  float attention_softcap = 0;  // 0 = none
  float final_softcap = 0;      // 0 = none
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;  // one per layer
};

}  // namespace spud::model
