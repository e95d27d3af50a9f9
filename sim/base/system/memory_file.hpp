// An anonymous file in memory, by which a child process is given text and gives it back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft {

/// Unlike a pipe it does not fill up while nobody reads. std::runtime_error where it cannot be made or written.
class MemoryFile {
public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::size_t size() const;
  /// Makes `text` what a reader finds.
  void fill(std::string_view text) const;
  /// What stands in it, as far as it stands there now: whoever has it open may go on writing.
  std::string text() const;

private:
  int descriptor_;
};

} // namespace stagecraft
