// A kernel prepared to run on this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "calibrate/cpu/arena.hpp"
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::cpu {

using gpu::Kernel;

/// What the threads of a device do: `run` handles items [begin, end) as thread `part`; when all are done, the first
/// thread calls `finish`.
struct Work {
  Index items = 1;
  std::function<void(int part, Index begin, Index end)> run;
  std::function<void()> finish; ///< may be empty
  /// For tests: the operands, under their names in the formulas.
  struct Operand {
    std::string name;
    const float* values;
    Index count;
  };
  std::vector<Operand> operands;
};

/// What works are made from.
struct Maker {
  const Routines& routines;
  Arena& arena;
  int parts = 1; ///< threads that share the work

  /// Operands, recorded under their names.
  const float* read(Work& work, const char* name, Index count) const;
  float* write(Work& work, const char* name, Index count, bool zeroed = false) const;
};

/// Prepares a kernel, with operands from the free part of the arena. std::runtime_error says why it cannot run here:
/// its precision, its memory, or a pass that it does not have.
Work make_work(const Kernel& kernel, const Maker& maker);

Work make_gemm(const Kernel& kernel, const Maker& maker);
Work make_convolution(const Kernel& kernel, const Maker& maker);
Work make_attention(const Kernel& kernel, const Maker& maker);
/// Prepares ops over rows and columns, and an empty task.
Work make_elementwise(const Kernel& kernel, const Maker& maker);

/// Prepares a copy of `bytes` within memory.
Work make_copy(std::int64_t bytes, const Maker& maker);

} // namespace stagecraft::cpu
