// A progress bar with the rate and the remaining time, on stderr where it is a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "sim/base/system/clock.hpp"

namespace stagecraft {

/// Shows nothing when quiet or in the first half second, and clears its line at the end. Where less is done than
/// before, the next part of the work has begun.
class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t done, std::size_t all);

private:
  bool enabled_;
  bool shown_ = false;
  std::size_t done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

} // namespace stagecraft
