// Work shared out over forked children, which may die: what one had is handed back, and another takes its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stagecraft {

/// A pool of children forked from this process. Tasks and answers are bytes that travel through pipes; each child has
/// at most two tasks, the one it works on and the next.
struct WorkerPool {
  int workers = 1; ///< at least 1

  /// What a child does with a task. What it throws ends the child.
  std::function<std::string(const std::string& task)> work;
  /// The next task to give out; nothing: no more for now. Asked again after every answer and loss.
  std::function<std::optional<std::string>()> next;
  /// An answer has come. False ends the pool: children are killed.
  std::function<bool(const std::string& task, const std::string& answer)> answered;
  /// A child died over a task; `why` as "its process was ended by signal 9". A lost task is not given out again unless
  /// next() does so.
  std::function<void(const std::string& task, const std::string& why)> lost;
  /// Called some ten times a second. False ends the pool.
  std::function<bool()> tick;
};

/// Runs until next() has no task and every answer is in, or until it is told to end. Children die with this process.
/// Throws std::runtime_error when no child can be made.
void run(const WorkerPool& pool);

/// How many workers fill this machine: its cores, as far as this process may use them.
int cores();

} // namespace stagecraft
