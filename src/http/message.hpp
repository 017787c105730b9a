// SPDX-License-Identifier: Apache-2.0
// HTTP requests and responses as plain values: what handlers see and make. Nothing here knows the
// wire or Beast.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace spud::http {

// In order of arrival; names compare without case. A name may occur more than once.
class Headers {
 public:
  using Entry = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(std::string_view name, std::string_view value) { entries_.emplace_back(name, value); }
  // The first one of that name.
  std::optional<std::string_view> find(std::string_view name) const noexcept;
  const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
};

struct Request {
  std::string method;  // "GET", as sent
  std::string path;    // percent-decoded, without the query: "/v1/models/a b"
  std::string query;   // as sent, without '?'
  Headers headers;
  std::string body;
  std::string remote_address;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers;  // beyond the content headers, Date and Connection, which the server writes
  std::string body;
};

std::string_view reason_phrase(int status) noexcept;

// Splits and decodes a request target ("/a%20b?x=1", or absolute "http://host/a"). Nothing when it
// is not a path or has a broken percent escape.
struct Target {
  std::string path;
  std::string query;
};
std::optional<Target> parse_target(std::string_view target);

// "http://host[:port][/base]"; https is refused with a clear sentence.
struct Url {
  std::string host;
  std::string port = "80";
  std::string path;  // without a trailing slash; may be empty
};
[[nodiscard]] Result<Url> parse_url(std::string_view text);

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace spud::http
