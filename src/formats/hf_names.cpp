// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace spud::formats {
namespace {

struct Pair {
  std::string_view hf;
  std::string_view gguf;
  bool gemma = true;   // holds for gemma3
  bool others = true;  // holds for the other architectures
};

// Outside the layers.
constexpr Pair kModelNames[] = {
    {"model.embed_tokens.", "token_embd."},
    {"model.norm.", "output_norm."},
    {"lm_head.", "output."},
};

// After "model.layers.N." and "blk.N.".
constexpr Pair kLayerNames[] = {
    {"self_attn.q_proj.", "attn_q."},
    {"self_attn.k_proj.", "attn_k."},
    {"self_attn.v_proj.", "attn_v."},
    {"self_attn.o_proj.", "attn_output."},
    {"self_attn.q_norm.", "attn_q_norm."},
    {"self_attn.k_norm.", "attn_k_norm."},
    {"mlp.gate_proj.", "ffn_gate."},
    {"mlp.up_proj.", "ffn_up."},
    {"mlp.down_proj.", "ffn_down."},
    {"input_layernorm.", "attn_norm."},
    {"post_attention_layernorm.", "ffn_norm.", false, true},
    {"post_attention_layernorm.", "post_attention_norm.", true, false},
    {"pre_feedforward_layernorm.", "ffn_norm.", true, false},
    {"post_feedforward_layernorm.", "post_ffw_norm.", true, false},
};

constexpr std::string_view kHfLayer = "model.layers.";
constexpr std::string_view kGgufLayer = "blk.";

bool is_kind(std::string_view rest) { return rest == "weight" || rest == "bias"; }

HfChange change_of(std::string_view architecture, std::string_view gguf) {
  if (architecture == "gemma3") {
    return gguf.ends_with("norm.weight") ? HfChange::kAddOne : HfChange::kNone;
  }
  if (architecture != "llama") return HfChange::kNone;
  if (gguf.find(".attn_q.") != std::string_view::npos) return HfChange::kPermuteQueries;
  if (gguf.find(".attn_k.") != std::string_view::npos) return HfChange::kPermuteKeys;
  return HfChange::kNone;
}

// "17." of "17.rest", with `rest` set to what follows; empty when it does not begin with a number.
std::string_view take_layer(std::string_view name, std::string_view& rest) {
  std::size_t digits = 0;
  while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9') ++digits;
  if (digits == 0 || digits > 6 || digits == name.size() || name[digits] != '.') return {};
  rest = name.substr(digits + 1);
  return name.substr(0, digits + 1);
}

using Side = std::string_view Pair::*;

std::optional<std::string> translate(std::string_view architecture, std::string_view name,
                                     Side from, Side to, std::string_view from_layer,
                                     std::string_view to_layer) {
  for (const Pair& pair : kModelNames) {
    if (name.starts_with(pair.*from) && is_kind(name.substr((pair.*from).size()))) {
      return std::string(pair.*to) + std::string(name.substr((pair.*from).size()));
    }
  }
  if (!name.starts_with(from_layer)) return std::nullopt;
  std::string_view rest;
  const std::string_view layer = take_layer(name.substr(from_layer.size()), rest);
  if (layer.empty()) return std::nullopt;
  const bool gemma = architecture == "gemma3";
  for (const Pair& pair : kLayerNames) {
    if (!(gemma ? pair.gemma : pair.others) || !rest.starts_with(pair.*from)) continue;
    const std::string_view kind = rest.substr((pair.*from).size());
    if (!is_kind(kind)) continue;
    return fmt::format("{}{}{}{}", to_layer, layer, pair.*to, kind);
  }
  return std::nullopt;
}

}  // namespace

std::optional<HfName> hf_to_gguf_name(std::string_view architecture, std::string_view name) {
  auto gguf = translate(architecture, name, &Pair::hf, &Pair::gguf, kHfLayer, kGgufLayer);
  if (!gguf) return std::nullopt;
  const HfChange change = change_of(architecture, *gguf);
  return HfName{*std::move(gguf), change};
}

std::optional<HfName> gguf_to_hf_name(std::string_view architecture, std::string_view name) {
  auto hf = translate(architecture, name, &Pair::gguf, &Pair::hf, kGgufLayer, kHfLayer);
  if (!hf) return std::nullopt;
  return HfName{*std::move(hf), change_of(architecture, name)};
}

bool is_ignored_hf_tensor(std::string_view name) noexcept {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".masked_bias") ||
         name.ends_with(".attn.bias");
}

}  // namespace spud::formats
