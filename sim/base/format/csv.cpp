// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

bool is_number(std::string_view text) {
  text.remove_prefix(text.starts_with('+') ? 1 : 0); // from_chars() reads no plus
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

// Whether a spreadsheet would carry out a text as a formula, without the apostrophes in front that keep it from that.
bool is_formula(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  constexpr std::string_view kBegins = "=+-@\t\r";
  return !text.empty() && kBegins.find(text.front()) != std::string_view::npos && !is_number(text);
}

// Cuts a text into rows of cells.
class Reader {
public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool at_end() const { return at_ == text_.size(); }

  std::vector<CsvCell> row() {
    std::vector<CsvCell> cells;
    for (bool more = true; more;) {
      cells.push_back({"", {file_, line_, static_cast<int>(at_ - line_begin_) + 1}});
      read_cell(cells.back());
      std::string& text = cells.back().text;
      if (text.starts_with('\'') && is_formula(text)) {
        text.erase(0, 1);
      }
      more = !at_end() && text_[at_] == ',';
      at_ += more ? 1 : 0;
    }
    end_line();
    return cells;
  }

private:
  bool at_line_end() const { return at_end() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n"; }

  void read_cell(CsvCell& cell) {
    if (!at_end() && text_[at_] == '"') {
      read_quoted(cell);
      return;
    }
    while (!at_line_end() && text_[at_] != ',') {
      cell.text += text_[at_++];
    }
  }

  void read_quoted(CsvCell& cell) {
    for (++at_; !at_end(); ++at_) {
      if (text_[at_] != '"') {
        cell.text += text_[at_];
      } else if (text_.substr(at_, 2) == "\"\"") {
        cell.text += '"';
        ++at_;
      } else {
        ++at_;
        if (!at_line_end() && text_[at_] != ',') {
          throw InputError(cell.where, "text follows a closed quote; allowed: a comma or the end of the line");
        }
        return;
      }
      if (text_[at_] == '\n') {
        next_line();
      }
    }
    throw InputError(cell.where,
                     "a quote is not closed; allowed: a quote at the end of the cell, too, and two for one in it");
  }

  void end_line() {
    at_ += !at_end() && text_[at_] == '\r' ? 1 : 0;
    if (!at_end()) {
      next_line();
      ++at_;
    }
  }

  void next_line() {
    ++line_;
    line_begin_ = at_ + 1;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
};

// Without the mark that spreadsheets put in front of UTF-8.
std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  text.remove_prefix(text.starts_with(kMark) ? kMark.size() : 0);
  return text;
}

std::string in_quotes(const std::string& text) { return "'" + excerpt(text) + "'"; }

} // namespace

std::vector<std::string> csv_header(std::string_view text) {
  constexpr std::string_view kAroundNames = "\" \t\xEF\xBB\xBF";
  std::vector<std::string> names(1);
  for (const char c : text.substr(0, text.find_first_of("\r\n"))) {
    if (c == ',') {
      names.emplace_back();
    } else if (kAroundNames.find(c) == std::string_view::npos) {
      names.back() += c;
    }
  }
  return names;
}

std::string without_blanks_around(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

double CsvCell::number(double low, double high) const {
  const bool plus = text.starts_with('+') && !text.starts_with("+-") && is_number(text); // as spreadsheets write some
  const double value = parse_number(std::string_view(text).substr(plus ? 1 : 0), where);
  if (value < low || value > high) {
    throw InputError(where,
                     in_quotes(text) + " is out of range; allowed: " + to_text(low, 0) +
                         (high < std::numeric_limits<double>::infinity() ? " to " + to_text(high, 0) : " or more"));
  }
  return value;
}

int CsvCell::integer(int low, int high) const { return parse_integer(text, low, high, where); }

std::vector<CsvCell> CsvCell::split(char separator) const {
  std::vector<CsvCell> parts;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back({text.substr(at, end - at), {where.file, where.line, where.column + static_cast<int>(at)}});
    at = end + 1;
  }
  return parts;
}

CsvTable::CsvTable(std::string_view text, const std::string& file, std::initializer_list<std::string_view> needed) {
  if (text.empty()) {
    throw InputError({file, 1, 1}, "an empty file; a line of column names is needed");
  }
  check_utf8(text, file);
  Reader reader(without_mark(text), file);
  header_ = reader.row();
  for (CsvCell& cell : header_) {
    cell.text = without_blanks_around(cell.text);
  }
  std::set<std::string_view> names;
  for (const CsvCell& cell : header_) {
    if (!names.insert(cell.text).second) {
      throw InputError(cell.where, "a second column " + in_quotes(cell.text) + "; allowed: each once");
    }
  }
  for (const std::string_view column : needed) {
    if (std::none_of(header_.begin(), header_.end(), [&](const CsvCell& cell) { return cell.text == column; })) {
      throw InputError({file, 1, 1}, "no column '" + std::string(column) + "'");
    }
  }
  while (!reader.at_end()) {
    std::vector<CsvCell> row = reader.row();
    if (row.size() == 1 && row.front().text.empty()) {
      continue;
    }
    if (row.size() != header_.size()) {
      throw InputError(row.front().where, std::to_string(row.size()) + " cells; allowed: " +
                                              std::to_string(header_.size()) + ", as the first line has");
    }
    rows_.push_back(std::move(row));
  }
}

std::vector<std::string> CsvTable::columns() const {
  std::vector<std::string> names;
  for (const CsvCell& cell : header_) {
    names.push_back(cell.text);
  }
  return names;
}

bool CsvTable::has(std::string_view column) const {
  return std::any_of(header_.begin(), header_.end(), [&](const CsvCell& cell) { return cell.text == column; });
}

const CsvCell& CsvTable::at(std::size_t row, std::string_view column) const {
  const auto found =
      std::find_if(header_.begin(), header_.end(), [&](const CsvCell& cell) { return cell.text == column; });
  check(found != header_.end(), "a column of a CSV that was not asked for");
  return rows_[row][static_cast<std::size_t>(found - header_.begin())];
}

std::string csv_cell(const std::string& text) {
  std::string safe = (is_formula(text) ? "'" : "") + text;
  if (safe.find_first_of(",\"\r\n") == std::string::npos) {
    return safe;
  }
  std::string escaped = "\"";
  for (const char c : safe) {
    escaped += c == '"' ? "\"\"" : std::string(1, c);
  }
  return escaped + "\"";
}

std::string csv_cell(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

} // namespace stagecraft
