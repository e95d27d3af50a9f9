// The progress of a run: one line that changes on a terminal, one line per group elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace stagecraft::gpu {

class Progress {
public:
  /// Writes to `out`; `total` is the budget in seconds.
  Progress(std::FILE* out, bool terminal, double total);

  /// Shows that point `done` of `of` in a group is done, `now` seconds after the start.
  void show(const std::string& group, std::size_t done, std::size_t of, double now);
  /// Writes a line that stays.
  void say(const std::string& text);

private:
  std::FILE* out_;
  bool terminal_, drawn_ = false;
  double total_, shown_ = -1;
};

/// A time such as "3:05".
std::string clock_text(double seconds);

} // namespace stagecraft::gpu
