// Runs a task graph for real: a thread per device runs its program, a thread per channel runs its transfers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/timeline/timeline.hpp"

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

struct ExecuteOptions {
  int iterations = 1;
  bool real_time = true;    ///< ask for SCHED_FIFO
  bool holds_cores = false; ///< if real time is granted, devices wait without sleeping, and transfers interrupt them
};

/// What happened. A transfer's start is when it was handed over: its inputs were ready and its channel was free.
struct Execution {
  Timeline timeline;
  bool real_time = false; ///< whether every thread got real-time priority
};

/// A task failed. what() names the task, its device and iteration, and the cause.
class ExecutionFailure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Why the graph cannot be run; "" if it can. Graphs with loaders, or with tasks that wait in a cycle, cannot.
std::string why_not_executable(const TaskGraph& graph, int iterations);

/// The name of a task in messages: F0@1, T3@0>1.
std::string name_of_task(const TaskGraph& graph, TaskId task);

/// Runs the graph as many times in a row as the options say, on a backend made for it. Nothing is allocated while tasks
/// run, and all threads have ended when it returns or throws. std::invalid_argument if why_not_executable() gives a
/// reason; ExecutionFailure if a task fails.
Execution execute(const Setting& setting, Backend& backend, const ExecuteOptions& options);

/// How late the latest computation ended, in a run whose computations sleep. Sleeping needs no processor, so more than
/// a millisecond or two means that something else delayed the run; this shows without knowing how long the run should
/// take.
Seconds latest_sleeper(const TaskGraph& graph, const Timeline& timeline);

} // namespace stagecraft::pipeline
