// The cells of a schedule file: tokens separated by commas. Blanks around tokens are dropped, empty cells skipped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

namespace stagecraft {

/// The largest number of a stage or a micro-batch that is read.
inline constexpr int kMostNumber = 1 << 24;

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

/// Calls visit(cell, column of its first character, from 1) for each cell that is not empty.
template <class Visit> void for_each_cell(std::string_view line, char separator, Visit visit) {
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    const std::string_view cell = trimmed(line.substr(at, end - at));
    if (!cell.empty()) {
      visit(cell, static_cast<int>(cell.data() - line.data()) + 1);
    }
    at = end + 1;
  }
}

/// Calls visit(line, its number, from 1) for each line that is not blank.
template <class Visit> void for_each_line(std::string_view text, Visit visit) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!trimmed(text.substr(0, end)).empty()) {
      visit(text.substr(0, end), number);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

} // namespace stagecraft
