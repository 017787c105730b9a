// SPDX-License-Identifier: Apache-2.0
#include <concepts>
#include <type_traits>
#include <utility>

#include "formats/model_file.hpp"

namespace spud::formats {
namespace {

template <typename To>
std::optional<To> find_integer(const MetadataValue* found) noexcept {
  if (found == nullptr) return std::nullopt;
  return std::visit(
      [](const auto& value) -> std::optional<To> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::integral<T> && !std::same_as<T, bool>) {
          if (std::in_range<To>(value)) return static_cast<To>(value);
        }
        return std::nullopt;
      },
      found->value);
}

template <typename T>
const T* find_as(const MetadataValue* found) noexcept {
  return found == nullptr ? nullptr : std::get_if<T>(&found->value);
}

template <typename T>
const std::vector<T>* find_array(const MetadataValue* found) noexcept {
  const auto* array = find_as<MetadataArray>(found);
  return array == nullptr ? nullptr : std::get_if<std::vector<T>>(&array->values);
}

}  // namespace

const MetadataValue* Metadata::find(std::string_view key) const noexcept {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

void Metadata::set(std::string_view key, MetadataValue value) {
  const auto [position, inserted] = index_.try_emplace(std::string(key), entries_.size());
  if (inserted) {
    entries_.push_back({std::string(key), std::move(value)});
  } else {
    entries_[position->second].value = std::move(value);
  }
}

bool Metadata::erase(std::string_view key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return false;
  const std::size_t removed = found->second;
  index_.erase(found);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(removed));
  for (auto& [name, position] : index_) {
    if (position > removed) --position;
  }
  return true;
}

std::optional<std::uint64_t> Metadata::find_uint(std::string_view key) const noexcept {
  return find_integer<std::uint64_t>(find(key));
}

std::optional<std::int64_t> Metadata::find_int(std::string_view key) const noexcept {
  return find_integer<std::int64_t>(find(key));
}

std::optional<double> Metadata::find_number(std::string_view key) const noexcept {
  const MetadataValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  return std::visit(
      [](const auto& value) -> std::optional<double> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) {
          return static_cast<double>(value);
        } else {
          return std::nullopt;
        }
      },
      found->value);
}

std::optional<bool> Metadata::find_bool(std::string_view key) const noexcept {
  const bool* value = find_as<bool>(find(key));
  return value == nullptr ? std::nullopt : std::optional(*value);
}

const std::string* Metadata::find_string(std::string_view key) const noexcept {
  return find_as<std::string>(find(key));
}

const std::vector<std::string>* Metadata::find_strings(std::string_view key) const noexcept {
  return find_array<std::string>(find(key));
}

const std::vector<float>* Metadata::find_floats(std::string_view key) const noexcept {
  return find_array<float>(find(key));
}

const std::vector<std::int32_t>* Metadata::find_ints(std::string_view key) const noexcept {
  return find_array<std::int32_t>(find(key));
}

}  // namespace spud::formats
