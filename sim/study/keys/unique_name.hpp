// Names for what a study reads from files: no two alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stagecraft {

/// `own`, or where that is taken, `own` with the file's name in parentheses, with as many of the file's folders as it
/// takes to be free, and then a number. A name that is the file's own is not repeated.
std::string unique_name(const std::string& own, const std::filesystem::path& path,
                        const std::vector<std::string>& taken);

} // namespace stagecraft
