// Names of files in one folder, made of names that strangers chose.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace stagecraft {

/// The text as a name of a file that stays in its folder: separators of folders, controls and points in front become
/// dashes, and 200 bytes at most are kept.
std::string safe_file_name(std::string_view text);

/// Names that are given out once each.
class FileNames {
public:
  /// The safe name of a text. Where it is taken: with `group` in parentheses behind it, and then a number.
  std::string unique(std::string_view text, std::string_view group = "");

private:
  std::set<std::string> taken_;
};

} // namespace stagecraft
