// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/progress.hpp"

#include <unistd.h>

#include <iostream>
#include <string>

#include "sim/base/units.hpp"

namespace stagecraft {

Progress::Progress(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) {
    std::cerr << "\r\x1b[K" << std::flush;
  }
}

void Progress::show(std::size_t done, std::size_t all) {
  start_ = done < done_ ? Clock::now() : start_;
  done_ = done;
  const double elapsed = seconds_since(start_);
  constexpr double kPatience = 0.5;
  constexpr double kBetween = 0.1;
  if (!enabled_ || elapsed < kPatience || seconds_since(last_) < kBetween || done == 0) {
    return;
  }
  last_ = Clock::now();
  shown_ = true;
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = kWidth * done / all;
  constexpr double kFast = 10;
  const double rate = static_cast<double>(done) / elapsed;
  const double remaining = elapsed * static_cast<double>(all - done) / static_cast<double>(done);
  std::cerr << "\r\x1b[K[" << std::string(filled, '#') << std::string(kWidth - filled, '.') << "] " << done << " of "
            << all << ", " << to_text(rate, rate < kFast ? 1 : 0) << " /s, " << to_text(remaining, 0) << " s left"
            << std::flush;
}

} // namespace stagecraft
