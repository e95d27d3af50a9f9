// SPDX-License-Identifier: Apache-2.0
#include "sim/base/command.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "sim/base/clock.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

constexpr rlim_t kMostOutput = rlim_t{64} << 20;
constexpr int kCannotRun = 127; // the exit status that a shell gives then

// An anonymous file: no pipe to fill up while nobody reads.
class MemoryFile {
public:
  MemoryFile() : descriptor_(memfd_create("stagecraft", MFD_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw std::runtime_error("cannot make a file in memory");
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  void fill(const std::string& text) const {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t count = write(descriptor_, text.data() + done, text.size() - done);
      if (count < 0 && errno != EINTR) {
        throw std::runtime_error("cannot write a file in memory");
      }
      done += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    lseek(descriptor_, 0, SEEK_SET);
  }

  std::string text() const {
    std::string text;
    std::array<char, 65536> buffer;
    lseek(descriptor_, 0, SEEK_SET);
    for (;;) {
      const ssize_t count = read(descriptor_, buffer.data(), buffer.size());
      if (count == 0 || (count < 0 && errno != EINTR)) {
        return text;
      }
      text.append(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    }
  }

private:
  int descriptor_;
};

[[noreturn]] void become(const Command& command, std::vector<char*>& arguments, int input, int output,
                         int errors) noexcept {
  setpgid(0, 0);
  const rlimit limit{kMostOutput, kMostOutput};
  setrlimit(RLIMIT_FSIZE, &limit);
  if (chdir(command.folder.empty() ? "." : command.folder.c_str()) == 0 && dup2(input, STDIN_FILENO) >= 0 &&
      dup2(output, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0) {
    execvp(arguments.front(), arguments.data());
  }
  _exit(kCannotRun);
}

// Waits for the child and returns its status. When the time is up, kills it and its children and returns nothing.
std::optional<int> wait_for(pid_t child, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto pause = std::chrono::microseconds(200);
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) {
      return status;
    }
    if (Clock::now() >= end) {
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return std::nullopt;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(10'000));
  }
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  constexpr std::size_t kMostShown = 200;
  const std::size_t begin = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  return text.substr(begin, kMostShown);
}

std::string reason_of(int status, const std::string& program) {
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGXFSZ ? "it printed more than 64 MiB"
                                       : "it was ended by signal " + std::to_string(WTERMSIG(status));
  }
  if (WEXITSTATUS(status) == kCannotRun) {
    return "'" + program + "' cannot be run";
  }
  return WEXITSTATUS(status) == 0 ? "" : "it ended with status " + std::to_string(WEXITSTATUS(status));
}

} // namespace

CommandAnswer run_command(const Command& command, const std::string& input) {
  const MemoryFile in;
  const MemoryFile out;
  const MemoryFile errors;
  in.fill(input);
  std::vector<std::string> words = command.words;
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    throw std::runtime_error("cannot make a child process");
  }
  if (child == 0) {
    become(command, arguments, in.descriptor(), out.descriptor(), errors.descriptor());
  }
  setpgid(child, child); // parent and child both do this: either may run first
  const std::optional<int> status = wait_for(child, command.seconds);
  CommandAnswer answer;
  if (!status) {
    answer.why_not = "it took longer than " + to_text(Seconds{command.seconds});
  } else {
    answer.why_not = reason_of(*status, words.front());
  }
  if (answer.why_not.empty()) {
    answer.output = out.text();
  } else if (const std::string line = last_line(errors.text()); !line.empty()) {
    answer.why_not += ": " + line;
  }
  kill(-child, SIGKILL); // its own children may outlive it
  return answer;
}

} // namespace stagecraft
