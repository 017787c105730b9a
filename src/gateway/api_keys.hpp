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

// Immutable; thread-safe.
class ApiKeys {
 public:
  // No keys: everyone may come in.
  ApiKeys() = default;
  // Lines "name sha256hex"; empty lines and lines that start with '#' are skipped.
  [[nodiscard]] static Result<ApiKeys> parse(std::string_view text, std::string_view source);
  [[nodiscard]] static Result<ApiKeys> load(const std::filesystem::path& path);

  bool required() const noexcept { return !entries_.empty(); }
  // The name of the key in an Authorization header ("Bearer KEY"); nothing when it is not known.
  std::optional<std::string> find_tenant(std::string_view authorization) const;

 private:
  struct Entry {
    std::string name;
    Sha256Digest digest;
  };
  std::vector<Entry> entries_;
};

}  // namespace spud::gateway
