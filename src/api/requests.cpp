// SPDX-License-Identifier: Apache-2.0
#include "api/requests.hpp"

#include <boost/json.hpp>
#include <charconv>
#include <limits>

#include "api/field_reader.hpp"
#include "api/parse.hpp"

namespace spud::api {
namespace json = boost::json;

namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

std::unexpected<Error> wrong(std::string_view param, std::string message) {
  return std::unexpected(
      Error(ErrorCode::kInvalidArgument, std::move(message)).with_param(std::string(param)));
}

void read_stop(FieldReader& reader, std::vector<std::string>& stop) {
  const json::value* value = reader.find("stop");
  if (value == nullptr) return;
  json::array list;
  if (value->is_array()) {
    list = value->get_array();
  } else {
    list.push_back(*value);
  }
  if (list.size() > kMaxStopStrings) {
    reader.complain("stop", fmt::format("'stop' has {} strings; at most {} are allowed",
                                        list.size(), kMaxStopStrings));
    return;
  }
  for (const json::value& item : list) {
    if (!item.is_string() || item.get_string().empty() ||
        item.get_string().size() > kMaxStopBytes) {
      reader.complain("stop",
                      fmt::format("'stop' must be a string or an array of strings of 1 to {} "
                                  "bytes, not {}",
                                  kMaxStopBytes, shown(item)));
      return;
    }
    stop.emplace_back(item.get_string());
  }
}

void read_logit_bias(FieldReader& reader, std::vector<std::pair<std::int32_t, float>>& logit_bias) {
  const json::value* value = reader.find("logit_bias");
  if (value == nullptr) return;
  const json::object* object = value->if_object();
  if (object == nullptr) {
    reader.complain("logit_bias", "'logit_bias' must be an object of token ids to numbers");
    return;
  }
  constexpr std::size_t kMaxBiases = 1024;
  if (object->size() > kMaxBiases) {
    reader.complain("logit_bias", fmt::format("'logit_bias' has {} entries; at most {} are allowed",
                                              object->size(), kMaxBiases));
    return;
  }
  for (const auto& [key, bias] : *object) {
    std::int32_t token = 0;
    const char* const end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, token);
    if (parsed.ec != std::errc() || parsed.ptr != end || token < 0) {
      reader.complain("logit_bias", fmt::format("'logit_bias' key {} is not a token id",
                                                shown(json::value(key))));
      return;
    }
    const double number = bias.is_number() ? bias.to_number<double>() : 1e9;
    if (!(number >= -100 && number <= 100)) {
      reader.complain("logit_bias", fmt::format("'logit_bias' of token {} must be from -100 to "
                                                "100, not {}",
                                                token, shown(bias)));
      return;
    }
    logit_bias.emplace_back(token, static_cast<float>(number));
  }
}

void read_stream_options(FieldReader& reader, GenerationParams& params) {
  const json::value* value = reader.find("stream_options");
  if (value == nullptr) return;
  const json::object* options = value->if_object();
  if (options == nullptr) {
    reader.complain("stream_options", "'stream_options' must be an object");
    return;
  }
  if (!params.stream) {
    reader.complain("stream_options", "'stream_options' is only allowed with 'stream': true");
    return;
  }
  FieldReader inner(*options);
  inner.boolean("include_usage", params.include_usage);
  if (!inner.ok()) {
    reader.complain("stream_options.include_usage", inner.result().error().message());
  }
}

// Known to OpenAI, not to us: silence would be worse than a refusal.
void refuse_unsupported(FieldReader& reader) {
  const auto refuse = [&reader](std::string_view name) {
    reader.complain(name, fmt::format("'{}' is not supported by this version", name));
  };
  for (const std::string_view name : {"tools", "functions"}) {
    const json::value* value = reader.find(name);
    if (value != nullptr && !(value->is_array() && value->get_array().empty())) refuse(name);
  }
  for (const std::string_view name : {"audio", "function_call", "guided_json", "guided_regex",
                                      "grammar", "json_schema", "web_search_options"}) {
    if (reader.find(name) != nullptr) refuse(name);
  }
  const json::value* choice = reader.find("tool_choice");
  if (choice != nullptr && *choice != "none" && *choice != "auto") refuse("tool_choice");
  const json::value* modalities = reader.find("modalities");
  if (modalities != nullptr && *modalities != json::array{"text"}) refuse("modalities");
  const json::value* format = reader.find("response_format");
  if (format == nullptr) return;
  const json::object* object = format->if_object();
  const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
  if (type == nullptr || *type != "text") {
    reader.complain("response_format",
                    fmt::format("'response_format' other than {{\"type\": \"text\"}} is not "
                                "supported by this version"));
  }
}

void read_params(FieldReader& reader, const RequestLimits& limits, GenerationParams& params) {
  reader.text("model", 512, params.model);
  reader.number("temperature", 0, 2, params.temperature);
  reader.number("top_p", 0, 1, params.top_p);
  reader.number("min_p", 0, 1, params.min_p);
  reader.integer("top_k", -1, kMaxInt, params.top_k);
  if (params.top_k < 0) params.top_k = 0;  // vLLM's spelling of "off"
  reader.number("presence_penalty", -2, 2, params.presence_penalty);
  reader.number("frequency_penalty", -2, 2, params.frequency_penalty);
  reader.number("repetition_penalty", 0.01, 10, params.repetition_penalty);
  read_logit_bias(reader, params.logit_bias);
  reader.integer("seed", std::numeric_limits<std::int64_t>::min(),
                 std::numeric_limits<std::int64_t>::max(), params.seed);
  reader.integer("n", 1, limits.max_choices, params.n);
  read_stop(reader, params.stop);
  reader.boolean("ignore_eos", params.ignore_eos);
  reader.boolean("stream", params.stream);
  read_stream_options(reader, params);
  reader.text("user", 1024, params.user);
  reader.integer("priority", -1000, 1000, params.priority);
  float timeout_s = 0;
  reader.number("timeout", 0.001, 86'400, timeout_s);
  if (timeout_s > 0) params.timeout_s = static_cast<double>(timeout_s);
  refuse_unsupported(reader);
}

void read_chat_logprobs(FieldReader& reader, GenerationParams& params) {
  bool wanted = false;
  reader.boolean("logprobs", wanted);
  std::optional<std::int64_t> top;
  reader.integer("top_logprobs", 0, kMaxTopLogprobs, top);
  if (top && !wanted) {
    reader.complain("top_logprobs", "'top_logprobs' is only allowed with 'logprobs': true");
  }
  if (wanted) params.top_logprobs = top.value_or(0);
}

std::optional<std::int32_t> as_token(const json::value& value) noexcept {
  const auto* integer = value.if_int64();
  if (integer == nullptr || *integer < 0 || *integer > kMaxInt) return std::nullopt;
  return static_cast<std::int32_t>(*integer);
}

Result<std::vector<std::int32_t>> read_tokens(const json::array& array, const std::string& param) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto token = as_token(array[i]);
    if (!token) {
      return wrong(param,
                   fmt::format("'{}[{}]' must be a token id, not {}", param, i, shown(array[i])));
    }
    tokens.push_back(*token);
  }
  return tokens;
}

Result<std::vector<Prompt>> read_prompts(const json::value* value, std::int64_t max_prompts) {
  if (value == nullptr) return wrong("prompt", "'prompt' is missing");
  if (value->is_string()) return std::vector<Prompt>{std::string(value->get_string())};
  const json::array* array = value->if_array();
  if (array == nullptr || array->empty()) {
    return wrong("prompt",
                 "'prompt' must be a string, an array of strings, an array of token ids or an "
                 "array of such arrays, and not empty");
  }
  std::vector<Prompt> prompts;
  if (array->front().is_number()) {
    SPUD_TRY(std::vector<std::int32_t> tokens, read_tokens(*array, "prompt"));
    prompts.emplace_back(std::move(tokens));
    return prompts;
  }
  if (array->size() > static_cast<std::size_t>(max_prompts)) {
    return wrong("prompt", fmt::format("'prompt' has {} entries; at most {} are allowed",
                                       array->size(), max_prompts));
  }
  for (std::size_t i = 0; i < array->size(); ++i) {
    const json::value& item = (*array)[i];
    const std::string param = fmt::format("prompt[{}]", i);
    if (item.is_string()) {
      prompts.emplace_back(std::string(item.get_string()));
    } else if (item.is_array()) {
      SPUD_TRY(std::vector<std::int32_t> tokens, read_tokens(item.get_array(), param));
      prompts.emplace_back(std::move(tokens));
    } else {
      return wrong(param, fmt::format("'{}' must be a string or an array of token ids, not {}",
                                      param, shown(item)));
    }
  }
  return prompts;
}

}  // namespace

Result<ChatRequest> parse_chat_request(std::string_view body, const RequestLimits& limits) {
  SPUD_TRY(const json::object object, parse_json_object(body));
  ChatRequest request;
  FieldReader reader(object);
  read_params(reader, limits, request.params);
  read_chat_logprobs(reader, request.params);
  reader.integer("max_tokens", 1, kMaxInt, request.params.max_tokens);
  if (reader.find("max_completion_tokens") != nullptr) {  // the newer name wins
    request.params.max_tokens_param = "max_completion_tokens";
    reader.integer("max_completion_tokens", 1, kMaxInt, request.params.max_tokens);
  }
  if (const json::value* arguments = reader.find("chat_template_kwargs")) {
    if (arguments->is_object()) {
      request.template_arguments = arguments->get_object();
    } else {
      reader.complain("chat_template_kwargs", "'chat_template_kwargs' must be an object");
    }
  }
  SPUD_TRY(reader.result());
  const json::value* messages = object.if_contains("messages");
  if (messages == nullptr) return wrong("messages", "'messages' is missing");
  SPUD_TRY(request.messages, normalize_messages(*messages));
  return request;
}

Result<CompletionRequest> parse_completion_request(std::string_view body,
                                                   const RequestLimits& limits) {
  SPUD_TRY(const json::object object, parse_json_object(body));
  CompletionRequest request;
  FieldReader reader(object);
  GenerationParams& params = request.params;
  read_params(reader, limits, params);
  reader.boolean("echo", request.echo);
  params.max_tokens = 16;  // OpenAI's default for this endpoint
  // With echo, 0 means "only score the prompt".
  reader.integer("max_tokens", request.echo ? 0 : 1, kMaxInt, params.max_tokens);
  std::optional<std::int64_t> logprobs;
  if (const json::value* value = reader.find("logprobs"); value != nullptr && !value->is_bool()) {
    reader.integer("logprobs", 0, kMaxTopLogprobs, logprobs);
  } else if (value != nullptr) {
    reader.complain("logprobs",
                    "'logprobs' must be a whole number here; true and false are for "
                    "/v1/chat/completions");
  }
  params.top_logprobs = logprobs.value_or(-1);
  std::string suffix;
  reader.text("suffix", 1u << 20, suffix);
  if (!suffix.empty()) reader.complain("suffix", "'suffix' is not supported by this version");
  std::int64_t best_of = params.n;
  reader.integer("best_of", 1, kMaxInt, best_of);
  if (best_of != params.n) {
    reader.complain("best_of", fmt::format("'best_of' ({}) must equal 'n' ({}): picking the best "
                                           "of more is not supported by this version",
                                           best_of, params.n));
  }
  SPUD_TRY(reader.result());
  SPUD_TRY(request.prompts, read_prompts(reader.find("prompt"), limits.max_prompts));
  const auto num_choices = static_cast<std::int64_t>(request.prompts.size()) * params.n;
  if (num_choices > limits.max_prompts) {
    return wrong("n", fmt::format("{} prompts times n = {} is more than {} choices",
                                  request.prompts.size(), params.n, limits.max_prompts));
  }
  return request;
}

Result<TokenizeRequest> parse_tokenize_request(std::string_view body) {
  SPUD_TRY(const json::object object, parse_json_object(body));
  TokenizeRequest request;
  FieldReader reader(object);
  if (reader.find("content") == nullptr) reader.complain("content", "'content' is missing");
  reader.text("content", body.size(), request.content);
  reader.boolean("add_special", request.add_special);
  reader.boolean("parse_special", request.parse_special);
  reader.boolean("with_pieces", request.with_pieces);
  SPUD_TRY(reader.result());
  return request;
}

Result<std::vector<std::int32_t>> parse_detokenize_request(std::string_view body) {
  SPUD_TRY(const json::object object, parse_json_object(body));
  const json::value* tokens = object.if_contains("tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    return wrong("tokens", "'tokens' must be an array of token ids");
  }
  return read_tokens(tokens->get_array(), "tokens");
}

}  // namespace spud::api
