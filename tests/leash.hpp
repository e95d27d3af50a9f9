// How tests see whether processes are left.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/catch.hpp"

namespace stagecraft::test {

/// A pipe with a name in a folder of its own. Its reader finds the end as soon as no process has it open for writing,
/// so it tells whether any is left without waiting for a time.
class Leash {
public:
  Leash() {
    std::string name = (std::filesystem::temp_directory_path() / "stagecraft-leash-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    REQUIRE(mkfifo(path().c_str(), 0600) == 0);
    reader_ = open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~Leash() {
    close(reader_);
    std::filesystem::remove_all(folder_);
  }
  Leash(const Leash&) = delete;
  Leash& operator=(const Leash&) = delete;

  /// The pipe.
  std::string path() const { return folder_ / "leash"; }
  /// Whether a process has it open; reads what was written.
  bool is_held() const {
    char letter = 0;
    ssize_t count = 0;
    while ((count = read(reader_, &letter, 1)) > 0) {
    }
    return count < 0;
  }
  /// Waits, at most half as long as the commands of the tests sleep, until it is held or not.
  bool becomes(bool held) const {
    for (int i = 0; i < 3000 && is_held() != held; ++i) {
      usleep(10'000);
    }
    return is_held() == held;
  }

private:
  std::filesystem::path folder_;
  int reader_ = -1;
};

} // namespace stagecraft::test
