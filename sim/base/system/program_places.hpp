// Where files lie that were built or installed with the program. docs/decisions/0017-short-runs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stagecraft {

/// Where `file` may lie: as built, as installed, and as built, seen from a test. They follow from the program's own
/// path, so that no folder of somebody else's is among them; none where the system does not tell that path.
std::vector<std::filesystem::path> program_places(const std::string& file);

} // namespace stagecraft
