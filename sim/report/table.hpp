// Text tables for terminals: results, lists, summaries of inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

enum class Align { left, right };
enum class Style { plain, good, bad, dim, strong };

struct Column {
  std::string title;
  Align align = Align::left;
};

struct Cell {
  std::string text;
  Style style = Style::plain;
};

/// Rows may be shorter than the header, but not longer. The last column may hold long text: it is not padded.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// The table as text: columns aligned by display width, an underlined header, no blanks at the ends of lines.
std::string to_text(const Table& table, bool color);

} // namespace stagecraft
