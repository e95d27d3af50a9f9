// Operands: normally distributed numbers to read, and memory to write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/cpu/routines.hpp"

namespace stagecraft::cpu {

/// Two regions of memory, grown as they are used, out of which each kernel takes its operands anew.
class Arena {
public:
  /// `bytes` of each region at most; std::runtime_error where not even addresses can be had.
  explicit Arena(std::int64_t bytes = bytes_by_default());
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Gives back all that was taken.
  void clear() { random_used_ = space_used_ = 0; }
  /// Numbers of mean 0 and deviation 1, always the same, that no kernel writes. std::runtime_error where memory ends.
  const float* random(Index count);
  /// Memory that kernels write, zeroed where `zeroed`.
  float* space(Index count, bool zeroed = false);

  /// A fifth of this machine's memory.
  static std::int64_t bytes_by_default();

private:
  Index take(Index& used, Index count) const;

  Index capacity_; ///< floats of each region
  float *random_ = nullptr, *space_ = nullptr;
  Index random_used_ = 0, space_used_ = 0;
  Index filled_ = 0; ///< of the random numbers
};

} // namespace stagecraft::cpu
