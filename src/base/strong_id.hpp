// SPDX-License-Identifier: Apache-2.0
// Ids that do not mix: SequenceId and PageId are different types around one integer.
//
//   using PageId = StrongId<struct PageIdTag, std::uint32_t>;
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace spud {

template <typename Tag, typename Int = std::uint64_t>
struct StrongId {
  Int value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(Int v) : value(v) {}
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

}  // namespace spud

template <typename Tag, typename Int>
struct std::hash<spud::StrongId<Tag, Int>> {
  std::size_t operator()(const spud::StrongId<Tag, Int>& id) const noexcept {
    return std::hash<Int>{}(id.value);
  }
};
