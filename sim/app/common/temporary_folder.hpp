// A folder that exists as long as a command runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sim/base/error.hpp"

namespace stagecraft {

/// A folder for one point's files, removed with this object. Throws InputError where none can be made.
class TemporaryFolder {
public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "stagecraft-point-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) {
      throw InputError({path_, 0, 0}, "no folder can be made here");
    }
  }
  ~TemporaryFolder() {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

} // namespace stagecraft
