// How long a pass takes that is one task while its own exchanges, and others, slow its computations down.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "sim/platform/platform.hpp"
#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// A time in which computations take so many times as long.
struct SlowedTime {
  double begin = 0, end = 0;
  BesideExchange beside;
};

/// Passes count as matrix products throughout: works do not tell their kernels apart.
double factor_of(const BesideExchange& beside, TaskKind kind);

/// The steps of a pass on a device: what they take beside its own exchanges alone, and beside others, too.
class StepsBeside {
public:
  /// `kind`: the pass's. `beside`: how many times as long computations take beside a flow.
  StepsBeside(const PassSteps& steps, TaskKind kind, const std::function<BesideExchange(const Work& flow)>& beside);

  /// Where nothing is slowed down.
  double plain() const { return plain_; }
  /// What the pass takes from `start` on, with all its steps `scale` times as long. `others`: what else slows
  /// computations down, ascending, of which the first ends after the start. Times closer than `rounding` are equal.
  double seconds(double start, double scale, std::span<const SlowedTime> others, double rounding) const;

private:
  struct Exchange {
    std::size_t after = 0;
    std::vector<SlowedTime> slowed; ///< from its beginning on, without gaps
    double length = 0;
  };

  class Run;

  TaskKind kind_;
  std::vector<PassComputation> computations_;
  std::vector<Exchange> exchanges_;
  std::vector<std::size_t> begun_;   ///< [computation]: exchanges that begin before it
  std::vector<std::size_t> settled_; ///< computations before which all exchanges have ended, ascending
  std::vector<double> starts_;       ///< [computation]: beside its own exchanges alone
  double plain_ = 0, own_ = 0;
};

} // namespace stagecraft
