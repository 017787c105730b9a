// SPDX-License-Identifier: Apache-2.0
#include "gateway/api_keys.hpp"

#include <charconv>
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

// "weight=2" or "priority=-1".
bool read_setting(std::string_view setting, Tenant& tenant) {
  const auto read = [](std::string_view text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  constexpr std::string_view kWeight = "weight=";
  constexpr std::string_view kPriority = "priority=";
  if (setting.starts_with(kWeight)) {
    return read(setting.substr(kWeight.size()), tenant.weight) && tenant.weight >= 0.001 &&
           tenant.weight <= 1000;
  }
  if (!setting.starts_with(kPriority)) return false;
  return read(setting.substr(kPriority.size()), tenant.priority) && tenant.priority >= -1000 &&
         tenant.priority <= 1000;
}

}  // namespace

Result<ApiKeys> ApiKeys::parse(std::string_view text, std::string_view source) {
  ApiKeys keys;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    Tenant tenant;
    std::string hex;
    words >> tenant.name >> hex;
    if (tenant.name.empty() || tenant.name.starts_with('#')) continue;
    const auto digest = parse_digest(hex);
    bool good = digest.has_value();
    for (std::string setting; good && words >> setting;) good = read_setting(setting, tenant);
    if (!good) {
      return fail(ErrorCode::kInvalidArgument,
                  "{} line {}: expected 'name sha256hex [weight=W] [priority=P]', W from 0.001 to "
                  "1000, P from -1000 to 1000 (make the second word with: printf %s KEY | "
                  "sha256sum)",
                  source, number);
    }
    keys.entries_.push_back({.tenant = std::move(tenant), .digest = *digest});
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

std::vector<std::string> ApiKeys::tenant_names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.tenant.name);
  return names;
}

const Tenant* ApiKeys::find_tenant(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!http::equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) {
    return nullptr;
  }
  std::string_view key = authorization.substr(kScheme.size());
  while (key.starts_with(' ')) key.remove_prefix(1);
  const Sha256Digest digest = sha256(std::as_bytes(std::span(key)));
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {  // no early exit: time must not tell the place
    if (equal_constant_time(digest, entry.digest)) found = &entry;
  }
  return found == nullptr ? nullptr : &found->tenant;
}

}  // namespace spud::gateway
