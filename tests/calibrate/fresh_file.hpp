// Names of files that tests write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace stagecraft::test {

/// A path for a temporary file of this process, where no file exists yet.
inline std::string fresh_file(const std::string& name) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("stagecraft-" + std::to_string(getpid()) + name);
  std::filesystem::remove(path);
  return path.string();
}

} // namespace stagecraft::test
