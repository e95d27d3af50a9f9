// A file written piece by piece, whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/base/system/interrupt.hpp"

namespace stagecraft {

/// Writes beside a path, under a name that nobody can foresee, and renames into place at the end, so that a reader
/// never sees half a file, and an existing file stays as it was if writing fails or is interrupted. Follows links and
/// keeps permissions. Writes directly to what is no regular file, such as a pipe or a device. InputError where it
/// cannot be written.
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
  void open_beside(bool replaces);
  void write_out();
  void close_file();
  void remove_partial();
  [[noreturn]] void fail(int error);

  Where where_;
  std::filesystem::path target_;  // the path with its links resolved
  std::filesystem::path partial_; // the file written until it is complete; "": written to the target directly
  std::optional<UnfinishedFile> unfinished_; // removes the partial file on an interrupt
  std::string waiting_;                      // text not yet given to the system
  int file_ = -1;
};

} // namespace stagecraft
