// SPDX-License-Identifier: Apache-2.0
#include "sim/base/process/child.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string_view>

namespace stagecraft {

SharedDoubles::SharedDoubles(std::size_t count) : count_(count) {
  void* memory = mmap(nullptr, std::max<std::size_t>(1, count) * sizeof(double), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  data_ = static_cast<double*>(memory);
}

SharedDoubles::~SharedDoubles() { munmap(data_, std::max<std::size_t>(1, count_) * sizeof(double)); }

void SharedDoubles::forget(std::span<const double> values) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(values.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(values.data() + values.size()) / page * page;
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE); // where it fails, munmap() follows soon
  }
}

namespace {

enum ChildStatus { kAnswered = 0, kThrew = 3, kLostPipe = 4 };

// Makes the child silent and mortal: it writes nowhere, dies of signals that the program's own handlers (a sanitizer's,
// say) would catch, and ends by itself after `seconds`.
void become_quiet(unsigned seconds) {
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  for (const int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT, SIGALRM}) {
    std::signal(signal, SIG_DFL);
  }
  alarm(seconds);
}

bool write_all(int pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(pipe, text.data(), text.size());
    if (count < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
  }
  return true;
}

std::string read_all(int pipe) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = read(pipe, buffer.data(), buffer.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return text;
    }
    text.append(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  }
}

// noexcept: no exception may unwind into the parent's part of the program.
[[noreturn]] void be_the_child(const std::function<std::string()>& work, int pipe) noexcept {
  int status = kAnswered;
  std::string text;
  try {
    text = work();
  } catch (const std::exception& failure) {
    status = kThrew;
    text = failure.what();
  }
  _exit(write_all(pipe, text) ? status : kLostPipe); // no destructors, no flushing: both belong to the parent
}

struct ChildEnd {
  int status = 0;   // as waitpid() reports it
  std::string text; // its answer, or what it threw
};

// With `quiet_seconds` > 0 the child is silent and ends after that time.
ChildEnd run_child(const std::function<std::string()>& work, unsigned quiet_seconds) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("cannot make a pipe to a child process");
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error("cannot make a child process");
  }
  if (child == 0) {
    if (quiet_seconds > 0) {
      become_quiet(quiet_seconds);
    }
    be_the_child(work, ends[1]);
  }
  close(ends[1]);
  ChildEnd end{.text = read_all(ends[0])};
  close(ends[0]);
  while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

} // namespace

void run_in_child(const std::function<void()>& work) {
  const ChildEnd end = run_child(
      [&work] {
        work();
        return std::string();
      },
      0);
  if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == kThrew) {
    throw std::runtime_error(end.text);
  }
  if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != kAnswered) {
    throw std::logic_error(WIFSIGNALED(end.status)
                               ? "a child process ended by signal " + std::to_string(WTERMSIG(end.status))
                               : "a child process ended with status " + std::to_string(WEXITSTATUS(end.status)));
  }
}

std::optional<std::string> answer_of_child(const std::function<std::string()>& work, unsigned seconds) {
  ChildEnd end = run_child(work, seconds);
  if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != kAnswered) {
    return std::nullopt;
  }
  return std::move(end.text);
}

} // namespace stagecraft
