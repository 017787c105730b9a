// SPDX-License-Identifier: Apache-2.0
// config.json <-> general.* and {arch}.*. What the forward pass would get wrong (another
// activation, an unknown rope scaling) is refused here, where the sentence can name config.json's
// own key.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/suggest.hpp"
#include "formats/hf_json.hpp"
#include "io/byte_reader.hpp"

namespace spud::formats {
namespace {

using io::printable;

struct Family {
  std::string_view hf_class;
  std::string_view architecture;  // GGUF's
  std::string_view model_type;    // config.json's
  std::string_view activation;
};

// The first of each architecture is the one that is written.
constexpr Family kFamilies[] = {
    {"LlamaForCausalLM", "llama", "llama", "silu"},
    {"MistralForCausalLM", "llama", "mistral", "silu"},
    {"Qwen2ForCausalLM", "qwen2", "qwen2", "silu"},
    {"Qwen3ForCausalLM", "qwen3", "qwen3", "silu"},
    {"Gemma3ForCausalLM", "gemma3", "gemma3_text", "gelu_pytorch_tanh"},
};

Result<const Family*> find_family(const json::object& config) {
  std::string_view name;
  if (const json::array* classes = find_array(config, "architectures")) {
    if (!classes->empty() && classes->front().is_string()) {
      name = std_view(classes->front().get_string());
    }
  }
  std::vector<std::string_view> known;
  for (const Family& family : kFamilies) {
    if (name == family.hf_class) return &family;
    known.push_back(family.hf_class);
  }
  const auto type = find_text(config, "model_type");
  for (const Family& family : kFamilies) {
    if (name.empty() && type == family.model_type) return &family;
  }
  return fail(ErrorCode::kUnimplemented, "config.json: the architecture '{}' is not supported{}",
              printable(name), suggestion_text(name, known));
}

// Whole numbers that carry over as they are. `from` may be absent.
struct CountKey {
  std::string_view from;
  std::string_view to;
  bool required;
};
constexpr CountKey kCounts[] = {
    {"num_hidden_layers", "block_count", true},
    {"max_position_embeddings", "context_length", true},
    {"hidden_size", "embedding_length", true},
    {"intermediate_size", "feed_forward_length", true},
    {"num_attention_heads", "attention.head_count", true},
    {"num_key_value_heads", "attention.head_count_kv", false},
    {"vocab_size", "vocab_size", false},
};

std::string arch_key(const Family& family, std::string_view key) {
  return fmt::format("{}.{}", family.architecture, key);
}

Result<void> read_counts(const json::object& config, const Family& family, Metadata& metadata) {
  for (const CountKey& key : kCounts) {
    const auto value = find_whole(config, key.from);
    if (!value && (key.required || find_value(config, key.from) != nullptr)) {
      return fail(ErrorCode::kDataLoss, "config.json: '{}' is missing or not a whole number",
                  key.from);
    }
    if (!value) continue;
    if (*value == 0 || *value > 0x7FFFFFFFU) {
      return fail(ErrorCode::kDataLoss, "config.json: '{}' is {}, it must be from 1 to 2147483647",
                  key.from, *value);
    }
    metadata.set(arch_key(family, key.to), {static_cast<std::uint32_t>(*value)});
  }
  if (find_whole(config, "num_key_value_heads")) return {};
  metadata.set(arch_key(family, "attention.head_count_kv"),
               *metadata.find(arch_key(family, "attention.head_count")));
  return {};
}

Result<void> read_head_length(const json::object& config, const Family& family,
                              Metadata& metadata) {
  const std::uint64_t heads = *metadata.find_uint(arch_key(family, "attention.head_count"));
  const std::uint64_t width = *metadata.find_uint(arch_key(family, "embedding_length"));
  const auto stated = find_whole(config, "head_dim");
  if (!stated && width % heads != 0) {
    return fail(ErrorCode::kDataLoss,
                "config.json: a hidden_size of {} cannot be split into {} heads", width, heads);
  }
  const auto length = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(stated.value_or(width / heads), 0x7FFFFFFFU));
  if (length == 0) return fail(ErrorCode::kDataLoss, "config.json: 'head_dim' is 0");
  if (stated) {
    metadata.set(arch_key(family, "attention.key_length"), {length});
    metadata.set(arch_key(family, "attention.value_length"), {length});
  }
  metadata.set(arch_key(family, "rope.dimension_count"), {length});
  return {};
}

// Both the older layout ("rope_theta", "rope_scaling") and the newer ("rope_parameters").
Result<void> read_rope(const json::object& config, const Family& family, Metadata& metadata) {
  const json::object* scaling = find_object(config, "rope_scaling");
  const json::object* parameters = find_object(config, "rope_parameters");
  if (parameters != nullptr) {
    // Gemma 3 nests one set per kind of layer.
    const json::object* full = find_object(*parameters, "full_attention");
    if (full != nullptr) parameters = full;
    scaling = parameters;
  }
  auto base = find_real(config, "rope_theta");
  if (!base && parameters != nullptr) base = find_real(*parameters, "rope_theta");
  const double fallback = family.architecture == "gemma3" ? 1'000'000.0 : 10'000.0;
  metadata.set(arch_key(family, "rope.freq_base"), {static_cast<float>(base.value_or(fallback))});
  if (scaling == nullptr) return {};
  const auto type =
      find_text(*scaling, "rope_type").value_or(find_text(*scaling, "type").value_or("default"));
  if (type == "default" || type == "llama3") return {};  // llama3: a tensor, made by the reader
  const auto factor = find_real(*scaling, "factor");
  if (type != "linear" || !factor) {
    return fail(ErrorCode::kUnimplemented, "config.json: the rope scaling '{}' is not supported",
                printable(type));
  }
  metadata.set(arch_key(family, "rope.scaling.type"), {std::string("linear")});
  metadata.set(arch_key(family, "rope.scaling.factor"), {static_cast<float>(*factor)});
  return {};
}

// A window that the architecture's forward pass does not know: exact up to the window only.
void limit_context(const json::object& config, const Family& family, Metadata& metadata) {
  const auto window = find_whole(config, "sliding_window");
  const bool used =
      family.model_type == "mistral" || find_flag(config, "use_sliding_window").value_or(false);
  const std::string key = arch_key(family, "context_length");
  if (!window || !used || *window == 0 || *window >= *metadata.find_uint(key)) return;
  metadata.set(key, {static_cast<std::uint32_t>(*window)});
}

Result<void> read_gemma(const json::object& config, const Family& family, Metadata& metadata) {
  const auto window = find_whole(config, "sliding_window").value_or(4096);
  metadata.set(arch_key(family, "attention.sliding_window"),
               {static_cast<std::uint32_t>(std::min<std::uint64_t>(window, 0x7FFFFFFFU))});
  for (const auto key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    const auto pattern = find_whole(config, key);
    if (pattern && *pattern != 6) {
      return fail(ErrorCode::kUnimplemented,
                  "config.json: '{}' is {}, only every 6th layer without window is supported", key,
                  *pattern);
    }
  }
  const auto scalar = find_real(config, "query_pre_attn_scalar");
  const auto head = metadata.find_uint(arch_key(family, "rope.dimension_count"));
  if (scalar && *scalar != static_cast<double>(*head)) {
    return fail(ErrorCode::kUnimplemented,
                "config.json: 'query_pre_attn_scalar' is {}, only the head's {} is supported",
                *scalar, *head);
  }
  return {};
}

Result<void> check_activation(const json::object& config, const Family& family) {
  for (const auto key : {"hidden_activation", "hidden_act"}) {
    const auto name = find_text(config, key);
    if (!name || *name == family.activation) continue;
    return fail(ErrorCode::kUnimplemented, "config.json: '{}' is '{}', {} models need '{}'", key,
                printable(*name), family.architecture, family.activation);
  }
  return {};
}

}  // namespace

Result<void> config_to_metadata(const json::object& config, Metadata& metadata) {
  SPUD_TRY(const Family* const family, find_family(config));
  metadata.set("general.architecture", {std::string(family->architecture)});
  SPUD_TRY(check_activation(config, *family));
  SPUD_TRY(read_counts(config, *family, metadata));
  SPUD_TRY(read_head_length(config, *family, metadata));
  const double epsilon = find_real(config, "rms_norm_eps").value_or(1e-6);
  metadata.set(arch_key(*family, "attention.layer_norm_rms_epsilon"),
               {static_cast<float>(epsilon)});
  SPUD_TRY(read_rope(config, *family, metadata));
  if (family->architecture == "gemma3") return read_gemma(config, *family, metadata);
  limit_context(config, *family, metadata);
  return {};
}

Result<json::object> metadata_to_config(const Metadata& metadata, bool tied) {
  const std::string* architecture = metadata.find_string("general.architecture");
  const auto* family = std::ranges::find_if(kFamilies, [&](const Family& candidate) {
    return architecture != nullptr && candidate.architecture == *architecture;
  });
  if (family == std::end(kFamilies)) {
    return fail(ErrorCode::kUnimplemented,
                "the architecture '{}' cannot be written as a Hugging Face folder",
                architecture == nullptr ? "" : printable(*architecture));
  }
  json::object config{{"architectures", json::array{json_view(family->hf_class)}},
                      {"model_type", json_view(family->model_type)}};
  for (const CountKey& key : kCounts) {
    const auto value = metadata.find_uint(arch_key(*family, key.to));
    if (!value && key.required) {
      return fail(ErrorCode::kDataLoss, "the metadata key '{}' is missing or no whole number",
                  arch_key(*family, key.to));
    }
    if (value) config[json_view(key.from)] = *value;
  }
  if (const auto head = metadata.find_uint(arch_key(*family, "attention.key_length"))) {
    config["head_dim"] = *head;
  }
  const auto real = [&](std::string_view from, std::string_view to) {
    // The shortest decimal that is this float again, as a person would have written it.
    if (const auto value = metadata.find_number(arch_key(*family, from))) {
      config[json_view(to)] = std::stod(fmt::format("{}", static_cast<float>(*value)));
    }
  };
  real("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  real("rope.freq_base", "rope_theta");
  if (const auto* type = metadata.find_string(arch_key(*family, "rope.scaling.type"));
      type != nullptr && *type != "none") {
    const auto factor = metadata.find_number(arch_key(*family, "rope.scaling.factor"));
    if (*type != "linear" || !factor) {
      return fail(ErrorCode::kUnimplemented, "the rope scaling '{}' cannot be written",
                  printable(*type));
    }
    config["rope_scaling"] = json::object{{"rope_type", "linear"}, {"factor", *factor}};
  }
  if (family->architecture == "gemma3") {
    config["sliding_window"] =
        metadata.find_uint(arch_key(*family, "attention.sliding_window")).value_or(4096);
    config["sliding_window_pattern"] = 6;
    config["rope_local_base_freq"] = 10000.0;
    const auto head = metadata.find_uint(arch_key(*family, "attention.key_length"));
    if (head) config["query_pre_attn_scalar"] = *head;
    config["hidden_activation"] = json_view(family->activation);
  } else {
    config["hidden_act"] = json_view(family->activation);
  }
  config["tie_word_embeddings"] = tied;
  config["torch_dtype"] = "float16";
  for (const auto& [from, to] : {std::pair("bos_token_id", "tokenizer.ggml.bos_token_id"),
                                 std::pair("eos_token_id", "tokenizer.ggml.eos_token_id")}) {
    if (const auto id = metadata.find_uint(to)) config[from] = *id;
  }
  return config;
}

}  // namespace spud::formats
