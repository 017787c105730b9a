// SPDX-License-Identifier: Apache-2.0
#include "console/text.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <array>

namespace spud::console {
namespace {

// Decodes one code point at `text[at]`; invalid bytes give -1 and length 1.
std::pair<utf8proc_int32_t, std::size_t> decode(std::string_view text, std::size_t at) {
  utf8proc_int32_t code = -1;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (length <= 0) return {-1, 1};
  return {code, static_cast<std::size_t>(length)};
}

// Length of the ANSI escape sequence at `at` ("\x1b[...m"), 0 when there is none.
std::size_t ansi_length(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\x1b[") return 0;
  const std::size_t end = text.find('m', at);
  return end == std::string_view::npos ? 0 : end + 1 - at;
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_duration(std::chrono::nanoseconds d) {
  const double seconds = std::chrono::duration<double>(d).count();
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string format_count(std::uint64_t n) {
  std::string digits = fmt::format("{}", n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t skip = ansi_length(text, at)) {
      at += skip;
      continue;
    }
    const auto [code, length] = decode(text, at);
    columns += code < 0 ? 1 : static_cast<std::size_t>(utf8proc_charwidth(code));
    at += length;
  }
  return columns;
}

std::string printable(std::string_view text, std::size_t max_columns) {
  std::string out;
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, length] = decode(text, at);
    std::string_view piece = text.substr(at, length);
    if (code < 0 || code < 0x20 || (code >= 0x7f && code < 0xa0)) piece = "\xef\xbf\xbd";
    if (code == '\n' || code == '\t') piece = " ";
    columns += display_width(piece);
    if (columns > max_columns) return out + "...";
    out += piece;
    at += length;
  }
  return out;
}

}  // namespace spud::console
