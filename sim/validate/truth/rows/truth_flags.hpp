// flags.csv beside tables of measured runs: what recipes in repositories say of a run, docs/formats/truth.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// What is said of one case.
struct CaseFlags {
  Where where;
  std::map<std::string, std::string> words = {}; ///< by column; "unknown" and empty cells left out
  std::vector<std::string> not_known = {};       ///< "fsdp 'maybe'": what means nothing here
};
/// By case.
using TableFlags = std::map<std::string, CaseFlags>;

/// Reads what a file says of the table called `set`. InputError for a misspelt column, a case that stands twice, and a
/// count that is none.
TableFlags read_flags(const std::filesystem::path& file, const std::string& set);

/// What to say of the flags.csv in a folder of tables where it has cases that none of these has; "" where it has none.
std::string flags_without_row(const std::filesystem::path& folder);

} // namespace stagecraft
