// SPDX-License-Identifier: Apache-2.0
// A constant table of named things (architectures, passes, commands, ...). Entries have a `name`
// member. Two entries with one name do not compile; an unknown name lists the known ones.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/suggest.hpp"

namespace spud {

template <typename Entry, std::size_t N>
consteval std::array<Entry, N> make_registry(const Entry (&entries)[N]) {
  std::array<Entry, N> table{};
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (table[j].name == entries[i].name) throw "two registry entries share one name";
    }
    table[i] = entries[i];
  }
  return table;
}

// The entry called `name`, or an error that names what was asked, the nearest and all known.
// `kind` is the noun for the message: "architecture", "recipe".
template <typename Entry>
[[nodiscard]] Result<const Entry*> find_in_registry(std::span<const Entry> table,
                                                    std::string_view kind, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Entry& entry : table) {
    if (entry.name == name) return &entry;
    known.push_back(entry.name);
  }
  return fail(ErrorCode::kNotFound, "unknown {} '{}'{}", kind, name, suggestion_text(name, known));
}

}  // namespace spud
