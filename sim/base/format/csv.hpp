// Reading CSV with a header, as measured data comes: every cell knows its place. Writing single cells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// One value; its place is the column in the line where it begins.
struct CsvCell {
  std::string text;
  Where where;

  /// A finite number in [low, high]; InputError otherwise.
  double number(double low = 0, double high = std::numeric_limits<double>::infinity()) const;
  /// An integer in [low, high]; InputError otherwise.
  int integer(int low, int high) const;
  /// The parts between separators, each a cell of its own; an empty text has none.
  std::vector<CsvCell> split(char separator) const;
};

/// A cell's text without the blanks and tabs that people leave around it.
std::string without_blanks_around(const std::string& text);

/// The names of the columns in the first line of a text, which need not be a table, without quotes, blanks and a byte
/// order mark. To tell by them what a file is.
std::vector<std::string> csv_header(std::string_view text);

/// A table by the names of its columns. Columns that nobody asks for are allowed.
class CsvTable {
public:
  /// Reads RFC 4180: cells may be quoted, "" in quotes is a quote. An apostrophe before what would be a formula is
  /// dropped, as csv_cell() puts it there, and so are a byte order mark and blanks around names of columns. InputError
  /// for a line with too many or too few cells, an open quote, a column that stands twice, each of `needed` that is
  /// missing, and text that is not UTF-8.
  CsvTable(std::string_view text, const std::string& file, std::initializer_list<std::string_view> needed);

  std::size_t rows() const { return rows_.size(); }
  bool has(std::string_view column) const;
  /// The names of the columns, in order.
  std::vector<std::string> columns() const;
  /// `column` must be one of `needed`, or a column that the table has.
  const CsvCell& at(std::size_t row, std::string_view column) const;

private:
  std::vector<CsvCell> header_;
  std::vector<std::vector<CsvCell>> rows_;
};

/// A text as a cell, in quotes where RFC 4180 asks for them. A text that a spreadsheet would carry out as a formula,
/// since it begins with = + - @, a tab or a carriage return and is no number, gets an apostrophe in front.
std::string csv_cell(const std::string& text);
/// The shortest text that reads back as the same number.
std::string csv_cell(double value);

} // namespace stagecraft
