// SPDX-License-Identifier: Apache-2.0
// What the person's terminal can show. Read once in main (environment is looked at here and in
// config only) and handed to whoever prints.
#pragma once

#include <string>
#include <string_view>

namespace spud::console {

struct Terminal {
  bool interactive = false;  // standard error is a terminal: progress bars, else plain lines
  bool colour = false;       // standard output is a terminal and NO_COLOR is not set
  int width = 80;            // columns
};

Terminal detect_terminal();

enum class Style { kPlain, kBold, kDim, kGood, kBad, kWarning };
// `text` with ANSI codes for the style, or unchanged when the terminal shows no colour.
std::string styled(const Terminal& terminal, Style style, std::string_view text);

}  // namespace spud::console
