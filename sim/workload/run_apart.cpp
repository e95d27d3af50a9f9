// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/run_apart.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>

namespace stagecraft {
namespace {

// Whatever handlers the program has (a sanitizer's among them), the child dies quietly and by itself.
void become_quiet() {
  constexpr unsigned kLongest = 60; // s
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  for (const int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT, SIGALRM}) {
    std::signal(signal, SIG_DFL);
  }
  alarm(kLongest);
}

void write_all(int pipe, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(pipe, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) {
      _exit(1);
    }
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
}

std::string read_all(int pipe) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = read(pipe, buffer.data(), buffer.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return text;
    }
    text.append(buffer.data(), count > 0 ? static_cast<size_t>(count) : 0);
  }
}

// Nothing may unwind into the parent's part of the program: what is thrown here ends the child.
[[noreturn]] void be_the_child(int pipe, const std::function<std::string()>& work) noexcept {
  become_quiet();
  write_all(pipe, work());
  _exit(0);
}

} // namespace

std::optional<std::string> run_apart(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe to a child process");
  }
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error("no child process");
  }
  if (child == 0) {
    be_the_child(ends[1], work);
  }
  close(ends[1]);
  std::string answer = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return std::nullopt;
  }
  return answer;
}

} // namespace stagecraft
