// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/memory_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace stagecraft {

MemoryFile::MemoryFile() : descriptor_(memfd_create("stagecraft", MFD_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw std::runtime_error("cannot make a file in memory");
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::size_t MemoryFile::size() const {
  struct stat status {};
  return fstat(descriptor_, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

void MemoryFile::fill(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t count = write(descriptor_, text.data(), text.size());
    if (count < 0 && errno != EINTR) {
      throw std::runtime_error("cannot write a file in memory");
    }
    text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
  }
  lseek(descriptor_, 0, SEEK_SET);
}

std::string MemoryFile::text() const {
  std::string text(size(), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count == 0 || (count < 0 && errno != EINTR)) {
      break;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  text.resize(done);
  return text;
}

} // namespace stagecraft
