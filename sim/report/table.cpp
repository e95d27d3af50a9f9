// SPDX-License-Identifier: Apache-2.0
#include "sim/report/table.hpp"

#include "sim/base/error.hpp"
#include "sim/report/terminal.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kGap = 2; // columns between two columns

std::string_view codes_of(Style style) {
  switch (style) {
  case Style::good:
    return "32";
  case Style::bad:
    return "31";
  case Style::dim:
    return "2";
  case Style::strong:
    return "1";
  case Style::plain:
    break;
  }
  return "";
}

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) {
    widths.push_back(display_width(column.title));
  }
  for (const auto& row : table.rows) {
    check(row.size() <= widths.size(), "a row of a table has more cells than the table has columns");
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], display_width(row[c].text));
    }
  }
  return widths;
}

class TableWriter {
public:
  TableWriter(const Table& table, bool color) : table_(table), widths_(column_widths(table)), color_(color) {}

  std::string write() {
    std::vector<Cell> titles, rule;
    for (std::size_t c = 0; c < widths_.size(); ++c) {
      const auto& [title, align] = table_.columns[c];
      titles.push_back({title, Style::strong});
      // Only the title of a last column with long text is underlined.
      const bool open_ended = c + 1 == widths_.size() && align == Align::left;
      rule.push_back({std::string(open_ended ? display_width(title) : widths_[c], '-'), Style::dim});
    }
    add_row(titles);
    add_row(rule);
    for (const auto& row : table_.rows) {
      add_row(row);
    }
    return std::move(text_);
  }

private:
  // Blanks are written only before further text, so that no line ends with blanks.
  void add_row(const std::vector<Cell>& row) {
    std::size_t owed = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t padding = widths_[c] - display_width(row[c].text);
      const bool right = table_.columns[c].align == Align::right;
      owed += right ? padding : 0;
      if (!row[c].text.empty()) {
        text_.append(owed, ' ');
        text_ += with_style(row[c].text, color_ ? codes_of(row[c].style) : "");
        owed = 0;
      }
      owed += (right ? 0 : padding) + kGap;
    }
    text_ += '\n';
  }

  const Table& table_;
  std::vector<std::size_t> widths_;
  bool color_;
  std::string text_;
};

// The table with each text on one line, where names end no line and change no colour.
Table on_lines(Table table) {
  for (Column& column : table.columns) {
    column.title = on_one_line(column.title);
  }
  for (auto& row : table.rows) {
    for (Cell& cell : row) {
      cell.text = on_one_line(cell.text);
    }
  }
  return table;
}

} // namespace

std::string to_text(const Table& table, bool color) {
  const Table shown = on_lines(table);
  return TableWriter(shown, color).write();
}

} // namespace stagecraft
