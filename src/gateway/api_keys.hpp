// SPDX-License-Identifier: Apache-2.0
// Who may come in: a file of names and SHA-256 digests of keys, so that the file is no secret.
// Every comparison takes the same time whether and where a key matches.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/sha256.hpp"

namespace spud::gateway {

// Who a key belongs to, and what it may claim of the machine.
struct Tenant {
  std::string name;
  double weight = 1;          // share among tenants that want it at the same time
  std::int32_t priority = 0;  // of its requests that name none
  bool operator==(const Tenant&) const = default;
};

// Immutable; thread-safe.
class ApiKeys {
 public:
  // No keys: everyone may come in.
  ApiKeys() = default;
  // Lines "name sha256hex [weight=2] [priority=-1]"; empty lines and lines that start with '#' are
  // skipped.
  [[nodiscard]] static Result<ApiKeys> parse(std::string_view text, std::string_view source);
  [[nodiscard]] static Result<ApiKeys> load(const std::filesystem::path& path);

  bool required() const noexcept { return !entries_.empty(); }
  // Of the key in an Authorization header ("Bearer KEY"); null when it is not known.
  const Tenant* find_tenant(std::string_view authorization) const;
  std::vector<std::string> tenant_names() const;

 private:
  struct Entry {
    Tenant tenant;
    Sha256Digest digest;
  };
  std::vector<Entry> entries_;
};

}  // namespace spud::gateway
