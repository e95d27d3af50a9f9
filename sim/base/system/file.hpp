// Files: read whole, written whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/limits.hpp"

namespace stagecraft {

/// The largest input that is read, in MiB.
inline constexpr int kMostMebibytes = limits::kFileMebibytes;

/// The bytes of a regular file; InputError when it cannot be read, is a folder, or is larger than `most` MiB.
std::string read_file(const std::filesystem::path& path, int most = kMostMebibytes);

/// Writes `text` beside `path` and renames it into place, so that a reader never sees half a file; follows links and
/// keeps permissions. Writes directly to what is no regular file, such as a pipe. InputError when it cannot be written.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Makes the folder, and those above it, where there is none. InputError when it cannot be made, or is no folder.
void make_folder(const std::filesystem::path& path);

/// The file at `path`, or the files in the folder there, sorted by name; only those that `accepts` accepts.
std::vector<std::filesystem::path> files_at(const std::filesystem::path& path,
                                            bool (*accepts)(const std::filesystem::path& file));

} // namespace stagecraft
