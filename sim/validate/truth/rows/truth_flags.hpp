// flags.csv beside tables of measured runs: what recipes in repositories say of a run, docs/formats/truth.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "sim/base/error.hpp"

namespace stagecraft {

/// What is said of one case.
struct CaseFlags {
  Where where;
  std::map<std::string, std::string> words = {}; ///< by column; "unknown" and empty cells left out
};
/// By case.
using TableFlags = std::map<std::string, CaseFlags>;

/// Reads what a file says of the table called `set`. InputError for a column that means nothing here, a case that
/// stands twice, and a value that its column cannot have.
TableFlags read_flags(const std::filesystem::path& file, const std::string& set);

/// InputError for a case of the flags that is none of the table's `cases`, nor of another table in its folder.
void check_cases(const TableFlags& flags, const std::set<std::string>& cases, const std::filesystem::path& table);

} // namespace stagecraft
