// What a run says while it goes: one line that changes on a terminal, one line a group elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace stagecraft::gpu {

class Progress {
public:
  /// To `out`; `total` is the budget in seconds.
  Progress(std::FILE* out, bool terminal, double total);

  /// Point `done` of `of` in a group, `now` seconds after the start.
  void show(const std::string& group, std::size_t done, std::size_t of, double now);
  /// A line that stays.
  void say(const std::string& text);

private:
  std::FILE* out_;
  bool terminal_, drawn_ = false;
  double total_, shown_ = -1;
};

/// "3:05".
std::string clock_text(double seconds);

} // namespace stagecraft::gpu
