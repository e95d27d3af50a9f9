// A table of text for terminals: results, lists, sums of inputs.
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

/// Rows may be shorter than the header, never longer. The last column may hold long text: nothing is padded after it.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// Columns aligned by display width under an underlined header, a line each, none ending in blanks.
std::string to_text(const Table& table, bool color);

} // namespace stagecraft
