// SPDX-License-Identifier: Apache-2.0
#include "http/message.hpp"

#include <algorithm>

namespace spud::http {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> Headers::find(std::string_view name) const noexcept {
  for (const Entry& entry : entries_) {
    if (equal_ignoring_case(entry.first, name)) return entry.second;
  }
  return std::nullopt;
}

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

std::optional<Target> parse_target(std::string_view target) {
  // RFC 9112 3.2.2: servers accept the absolute form too, though only proxies should see it.
  if (target.starts_with("http://")) {
    target.remove_prefix(7);
    const std::size_t slash = target.find('/');
    target = slash == target.npos ? std::string_view("/") : target.substr(slash);
  }
  if (!target.starts_with('/')) return std::nullopt;
  const std::size_t mark = target.find('?');
  std::optional<std::string> path = percent_decode(target.substr(0, mark));
  if (!path) return std::nullopt;
  return Target{.path = *std::move(path),
                .query = mark == target.npos ? "" : std::string(target.substr(mark + 1))};
}

Result<Url> parse_url(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    return fail(ErrorCode::kUnimplemented, "'{}': https is not supported yet, use http", text);
  }
  if (!rest.starts_with("http://")) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is not a URL: it must start with http://", text);
  }
  rest.remove_prefix(7);
  Url url;
  const std::size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != rest.npos) url.path = std::string(rest.substr(slash));
  while (url.path.ends_with('/')) url.path.pop_back();
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != authority.npos && authority.find(']', colon) == authority.npos;
  if (has_port) {
    url.port = std::string(authority.substr(colon + 1));
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) {
    authority = authority.substr(1, authority.size() - 2);
  }
  url.host = std::string(authority);
  if (url.host.empty() || url.port.empty() ||
      url.port.find_first_not_of("0123456789") != url.port.npos) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is not a URL: expected http://host[:port]",
                text);
  }
  return url;
}

}  // namespace spud::http
