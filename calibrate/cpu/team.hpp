// The threads that make up a device, and their clocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "calibrate/cpu/work.hpp"

namespace stagecraft::cpu {

/// What the clocks said of one stretch of work: of several threads the longest times, and the switches of all.
struct Reading {
  double cpu = 0, wall = 0; ///< s
  long switches = 0;        ///< that the thread did not ask for
};

/// Whether something else ran on the core meanwhile: a switch, or more wall time than processor time, 3 % and 10 us for
/// the clocks themselves.
bool contaminated(const Reading& reading);

/// Threads that run works together. The first is the one that makes the team.
class Team {
public:
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Runs `work` so many times, one after the other.
  Reading run(const Work& work, int runs);
  int threads() const { return threads_; }
  /// The scheduling that the system granted: "fifo", or "normal".
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
  int number_ = 0, left_ = 0; ///< of the round; threads still at work
  std::vector<Reading> readings_;
};

} // namespace stagecraft::cpu
