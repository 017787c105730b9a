// SPDX-License-Identifier: Apache-2.0
#include "console/table.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "console/text.hpp"

namespace spud::console {
namespace {

std::string padded(const std::string& cell, std::size_t width, Align align) {
  const std::string fill(width - std::min(width, display_width(cell)), ' ');
  return align == Align::kLeft ? cell + fill : fill + cell;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string markdown_cell(std::string cell) {
  for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) {
    cell.insert(at, "\\");
  }
  return cell;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  SPUD_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::to_text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  const auto line = [&](auto cell_of) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) text += "  ";
      text += padded(cell_of(c), widths[c], columns_[c].align);
    }
    return without_trailing_spaces(std::move(text)) + "\n";
  };
  std::string out = line([&](std::size_t c) { return columns_[c].title; });
  out += line([&](std::size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) out += line([&](std::size_t c) { return row[c]; });
  return out;
}

std::string Table::to_markdown() const {
  std::string out = "|";
  for (const Column& column : columns_) out += " " + markdown_cell(column.title) + " |";
  out += "\n|";
  for (const Column& column : columns_) out += column.align == Align::kLeft ? "---|" : "---:|";
  out += "\n";
  for (const auto& row : rows_) {
    out += "|";
    for (const std::string& cell : row) out += " " + markdown_cell(cell) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace spud::console
