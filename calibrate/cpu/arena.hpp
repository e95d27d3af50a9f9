// Memory for operands: normally distributed numbers to read, and space to write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/cpu/routines.hpp"

namespace stagecraft::cpu {

/// Two memory regions that grow as they are used. Each kernel takes its operands from them.
class Arena {
public:
  /// Each region has at most `bytes`. std::runtime_error if the system has no such range of addresses.
  explicit Arena(std::int64_t bytes = bytes_by_default());
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Makes all memory free again.
  void clear() { random_used_ = space_used_ = 0; }
  /// Numbers of mean 0 and standard deviation 1, the same in every run; no kernel writes them. std::runtime_error when
  /// the region is full.
  const float* random(Index count);
  /// Memory that kernels write; zeroed if asked for.
  float* space(Index count, bool zeroed = false);

  /// A fifth of this machine's memory, in bytes.
  static std::int64_t bytes_by_default();

private:
  Index take(Index& used, Index count) const;

  Index capacity_; ///< floats per region
  float *random_ = nullptr, *space_ = nullptr;
  Index random_used_ = 0, space_used_ = 0;
  Index filled_ = 0; ///< floats of the random numbers that are filled in
};

} // namespace stagecraft::cpu
