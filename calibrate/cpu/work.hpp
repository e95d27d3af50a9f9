// A kernel of the table made ready to run on this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "calibrate/cpu/arena.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::cpu {

using gpu::Kernel;

/// What each thread of a device gets to do: `run` handles items [begin, end) as thread `part`; `finish` follows, when
/// all are done, on the first.
struct Work {
  Index items = 1;
  std::function<void(int part, Index begin, Index end)> run;
  std::function<void()> finish; ///< may be empty
  /// For tests: what it reads and writes, by the names in the formulas.
  struct Operand {
    std::string name;
    const float* values;
    Index count;
  };
  std::vector<Operand> operands;
};

/// What works are made of.
struct Maker {
  const Routines& routines;
  Arena& arena;
  int parts = 1; ///< threads that share the work

  /// Operands with their names.
  const float* read(Work& work, const char* name, Index count) const;
  float* write(Work& work, const char* name, Index count, bool zeroed = false) const;
};

/// Operands are taken from what is left of the arena. std::runtime_error says why a kernel cannot run here: its
/// precision, its memory, a pass that it does not have.
Work make_work(const Kernel& kernel, const Maker& maker);

Work make_gemm(const Kernel& kernel, const Maker& maker);
Work make_convolution(const Kernel& kernel, const Maker& maker);
Work make_attention(const Kernel& kernel, const Maker& maker);
/// The ops over rows and columns, and an empty task.
Work make_elementwise(const Kernel& kernel, const Maker& maker);

/// Moves `bytes` from one place of memory to another.
Work make_copy(std::int64_t bytes, const Maker& maker);

} // namespace stagecraft::cpu
