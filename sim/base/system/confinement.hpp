// Running a program that a stranger chose: without a network, within limits, and no longer than it is waited for. What
// is promised, and what is not: docs/reliability.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/system/memory_file.hpp"

namespace stagecraft {

/// The exit status of a program that cannot be run, as a shell gives it.
inline constexpr int kCannotRun = 127;

/// What is to run. The pointers are to live until it has started.
struct ConfinedProgram {
  const char* folder = ".";
  char* const* arguments = nullptr; ///< ends with a null pointer; null: it only tries its limits
  std::array<int, 3> streams = {};  ///< standard input, output and errors
  double seconds = 0;               ///< each processor's time
  int memory_mebibytes = 0;         ///< address space of each process
};

/// A running program in namespaces of its own as far as the kernel allows them, below a *keeper*: a process of ours
/// that reaps what the program leaves, and ends with it or with us, and all that the program has started with it.
class Confined {
public:
  /// Starts the program. std::runtime_error where there can be no process.
  explicit Confined(const ConfinedProgram& program);
  /// Ends it.
  ~Confined();
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;

  /// Whether the program has ended, and all that it has started.
  bool has_ended();
  /// Kills all that is left, and waits until it has ended.
  void end();
  /// How the program ended, as waitpid() says; nothing where it did not end by itself. Call it once it has ended.
  std::optional<int> status() const;

  bool has_own_network() const;
  /// Whether the kernel ends all processes of the program with the keeper, wherever they have gone.
  bool has_own_processes() const;

private:
  MemoryFile report_; // where the keeper writes the program's status
  int namespaces_ = 0;
  pid_t keeper_ = -1;
};

/// What does not hold of this for commands that are started here and now, each as the end of "commands of a study …".
std::vector<std::string> confinement_gaps();

} // namespace stagecraft
