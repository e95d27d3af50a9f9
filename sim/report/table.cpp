// SPDX-License-Identifier: Apache-2.0
#include "sim/report/table.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
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

// Only the title of a last column with long text is underlined, and only its texts may be cut.
bool is_open_ended(const Table& table) { return !table.columns.empty() && table.columns.back().align == Align::left; }

// The first `width` characters of UTF-8 text.
std::string beginning(const std::string& text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size() && shown < width; ++shown) {
    do {
      ++end;
    } while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
  }
  return text.substr(0, end);
}

std::string shortened(const std::string& text, std::size_t width) {
  return display_width(text) <= width ? text : beginning(text, width - 1) + "…";
}

// The text in lines of at most `width` characters, broken at blanks where there are some.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::string rest = text;
  while (display_width(rest) > width) {
    std::string line = beginning(rest, width + 1);
    const std::size_t blank = line.rfind(' ');
    line = blank == std::string::npos || blank == 0 ? beginning(rest, width) : line.substr(0, blank);
    rest.erase(0, line.size());
    rest.erase(0, std::min(rest.find_first_not_of(' '), rest.size()));
    lines.push_back(std::move(line));
  }
  lines.push_back(rest);
  return lines;
}

class TableWriter {
public:
  /// `last` is the room for texts of an open-ended last column.
  TableWriter(const Table& table, const TableView& view, std::size_t last)
      : table_(table), widths_(column_widths(table)), color_(view.color), wrap_(view.wrap), last_(last) {}

  std::string write() {
    std::vector<Cell> titles, rule;
    for (std::size_t c = 0; c < widths_.size(); ++c) {
      const auto& [title, align] = table_.columns[c];
      titles.push_back({title, Style::strong});
      const bool open_ended = c + 1 == widths_.size() && align == Align::left;
      rule.push_back({std::string(open_ended ? display_width(title) : widths_[c], '-'), Style::dim});
    }
    add_row(titles);
    add_row(rule);
    auto gap = table_.gaps.begin();
    for (std::size_t row = 0; row <= table_.rows.size(); ++row) {
      for (; gap != table_.gaps.end() && gap->row == row; ++gap) {
        text_ += with_style(gap->text, color_ ? codes_of(Style::dim) : "") + "\n";
      }
      if (row < table_.rows.size()) {
        add_wrapped(table_.rows[row]);
      }
    }
    return std::move(text_);
  }

private:
  void add_wrapped(std::vector<Cell> row) {
    if (!is_open_ended(table_) || row.size() < widths_.size()) {
      return add_row(row);
    }
    const Cell last = row.back();
    for (const std::string& line : wrap_ ? wrapped(last.text, last_) : std::vector{shortened(last.text, last_)}) {
      row.back().text = line;
      add_row(row);
      std::for_each(row.begin(), row.end(), [](Cell& cell) { cell.text.clear(); });
    }
  }

  // Blanks are written only before further text, so that no line ends with blanks.
  void add_row(const std::vector<Cell>& row) {
    std::size_t owed = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t width = display_width(row[c].text);
      const std::size_t padding = std::max(widths_[c], width) - width;
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
  bool color_, wrap_;
  std::size_t last_;
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

// A title as people write it in a flag: "peak-memory" is "peak memory".
std::string plain_title(std::string title) {
  std::replace_if(
      title.begin(), title.end(), [](char c) { return c == '-' || c == '_'; }, ' ');
  return title;
}

std::size_t column_of(const Table& table, const std::string& name, const char* flag) {
  std::vector<std::string> titles;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (same_name(plain_title(table.columns[c].title), plain_title(name))) {
      return c;
    }
    titles.push_back(table.columns[c].title);
  }
  throw InputError({flag, 0, 0}, unknown_name("column", name, titles));
}

// The table with these columns alone, in this order.
Table with_columns(const Table& table, const std::vector<std::size_t>& columns) {
  Table chosen{{}, std::vector<std::vector<Cell>>(table.rows.size()), table.gaps};
  for (const std::size_t c : columns) {
    chosen.columns.push_back(table.columns[c]);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      chosen.rows[row].push_back(c < table.rows[row].size() ? table.rows[row][c] : Cell{});
    }
  }
  return chosen;
}

std::vector<std::size_t> all_columns(const Table& table) {
  std::vector<std::size_t> columns(table.columns.size());
  std::iota(columns.begin(), columns.end(), 0);
  return columns;
}

// The columns that fit, and the room that is left for a last column of text.
struct Fit {
  std::vector<std::size_t> columns;
  std::size_t last = std::string::npos;
};

Fit fit(const Table& table, std::size_t width) {
  constexpr std::size_t kLeastText = 24;
  const std::vector<std::size_t> widths = column_widths(table);
  const bool open_ended = is_open_ended(table);
  const std::size_t padded = widths.size() - (open_ended ? 1 : 0);
  const std::size_t text = open_ended ? std::min(widths.back(), kLeastText) + (padded > 0 ? kGap : 0) : 0;
  Fit found;
  std::size_t used = 0;
  for (std::size_t c = 0; c < padded; ++c) {
    const std::size_t more = widths[c] + (c > 0 ? kGap : 0);
    if (c > 0 && used + more + text > width) {
      break;
    }
    used += more;
    found.columns.push_back(c);
  }
  if (open_ended) {
    found.columns.push_back(padded);
    const std::size_t before = used + (padded > 0 ? kGap : 0);
    found.last = std::max(kLeastText, width - std::min(width, before));
  }
  return found;
}

// A line on what was left out to fit the width; "" where nothing was.
std::string left_out(const Table& table, const Fit& fit, const TableView& view) {
  std::vector<std::string> titles;
  for (const std::size_t c : all_columns(table)) {
    if (std::find(fit.columns.begin(), fit.columns.end(), c) == fit.columns.end()) {
      titles.push_back(table.columns[c].title);
    }
  }
  const bool is_cut = !view.wrap && is_open_ended(table) && column_widths(table).back() > fit.last;
  if (titles.empty() && !is_cut) {
    return "";
  }
  const std::string what =
      (titles.empty() ? "" : "without " + join(titles)) +
      (is_cut ? (titles.empty() ? "" : ", and ") + ("with '" + table.columns.back().title + "' cut") : "");
  const std::string line =
      "(to fit " + std::to_string(view.width) + " columns " + what + "; " + view.whole + " shows everything)";
  std::string text;
  for (const std::string& part : wrapped(line, view.width)) {
    text += with_style(part, view.color ? codes_of(Style::dim) : "") + "\n";
  }
  return text;
}

// What a cell shows as a number: "~141.89 USD", "+15 %", "12.30 ms" in SI units; nothing for other texts.
std::optional<double> amount_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of("~+"), text.size()));
  if (text.ends_with(" %")) {
    text.remove_suffix(2);
  }
  return find_amount(text);
}

} // namespace

std::vector<std::size_t> sorted_rows(const Table& table, const std::string& sort) {
  std::vector<std::size_t> order(table.rows.size());
  std::iota(order.begin(), order.end(), 0);
  if (sort.empty()) {
    return order;
  }
  const bool descending = sort.front() == '-';
  const std::size_t column = column_of(table, sort.substr(descending ? 1 : 0), "--sort");
  struct Key {
    std::optional<double> amount;
    std::string text;
  };
  std::vector<Key> keys;
  bool amounts = false;
  for (const auto& row : table.rows) {
    const std::string text = column < row.size() ? row[column].text : "";
    keys.push_back({amount_in(text), text});
    amounts = amounts || keys.back().amount.has_value();
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool has_a = amounts ? keys[a].amount.has_value() : !keys[a].text.empty();
    const bool has_b = amounts ? keys[b].amount.has_value() : !keys[b].text.empty();
    if (!has_a || !has_b) {
      return has_a && !has_b;
    }
    const Key& first = keys[descending ? b : a];
    const Key& second = keys[descending ? a : b];
    return amounts ? *first.amount < *second.amount : first.text < second.text;
  });
  return order;
}

std::string to_text(const Table& table, const TableView& view) {
  Table shown = on_lines(table);
  if (!view.sort.empty()) {
    Table sorted{shown.columns, {}};
    for (const std::size_t row : sorted_rows(shown, view.sort)) {
      sorted.rows.push_back(shown.rows[row]);
    }
    shown = std::move(sorted);
  }
  if (view.columns == std::vector<std::string>{"all"} || (view.columns.empty() && view.width == 0)) {
    return TableWriter(shown, view, std::string::npos).write();
  }
  if (!view.columns.empty()) {
    std::vector<std::size_t> columns;
    for (const std::string& name : view.columns) {
      columns.push_back(column_of(shown, name, "--columns"));
    }
    shown = with_columns(shown, columns);
    return TableWriter(shown, view, std::string::npos).write();
  }
  const Fit fitting = fit(shown, view.width);
  const Table part = with_columns(shown, fitting.columns);
  return TableWriter(part, view, fitting.last).write() + left_out(shown, fitting, view);
}

std::string to_text(const Table& table, bool color) { return to_text(table, TableView{.color = color}); }

std::string to_markdown(const Table& whole, const std::vector<std::string>& columns) {
  std::vector<std::size_t> chosen;
  for (const std::string& name : columns) {
    chosen.push_back(column_of(whole, name, "--columns"));
  }
  const Table table = with_columns(whole, columns.empty() ? all_columns(whole) : chosen);
  const auto escaped = [](const std::string& text) {
    std::string safe;
    for (const char c : on_one_line(text)) {
      safe += c == '|' || c == '\\' || c == '<' || c == '`' || c == '*' || c == '_' ? std::string("\\") + c
                                                                                    : std::string(1, c);
    }
    return safe;
  };
  std::string titles = "|";
  std::string rule = "|";
  for (const Column& column : table.columns) {
    titles += " " + escaped(column.title) + " |";
    rule += column.align == Align::right ? "---:|" : "---|";
  }
  std::string text = titles + "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      text += " " + (c < row.size() ? escaped(row[c].text) : "") + " |";
    }
    text += "\n";
  }
  for (const RowGap& gap : table.gaps) {
    text += "\n" + escaped(gap.text) + "\n";
  }
  return text;
}

} // namespace stagecraft
