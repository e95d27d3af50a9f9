// A file that is written whole or not at all. sim/base has the same for the simulator; this program stands alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stagecraft::gpu {

/// Writes beside the path, under a name that nobody can foresee, and renames into place: a reader never sees half a
/// file. An interrupt waits until the file is there. Throws std::runtime_error where it cannot be written.
void write_whole(const std::string& path, const std::string& text);

} // namespace stagecraft::gpu
