// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/command.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "sim/base/system/clock.hpp"
#include "sim/base/system/confinement.hpp"
#include "sim/base/system/memory_file.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostOutput = std::size_t{limits::kCommandOutputMebibytes} << 20;

// How a command ended: as waitpid() says, or why it had to be killed.
struct End {
  int status = 0;
  std::string why_killed;
};

struct Streams {
  MemoryFile input, output, errors;
};

// Waits until a command has ended, or has taken too long or printed too much; says which of these.
std::string wait_for(const Command& command, const Streams& streams, const std::function<bool()>& has_ended) {
  const auto end = Clock::now() + std::chrono::duration<double>(command.seconds);
  auto pause = std::chrono::microseconds(200);
  for (;;) {
    const bool ended = has_ended();
    if (std::max(streams.output.size(), streams.errors.size()) > kMostOutput) {
      return "it printed more than " + std::to_string(limits::kCommandOutputMebibytes) + " MiB";
    }
    if (ended) {
      return "";
    }
    if (Clock::now() >= end) {
      return "it took longer than " + to_text(Seconds{command.seconds});
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(10'000));
  }
}

[[noreturn]] void become_trusted(const std::string& folder, std::vector<char*>& arguments,
                                 const Streams& streams) noexcept {
  setpgid(0, 0);
  if (chdir(folder.c_str()) == 0 && dup2(streams.input.descriptor(), STDIN_FILENO) >= 0 &&
      dup2(streams.output.descriptor(), STDOUT_FILENO) >= 0 && dup2(streams.errors.descriptor(), STDERR_FILENO) >= 0) {
    execvp(arguments.front(), arguments.data());
  }
  _exit(kCannotRun);
}

// A program of ours or of the user's: it may do what we may.
End run_trusted(const Command& command, const std::string& folder, std::vector<char*>& arguments,
                const Streams& streams) {
  const pid_t child = fork();
  if (child < 0) {
    throw std::runtime_error("cannot make a child process");
  }
  if (child == 0) {
    become_trusted(folder, arguments, streams);
  }
  setpgid(child, child); // parent and child both do this: either may run first
  End end;
  bool ended = false;
  end.why_killed = wait_for(command, streams, [&] { return ended = waitpid(child, &end.status, WNOHANG) == child; });
  kill(-child, SIGKILL); // its own children may outlive it
  while (!ended && waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

End run_confined(const Command& command, const std::string& folder, std::vector<char*>& arguments,
                 const Streams& streams) {
  Confined confined({.folder = folder.c_str(),
                     .arguments = arguments.data(),
                     .streams = {streams.input.descriptor(), streams.output.descriptor(), streams.errors.descriptor()},
                     .seconds = command.seconds,
                     .memory_mebibytes = command.memory_mebibytes});
  End end;
  end.why_killed = wait_for(command, streams, [&] { return confined.has_ended(); });
  confined.end();
  const std::optional<int> status = confined.status();
  end.status = status.value_or(0);
  if (!status && end.why_killed.empty()) {
    end.why_killed = "it was ended from outside";
  }
  return end;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  constexpr std::size_t kMostShown = 200;
  const std::size_t begin = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  return text.substr(begin, kMostShown);
}

std::string reason_of(const End& end, const std::string& program) {
  if (!end.why_killed.empty()) {
    return end.why_killed;
  }
  if (WIFSIGNALED(end.status)) {
    switch (WTERMSIG(end.status)) {
    case SIGXFSZ:
      return "it wrote a file of more than " + std::to_string(limits::kCommandFileMebibytes) + " MiB";
    case SIGXCPU:
      return "it took more time of the processor than it may";
    default:
      return "it was ended by signal " + std::to_string(WTERMSIG(end.status));
    }
  }
  if (WEXITSTATUS(end.status) == kCannotRun) {
    return "'" + program + "' cannot be run";
  }
  return WEXITSTATUS(end.status) == 0 ? "" : "it ended with status " + std::to_string(WEXITSTATUS(end.status));
}

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  constexpr std::string_view kHex = "0123456789abcdef";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  std::string text;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte > '~') {
      text += std::string("\\x") + kHex[byte >> 4U] + kHex[byte & 15U];
    } else {
      text += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
    }
  }
  return (text == word ? "'" : "$'") + text + "'";
}

} // namespace

CommandAnswer run_command(const Command& command, const std::string& input) {
  const Streams streams;
  streams.input.fill(input);
  std::vector<std::string> words = command.words;
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const std::string folder = command.folder.empty() ? "." : command.folder.string();
  const End end = (command.confined ? run_confined : run_trusted)(command, folder, arguments, streams);
  CommandAnswer answer{.output = "", .why_not = reason_of(end, words.front())};
  if (answer.why_not.empty()) {
    answer.output = streams.output.text();
  } else if (const std::string line = last_line(streams.errors.text()); !line.empty()) {
    answer.why_not += ": " + line;
  }
  return answer;
}

std::string to_text(const Command& command) {
  std::string text;
  for (const std::string& word : command.words) {
    text += (text.empty() ? "" : " ") + quoted(word);
  }
  return text;
}

} // namespace stagecraft
