// What an iteration of one plan takes at least, from its operators' times alone: for searches that try many plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// What is known of how a plan is run.
struct LeastPace {
  bool from_empty = false;       ///< an iteration begins when the one before has ended
  bool splits_backward = true;   ///< gradients of weights may wait
  bool one_home_for_each = true; ///< every stage runs all micro-batches on the devices that the plan gives it
};

/// Seconds that a stage computes for a micro-batch at least, from its operators' times: of F, of B with or without the
/// gradients of weights, and of W.
struct LeastSeconds {
  double forward = 0, backward = 0, weight = 0;
};

/// All 0 for a stage of several devices, whose parts may take any time, and of several streams. Infinite where a kernel
/// lacks.
LeastSeconds least_seconds(const Problem& problem, const Stage& stage, bool splits_backward);

/// Seconds that an iteration of the plan takes at least. Stages of one device with one stream count, M (F + B + W) on
/// each device; and from empty what comes before its first forward and after its last gradient of inputs, along the
/// tensors between stages: head + M (F + B) + max(M W, tail). 0 where nothing is known. O(operators and tensors).
double least_iteration(const Problem& problem, const Plan& plan, const LeastPace& pace);

} // namespace stagecraft
