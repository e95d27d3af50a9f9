// A world that is not quite as the platform says: computations that jitter, devices that straggle, links that are slow,
// devices that fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/base/random.hpp"
#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Failures of devices, each as likely at any time, and what they cost.
struct Failures {
  Seconds mean_time_between;  ///< of one device
  int checkpoint_every = 100; ///< iterations
  Seconds checkpoint;         ///< to write one; training stands still
  Seconds restart;            ///< from the failure until training goes on from the last checkpoint
  int iterations = 1000;      ///< of a draw
};

/// What disturbs a run.
struct Perturbation {
  double jitter = 0;             ///< standard deviation of each computation's time, in parts of it
  std::vector<double> speed;     ///< [DeviceId], in parts of what the type says; empty: 1
  std::vector<double> bandwidth; ///< [LinkId], in parts of what the platform says; empty: 1
};

/// The platform with the bandwidths of a perturbation.
Platform with_bandwidths(const Platform& platform, const Perturbation& perturbation);

/// One draw: the graph with the times that its computations and transfers have in the disturbed world. Every
/// computation draws on its own, from a normal distribution cut off at a tenth of the time.
TaskGraph perturb(const TaskGraph& graph, const Platform& disturbed, const Perturbation& perturbation, Random& random);

/// One draw: time per iteration of `devices` devices with checkpoints, failures and the work that they undo; infinite
/// where failures come so fast that no checkpoint is reached.
Seconds with_failures(Seconds iteration, int devices, const Failures& failures, Random& random);

} // namespace stagecraft
