// The threads that a device consists of, and their clocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "calibrate/cpu/work.hpp"

namespace stagecraft::cpu {

/// Readings of the clocks over some work: the longest times of any thread, and the context switches of all.
struct Reading {
  double cpu = 0, wall = 0; ///< seconds
  long switches = 0;        ///< involuntary context switches
};

/// Whether something else ran on the core: there was a switch, or wall time exceeds processor time by more than 3 % and
/// 10 us, which the clocks themselves may cause.
bool contaminated(const Reading& reading);

/// Threads that run works together. The first is the thread that makes the team.
class Team {
public:
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Runs `work` `runs` times, one after another.
  Reading run(const Work& work, int runs);
  int threads() const { return threads_; }
  /// The scheduling that the system granted: "fifo" or "normal".
  const char* scheduling() const { return scheduling_; }

private:
  struct Round { ///< what the other threads do next
    const Work* work = nullptr;
    bool end = false;
  };

  void serve(int part);
  void once(const Work& work, std::vector<Reading>& sums);

  int threads_;
  const char* scheduling_;
  std::vector<std::thread> others_;
  std::mutex mutex_;
  std::condition_variable begin_, done_;
  Round round_;
  int number_ = 0, left_ = 0; ///< number of the round; threads still working in it
  std::vector<Reading> readings_;
};

} // namespace stagecraft::cpu
