// A world that differs from the platform's description: computations that jitter, straggling devices, slow links,
// devices that fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/base/random.hpp"
#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Failures of devices, equally likely at any time, and what they cost.
struct Failures {
  Seconds mean_time_between;  ///< per device
  int checkpoint_every = 100; ///< iterations
  Seconds checkpoint;         ///< time to write one; training stands still
  Seconds restart;            ///< from the failure until training goes on from the last checkpoint
  int iterations = 1000;      ///< length of one draw
};

/// What disturbs a run.
struct Perturbation {
  double jitter = 0;             ///< standard deviation of a computation's time, relative to it
  std::vector<double> speed;     ///< [DeviceId], relative to what the type says; empty: all 1
  std::vector<double> bandwidth; ///< [LinkId], relative to what the platform says; empty: all 1
};

/// The platform with the bandwidths of a perturbation.
Platform with_bandwidths(const Platform& platform, const Perturbation& perturbation);

/// One draw: the graph with the times of its computations and transfers in the disturbed world. Each computation draws
/// its own time from a normal distribution that is cut off below a tenth of the time.
TaskGraph perturb(const TaskGraph& graph, const Platform& disturbed, const Perturbation& perturbation, Random& random);

/// One draw: time per iteration on `devices` devices, with checkpoints, failures, and the work that they undo; infinite
/// if failures are so frequent that no checkpoint is reached.
Seconds with_failures(Seconds iteration, int devices, const Failures& failures, Random& random);

/// What such draws take in the mean, over as many iterations as may be: docs/model.md, "Perturbed runs".
Seconds mean_with_failures(Seconds iteration, int devices, const Failures& failures);

} // namespace stagecraft
