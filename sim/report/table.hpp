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

/// A line between rows, which stands for rows that are left out.
struct RowGap {
  std::size_t row = 0; ///< the row that it stands before
  std::string text;    ///< "… 37 more"
};

/// Rows may be shorter than the header, but not longer. The last column may hold long text: it is not padded.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<RowGap> gaps = {}; ///< by row
};

/// How a table is printed.
struct TableView {
  bool color = false;
  std::size_t width = 0;                  ///< of the terminal, in columns; 0: the table is as wide as it is
  bool wrap = false;                      ///< texts of the last column that do not fit go on in the next line
  std::vector<std::string> columns = {};  ///< titles of those to print, in this order, or "all"; none: all that fit
  std::string whole = "a wider terminal"; ///< what shows everything, as the line below a table says that is not whole
  std::string sort = {};                  ///< title of the column to sort by, "-TITLE": descending; "": as the rows are
};

/// The rows in the order that `sort` asks for, by what their cells show: quantities by their size, texts by their
/// letters, cells without a value last. Equal ones stay in order. InputError naming the nearest title where there is no
/// such column.
std::vector<std::size_t> sorted_rows(const Table& table, const std::string& sort);

/// The table as text: columns aligned by display width, an underlined header, no blanks at the ends of lines. Columns
/// that the view's width has no room for are left out, the last ones first but for a column of text at the end, whose
/// texts are cut; a line below names what was left out. `sort` moves rows and drops gaps. InputError for a title that
/// the table does not have.
std::string to_text(const Table& table, const TableView& view);
std::string to_text(const Table& table, bool color);

/// The table in GitHub's Markdown; of `columns`, where some are named; InputError for one that it lacks.
std::string to_markdown(const Table& table, const std::vector<std::string>& columns = {});

} // namespace stagecraft
