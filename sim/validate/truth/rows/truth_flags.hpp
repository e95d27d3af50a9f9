// flags.csv beside tables of measured runs: what recipes in repositories say of a run, docs/formats/truth.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace stagecraft {

/// What is said of one case.
struct CaseFlags {
  std::map<std::string, std::string> words = {}; ///< by column; "unknown" and empty cells left out
  std::vector<std::string> not_known = {};       ///< "fsdp 'maybe'": what means nothing here
};
/// By case.
using TableFlags = std::map<std::string, CaseFlags>;

/// Reads what a file says of the table called `set`. InputError for a misspelt column, a case that stands twice, and a
/// count that is none.
TableFlags read_flags(const std::filesystem::path& file, const std::string& set);

/// What to say of the flags.csv in a folder where it has cases that no table of the folder has; "" where it has none.
/// `known`: cases that tables are known to have, so that only others need to be looked for.
std::string flags_without_row(const std::filesystem::path& folder, const std::set<std::string>& known);

} // namespace stagecraft
