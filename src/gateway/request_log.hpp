// SPDX-License-Identifier: Apache-2.0
// What was asked and what was answered, exactly enough to do it again: prompt ids, sampling
// options, seed, every token and the bits of its log-prob. `spud replay` runs it again and
// compares. It holds people's text as tokens: off unless asked for, readable by its owner only.
//
// JSON lines: a head that names the model's bytes and what else decides about results, then one
// line per generation that ended by itself. When the file exceeds its limit it becomes FILE.1 (the
// one before is gone) and begins anew, so both together take at most twice the limit.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace spud::gateway {

// What decides about an answer beside the request. Two logs with equal heads must agree.
struct RequestLogHead {
  std::string model;   // name, for people
  std::string digest;  // of the tensors' bytes
  std::string kv_type;
  std::string isa;
  std::string version;  // of the program
};

struct LoggedGeneration {
  std::string id;
  std::vector<engine::TokenId> prompt;
  engine::SamplingOptions sampling;
  std::int64_t max_tokens = 0;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::vector<engine::TokenId> tokens;
  std::vector<std::uint32_t> logprob_bits;  // of the float, one per token
};

std::string to_json_line(const RequestLogHead& head);
std::string to_json_line(const LoggedGeneration& generation);
// kInvalidArgument: not a head, or not a generation.
[[nodiscard]] Result<RequestLogHead> parse_request_log_head(std::string_view line);
[[nodiscard]] Result<LoggedGeneration> parse_logged_generation(std::string_view line);

// Server thread only. Lines go to the operating system's cache; a full disk loses lines and is
// logged once, never an answer.
class RequestLog {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RequestLog>> open(std::string path,
                                                                std::size_t max_bytes,
                                                                RequestLogHead head);
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void write(const LoggedGeneration& generation);

 private:
  RequestLog(std::string path, std::size_t max_bytes, RequestLogHead head)
      : path_(std::move(path)), max_bytes_(max_bytes), head_(std::move(head)) {}
  [[nodiscard]] Result<void> begin_file();
  void append(std::string_view line);

  std::string path_;
  std::size_t max_bytes_;
  RequestLogHead head_;
  std::FILE* file_ = nullptr;
  std::size_t bytes_ = 0;
  bool failed_ = false;
};

}  // namespace spud::gateway
