// A file written piece by piece, whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

#include "sim/base/error.hpp"

namespace stagecraft {

/// Writes beside a path and renames into place at the end, so that a reader never sees half a file, and an existing
/// file stays as it was if writing fails. Follows links and keeps permissions. Writes directly to what is no regular
/// file, such as a pipe or a device. InputError where it cannot be written.
class FileWriter {
public:
  explicit FileWriter(const std::filesystem::path& path);
  /// Deletes what was written if finish() was not called.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void add(std::string_view text);
  void finish();

private:
  void check_written();

  Where where_;
  std::filesystem::path target_;  // the path with its links resolved
  std::filesystem::path partial_; // the file written until it is complete; "": written to the target directly
  std::filesystem::perms permissions_ = std::filesystem::perms::unknown; // those of the file to be replaced
  std::ofstream out_;
};

} // namespace stagecraft
