// A file written piece by piece, whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

#include "sim/base/error.hpp"

namespace stagecraft {

/// Writes beside a path and renames into place at the end, so that a reader never sees half a file, and one that was
/// there stays as it was where this fails; links are followed and permissions kept. What is no regular file, as a pipe
/// or a device, is written directly. InputError where it cannot be written.
class FileWriter {
public:
  explicit FileWriter(const std::filesystem::path& path);
  /// Leaves nothing where finish() was not called.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void add(std::string_view text);
  void finish();

private:
  void check_written();

  Where where_;
  std::filesystem::path target_;  // without links
  std::filesystem::path partial_; // what is written until it is whole; "": the target itself
  std::filesystem::perms permissions_ = std::filesystem::perms::unknown; // of the file that was there
  std::ofstream out_;
};

} // namespace stagecraft
