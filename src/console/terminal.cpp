// SPDX-License-Identifier: Apache-2.0
#include "console/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace spud::console {
namespace {

bool has_text(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

Terminal detect_terminal() {
  Terminal terminal;
  const char* kind = std::getenv("TERM");
  const bool dumb = kind != nullptr && std::string_view(kind) == "dumb";
  terminal.interactive = isatty(STDERR_FILENO) == 1 && !dumb;
  // https://no-color.org: any non-empty value switches colour off.
  terminal.colour = isatty(STDOUT_FILENO) == 1 && !dumb && !has_text("NO_COLOR");
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
    terminal.width = size.ws_col;
  return terminal;
}

std::string styled(const Terminal& terminal, Style style, std::string_view text) {
  if (!terminal.colour || style == Style::kPlain) return std::string(text);
  std::string_view code;
  switch (style) {
    case Style::kPlain:
      break;
    case Style::kBold:
      code = "1";
      break;
    case Style::kDim:
      code = "2";
      break;
    case Style::kGood:
      code = "32";
      break;
    case Style::kBad:
      code = "31";
      break;
    case Style::kWarning:
      code = "33";
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace spud::console
