// SPDX-License-Identifier: Apache-2.0
#include "gateway/api_keys.hpp"

#include <sstream>

#include "config/config.hpp"
#include "http/message.hpp"

namespace spud::gateway {
namespace {

std::optional<Sha256Digest> parse_digest(std::string_view hex) {
  Sha256Digest digest{};
  if (hex.size() != digest.size() * 2) return std::nullopt;
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = value(hex[2 * i]);
    const int low = value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::byte>(high * 16 + low);
  }
  return digest;
}

}  // namespace

Result<ApiKeys> ApiKeys::parse(std::string_view text, std::string_view source) {
  ApiKeys keys;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string name;
    std::string hex;
    std::string rest;
    words >> name >> hex >> rest;
    if (name.empty() || name.starts_with('#')) continue;
    const auto digest = parse_digest(hex);
    if (!digest || !rest.empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "{} line {}: expected 'name sha256hex' (make the second word with: printf %s KEY "
                  "| sha256sum)",
                  source, number);
    }
    keys.entries_.push_back({.name = std::move(name), .digest = *digest});
  }
  // An empty file must not open the door.
  if (keys.entries_.empty()) {
    return fail(ErrorCode::kInvalidArgument, "{} holds no key", source);
  }
  return keys;
}

Result<ApiKeys> ApiKeys::load(const std::filesystem::path& path) {
  SPUD_TRY(const std::string text, config::read_config_file(path));
  return parse(text, path.string());
}

std::optional<std::string> ApiKeys::find_tenant(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!http::equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  std::string_view key = authorization.substr(kScheme.size());
  while (key.starts_with(' ')) key.remove_prefix(1);
  const Sha256Digest digest = sha256(std::as_bytes(std::span(key)));
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {  // no early exit: time must not tell the place
    if (equal_constant_time(digest, entry.digest)) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->name;
}

}  // namespace spud::gateway
