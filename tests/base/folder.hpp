// A folder of its own for a test, removed at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace stagecraft::test {

class Folder {
public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("stagecraft-base-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  std::ptrdiff_t entries() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

private:
  std::filesystem::path path_;
};

} // namespace stagecraft::test
