// SPDX-License-Identifier: Apache-2.0
// Numbers and texts as a person reads them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace spud::console {

std::string format_bytes(std::uint64_t bytes);            // "144.8 MB" (powers of 1000)
std::string format_duration(std::chrono::nanoseconds d);  // "850 ms", "12.3 s", "4 min 05 s"
std::string format_count(std::uint64_t n);                // "134,515,008"
// Columns a terminal uses for UTF-8 text (wide characters count two); ANSI codes count zero.
std::size_t display_width(std::string_view text);
// Control characters and invalid UTF-8 replaced, cut to `max_columns` with "...": safe to print
// whatever a file or a client sent.
std::string printable(std::string_view text, std::size_t max_columns = 200);

}  // namespace spud::console
