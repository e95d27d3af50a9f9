// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/output/whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <random>
#include <stdexcept>

namespace stagecraft::gpu {
namespace {

// Keeps interrupts from this thread, and lets those that have come act at its end.
class InterruptsWait {
public:
  InterruptsWait() {
    sigset_t waiting;
    sigemptyset(&waiting);
    sigaddset(&waiting, SIGINT);
    sigaddset(&waiting, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &waiting, &before_);
  }
  ~InterruptsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  InterruptsWait(const InterruptsWait&) = delete;
  InterruptsWait& operator=(const InterruptsWait&) = delete;

private:
  sigset_t before_{};
};

// A hidden name beside the path.
std::string name_beside(const std::string& path) {
  static std::random_device random;               // of the system, not to be foreseen
  const std::size_t folder = path.rfind('/') + 1; // npos + 1 is 0
  return path.substr(0, folder) + ".stagecraft-part-" + std::to_string(random()) + "-" + std::to_string(random());
}

bool write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

} // namespace

void write_whole(const std::string& path, const std::string& text) {
  const InterruptsWait wait;
  const std::string part = name_beside(path);
  constexpr mode_t kUsual = 0666; // less what the umask forbids
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kUsual);
  const bool written = file >= 0 && write_all(file, text);
  const bool closed = file >= 0 && close(file) == 0;
  if (!written || !closed || std::rename(part.c_str(), path.c_str()) != 0) {
    if (file >= 0) {
      unlink(part.c_str());
    }
    throw std::runtime_error("cannot write " + path);
  }
}

} // namespace stagecraft::gpu
