// Shares work out over forked children. A child may die: its tasks are handed back, and another child takes its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
  /// The next task to give out; nothing when there is none for now. Called again after every answer and loss.
  std::function<std::optional<std::string>()> next;
  /// Called with each answer. Returning false ends the pool and kills the children.
  std::function<bool(const std::string& task, const std::string& answer)> answered;
  /// Called when a child died working on a task; `why` reads like "its process was ended by signal 9". The task is not
  /// given out again unless next() does so.
  std::function<void(const std::string& task, const std::string& why)> lost;
  /// Called some ten times a second. Returning false ends the pool.
  std::function<bool()> tick;
};

/// Runs until next() has no task and every answer is in, or until a callback ends it. Children die with this process.
/// Throws std::runtime_error when no child can be made.
void run(const WorkerPool& pool);

/// Tasks 0, 1, 2, … that a child can do and send the result of, or that this process can do itself.
struct SharedTasks {
  std::size_t count = 0;
  std::function<std::string(std::size_t task)> work;                          ///< in a child: the result
  std::function<void(std::size_t task, const std::string& result)> take = {}; ///< here, as results come in
  std::function<void(std::size_t task)> here;                                 ///< here, without a child
};

/// Does every task, in children where there are several workers and tasks. What a child dies of is done here again, so
/// that an error is the same with any number of workers.
void share_out(int workers, const SharedTasks& tasks);

/// How many workers fill this machine: the cores that this process may use.
int cores();

} // namespace stagecraft
