// What a replay of one plan takes at least, from its operators' times, tensors and orders alone: for searches that try
// many plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// Seconds that a plan's orders take at least from an empty pipeline until it is empty again, where each rank of the
/// schedule has devices of its own and each stage one rank or, in a schedule of two directions, a second one, as far
/// from the end. An action takes what its operators take, as
/// least_seconds() says, and waits for its rank and for the tensors from other stages, which have the way between
/// single devices for themselves. What else a replay has only adds to it. 0 where nothing is known. O(actions).
double least_replay(const Problem& problem, const Plan& plan, const Schedule& schedule);

/// The same under any orders, where each stage has one rank: the way of a micro-batch through all stages and back, on
/// which a stage has the forwards or the backwards of all others to do, too.
double least_passage(const Problem& problem, const Plan& plan, bool splits_backward);

} // namespace stagecraft
