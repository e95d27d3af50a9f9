// SPDX-License-Identifier: Apache-2.0
#include "sim/base/child.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>

namespace stagecraft {

SharedDoubles::SharedDoubles(std::size_t count) : count_(count) {
  void* memory = mmap(nullptr, std::max<std::size_t>(1, count) * sizeof(double), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  data_ = static_cast<double*>(memory);
}

SharedDoubles::~SharedDoubles() { munmap(data_, std::max<std::size_t>(1, count_) * sizeof(double)); }

namespace {

constexpr int kThrew = 3;

[[noreturn]] void child_main(const std::function<void()>& work, int message_pipe) {
  int status = 0;
  try {
    work();
  } catch (const std::exception& failure) {
    const std::string text = failure.what();
    status = write(message_pipe, text.data(), text.size()) < 0 ? kThrew + 1 : kThrew;
  }
  _exit(status); // no destructors, no flushing: both belong to the parent
}

std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

} // namespace

void run_in_child(const std::function<void()>& work) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error("cannot make a pipe");
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error("cannot fork");
  }
  if (child == 0) {
    close(ends[0]);
    child_main(work, ends[1]);
  }
  close(ends[1]);
  const std::string message = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kThrew) {
    throw std::runtime_error(message);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::logic_error(WIFSIGNALED(status)
                               ? "a child process ended by signal " + std::to_string(WTERMSIG(status))
                               : "a child process ended with status " + std::to_string(WEXITSTATUS(status)));
  }
}

} // namespace stagecraft
