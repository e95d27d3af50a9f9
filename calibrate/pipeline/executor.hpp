// A task graph carried out for real: a thread per device runs its program, a thread per channel its transfers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/timeline/timeline.hpp"

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

struct ExecuteOptions {
  int iterations = 1;
  bool real_time = true;    ///< ask for SCHED_FIFO
  bool holds_cores = false; ///< where that is granted: devices wait without sleeping, transfers interrupt them
};

/// What really happened. A transfer starts when it is handed over: its inputs are there, and its channel is free.
struct Execution {
  Timeline timeline;
  bool real_time = false; ///< granted to every thread
};

/// A task failed. what() names it, its device and iteration, and the cause.
class ExecutionFailure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Why the graph cannot be carried out; "" where it can. Loaders cannot, nor what waits in a circle.
std::string why_not_executable(const TaskGraph& graph, int iterations);

/// A task for messages: F0@1, T3@0>1.
std::string name_of_task(const TaskGraph& graph, TaskId task);

/// Runs the graph so many times in a row on a backend that was made for it. Nothing is allocated while tasks run; all
/// threads have ended when it returns or throws. std::invalid_argument where why_not_executable() has a reason;
/// ExecutionFailure where a task fails.
Execution execute(const Setting& setting, Backend& backend, const ExecuteOptions& options);

/// By how much the latest computation of a run whose computations sleep ended too late. What sleeps needs no processor,
/// so more than a millisecond or two says that something else kept the run from it; which is known without asking how
/// long the run took.
Seconds latest_sleeper(const TaskGraph& graph, const Timeline& timeline);

} // namespace stagecraft::pipeline
