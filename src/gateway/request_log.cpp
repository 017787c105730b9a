// SPDX-License-Identifier: Apache-2.0
#include "gateway/request_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <boost/json.hpp>
#include <cerrno>
#include <cstring>

#include "telemetry/log.hpp"

namespace spud::gateway {
namespace {

namespace json = boost::json;

constexpr int kFormat = 1;

// Floats as their bits: a decimal would have to be read back by the same rounding.
std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
float from_bits(std::uint32_t value) { return std::bit_cast<float>(value); }

json::object sampling_to_json(const engine::SamplingOptions& sampling) {
  json::array bias;
  for (const auto& [token, value] : sampling.logit_bias) {
    bias.push_back(json::array{token, bits(value)});
  }
  return {{"temperature", bits(sampling.temperature)},
          {"top_k", sampling.top_k},
          {"top_p", bits(sampling.top_p)},
          {"min_p", bits(sampling.min_p)},
          {"presence_penalty", bits(sampling.presence_penalty)},
          {"frequency_penalty", bits(sampling.frequency_penalty)},
          {"repetition_penalty", bits(sampling.repetition_penalty)},
          {"logit_bias", std::move(bias)},
          {"seed", sampling.seed}};
}

// Throws what Boost.JSON throws when a field is missing or of another type.
engine::SamplingOptions sampling_from_json(const json::value& value) {
  const auto number = [&value](std::string_view name) {
    return from_bits(json::value_to<std::uint32_t>(value.at(name)));
  };
  engine::SamplingOptions sampling{.temperature = number("temperature"),
                                   .top_k = json::value_to<std::int32_t>(value.at("top_k")),
                                   .top_p = number("top_p"),
                                   .min_p = number("min_p"),
                                   .presence_penalty = number("presence_penalty"),
                                   .frequency_penalty = number("frequency_penalty"),
                                   .repetition_penalty = number("repetition_penalty")};
  for (const json::value& pair : value.at("logit_bias").as_array()) {
    sampling.logit_bias[json::value_to<engine::TokenId>(pair.at(0))] =
        from_bits(json::value_to<std::uint32_t>(pair.at(1)));
  }
  sampling.seed = json::value_to<std::uint64_t>(value.at("seed"));
  return sampling;
}

std::string line_of(const json::object& object) { return json::serialize(object) + "\n"; }

template <typename T, typename Read>
Result<T> parse_line(std::string_view line, std::string_view what, Read read) {
  try {
    return read(json::parse(line));
  } catch (const boost::system::system_error& error) {  // its what() names a source file
    return fail(ErrorCode::kInvalidArgument, "not {} of a request log: {}", what,
                error.code().message());
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalidArgument, "not {} of a request log: {}", what, error.what());
  }
}

}  // namespace

std::string to_json_line(const RequestLogHead& head) {
  return line_of({{"spud_request_log", kFormat},
                  {"model", head.model},
                  {"digest", head.digest},
                  {"kv_type", head.kv_type},
                  {"isa", head.isa},
                  {"version", head.version}});
}

std::string to_json_line(const LoggedGeneration& generation) {
  return line_of({{"id", generation.id},
                  {"prompt", json::value_from(generation.prompt)},
                  {"sampling", sampling_to_json(generation.sampling)},
                  {"max_tokens", generation.max_tokens},
                  {"stop", json::value_from(generation.stop)},
                  {"ignore_eos", generation.ignore_eos},
                  {"tokens", json::value_from(generation.tokens)},
                  {"logprob_bits", json::value_from(generation.logprob_bits)}});
}

Result<RequestLogHead> parse_request_log_head(std::string_view line) {
  return parse_line<RequestLogHead>(line, "the head", [](const json::value& value) {
    if (json::value_to<int>(value.at("spud_request_log")) != kFormat) {
      throw std::runtime_error("another version of the format");
    }
    const auto text = [&value](std::string_view name) {
      return json::value_to<std::string>(value.at(name));
    };
    return RequestLogHead{.model = text("model"),
                          .digest = text("digest"),
                          .kv_type = text("kv_type"),
                          .isa = text("isa"),
                          .version = text("version")};
  });
}

Result<LoggedGeneration> parse_logged_generation(std::string_view line) {
  return parse_line<LoggedGeneration>(line, "a generation", [](const json::value& value) {
    LoggedGeneration generation{
        .id = json::value_to<std::string>(value.at("id")),
        .prompt = json::value_to<std::vector<engine::TokenId>>(value.at("prompt")),
        .sampling = sampling_from_json(value.at("sampling")),
        .max_tokens = json::value_to<std::int64_t>(value.at("max_tokens")),
        .stop = json::value_to<std::vector<std::string>>(value.at("stop")),
        .ignore_eos = value.at("ignore_eos").as_bool(),
        .tokens = json::value_to<std::vector<engine::TokenId>>(value.at("tokens")),
        .logprob_bits = json::value_to<std::vector<std::uint32_t>>(value.at("logprob_bits"))};
    if (generation.tokens.size() != generation.logprob_bits.size()) {
      throw std::runtime_error("as many log-probs as tokens are needed");
    }
    return generation;
  });
}

Result<std::unique_ptr<RequestLog>> RequestLog::open(std::string path, std::size_t max_bytes,
                                                     RequestLogHead head) {
  std::unique_ptr<RequestLog> log(new RequestLog(std::move(path), max_bytes, std::move(head)));
  SPUD_TRY(log->begin_file());
  return log;
}

RequestLog::~RequestLog() {
  if (file_ != nullptr) std::fclose(file_);
}

// A file that is there already moves aside: its head may be another model's.
Result<void> RequestLog::begin_file() {
  if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  const std::string older = path_ + ".1";
  if (::access(path_.c_str(), F_OK) == 0 && std::rename(path_.c_str(), older.c_str()) != 0) {
    return fail(ErrorCode::kUnavailable, "the request log '{}' cannot be moved to '{}': {}", path_,
                older, std::strerror(errno));
  }
  const int descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor >= 0) file_ = ::fdopen(descriptor, "w");
  if (file_ == nullptr) {
    return fail(ErrorCode::kUnavailable, "the request log '{}' cannot be written: {}", path_,
                std::strerror(errno));
  }
  bytes_ = 0;
  append(to_json_line(head_));
  return {};
}

void RequestLog::append(std::string_view line) {
  const bool written =
      std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0;
  bytes_ += line.size();
  if (written || std::exchange(failed_, true)) return;
  SPUD_LOG(error, "request log cannot be written", {"path", path_}, {"why", std::strerror(errno)});
}

void RequestLog::write(const LoggedGeneration& generation) {
  if (file_ == nullptr) return;
  const std::string line = to_json_line(generation);
  if (bytes_ + line.size() > max_bytes_) {
    const Result<void> begun = begin_file();
    if (!begun) {
      SPUD_LOG(error, "request log ends", {"why", begun.error().message()});
      return;
    }
  }
  append(line);
}

}  // namespace spud::gateway
