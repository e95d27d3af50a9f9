// Tables of named rows: one row is a name, a line of help, and what it does. Help, errors and tests come from them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// The candidate closest to `name` by edit distance if it is close enough to be a typing error, else "".
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// "unknown WHAT 'name'; did you mean 'x'? known: a, b, c".
std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known);

/// The names of a table's rows, in order. A row has a member `name` convertible to std::string.
template <class Table> std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table) {
    names.emplace_back(row.name);
  }
  return names;
}

/// The row called `name`; InputError listing the known names where there is none.
template <class Table>
const auto& find_by_name(const Table& table, std::string_view name, std::string_view what, const Where& where) {
  for (const auto& row : table) {
    if (row.name == name) {
      return row;
    }
  }
  throw InputError(where, unknown_name(what, name, names_of(table)));
}

/// The names joined by commas.
std::string join(const std::vector<std::string>& names, std::string_view separator = ", ");

} // namespace stagecraft
