// Tables of named rows: one row is a name, a line of help, and what it does. Help, errors and tests come from them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// The candidate closest to `name` by edit distance, whatever the case, if it is close enough to be a typing error,
/// else "".
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// "unknown WHAT 'name'; did you mean 'x'? known: a, b, c".
std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known);

/// What a message says was written, and what was probably meant.
struct Correction {
  std::string written, meant;
  bool operator==(const Correction&) const = default;
};

/// The correction that a message proposes in the words of unknown_name(): "… 'written'; did you mean 'meant'? …".
std::optional<Correction> correction_in(std::string_view message);

/// Whether two names are the same whatever the case of their ASCII letters.
bool same_name(std::string_view one, std::string_view other);

/// The names of a table's rows, in order. A row has a member `name` convertible to std::string.
template <class Table> std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table) {
    names.emplace_back(row.name);
  }
  return names;
}

/// The row called `name`; else the one row called so in letters of another case. InputError listing the known names
/// where there is none.
template <class Table>
const auto& find_by_name(const Table& table, std::string_view name, std::string_view what, const Where& where) {
  auto found = std::end(table);
  int alike = 0;
  for (auto row = std::begin(table); row != std::end(table); ++row) {
    if (row->name == name) {
      return *row;
    }
    if (same_name(row->name, name)) {
      found = row;
      ++alike;
    }
  }
  if (alike == 1) {
    return *found;
  }
  throw InputError(where, unknown_name(what, name, names_of(table)));
}

/// The names joined by commas.
std::string join(const std::vector<std::string>& names, std::string_view separator = ", ");

} // namespace stagecraft
