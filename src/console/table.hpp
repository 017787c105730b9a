// SPDX-License-Identifier: Apache-2.0
// Plain aligned tables for terminals and logs, and the same as Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spud::console {

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty; surplus cells are a bug.
  void add_row(std::vector<std::string> cells);
  bool empty() const noexcept { return rows_.empty(); }

  // Two spaces between columns, a rule under the titles; each line ends with "\n".
  std::string to_text() const;
  std::string to_markdown() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace spud::console
