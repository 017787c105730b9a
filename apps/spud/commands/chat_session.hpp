// SPDX-License-Identifier: Apache-2.0
// A conversation with an OpenAI-compatible server: keeps the history, sends it, and hands out the
// answer as it streams in.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "http/message.hpp"

namespace spud::app {

struct ChatOptions {
  http::Url url;  // of the server, without /v1
  std::string model;
  std::string api_key;
  std::string system;           // the system message, "" = none
  std::int64_t max_tokens = 0;  // 0 = the server's choice
  double temperature = -1;      // < 0 = the server's choice
  std::int64_t seed = -1;       // < 0 = another one each time
};

struct ChatReply {
  std::string text;
  std::string finish_reason;
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  bool interrupted = false;  // by Ctrl-C; what came until then is kept
};

// Thread-compatible.
class ChatSession {
 public:
  explicit ChatSession(ChatOptions options);

  // Sends the history with `text` added; on success the exchange becomes part of it. Ctrl-C during
  // the call ends the answer, not the program.
  [[nodiscard]] Result<ChatReply> ask(std::string_view text,
                                      const std::function<void(std::string_view)>& on_text);
  void reset();  // forgets everything but the system message

 private:
  boost::json::object make_request() const;

  ChatOptions options_;
  boost::json::array messages_;
};

// The first model that the server lists.
[[nodiscard]] Result<std::string> find_served_model(const http::Url& url,
                                                    const std::string& api_key);

}  // namespace spud::app
