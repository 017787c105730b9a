// SPDX-License-Identifier: Apache-2.0
// How single figures of a journal are written, the same in the terminal, Markdown and HTML.
#pragma once

#include <string>

#include "compress/journal.hpp"

namespace spud::compress::report {

// Null when the attempt has no such finding (not measured).
const quality::Finding* find_finding(const Attempt& attempt, std::string_view metric);

std::string ratio_text(const RatioInterval& ratio);  // "1.32 [1.28, 1.35]"
std::string finding_text(const Attempt& attempt, std::string_view metric, int digits);
std::string size_text(const Attempt& attempt, const Journal& journal);  // "144.8 MB (53.5 %)"
std::string attempt_name(const Attempt& attempt);                       // "mixed", "mixed, try 2"
std::string verdict_word(const Attempt& attempt);  // "accepted", "FAIL", "refused"
// The accepted attempt; null when the original stands.
const Attempt* find_accepted(const Journal& journal);

}  // namespace spud::compress::report
