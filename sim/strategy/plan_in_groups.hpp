// Pipelines over groups of devices, where the training gives the degrees inside a group (training.parallel).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/strategy/strategy.hpp"

namespace stagecraft {

/// The strategy's pipeline over as many devices as the pipeline has ranks, each of which stands for the tensor x data
/// devices of that rank; then those devices in its place. To the strategy a group is as fast as its slowest device: it
/// has that device's part of every operator, with the collectives of the tensor group inside the times, and passes that
/// device's part of every tensor on. Reductions of gradients inside a group are not part of the strategy's view, and
/// are of the replay. `strategy` splits pipelines, and the training gives degrees. Infeasible, with the nearest that
/// works, where devices, samples or operators do not divide.
PlanResult plan_in_groups(const StrategyRow& strategy, const PlanRequest& request);

/// The ranks of a pipeline over so many devices: as many as devices unless the training gives degrees. 1 where the
/// degrees do not fit the devices, which plan_in_groups() reports.
int pipeline_ranks(const Training& training, std::size_t devices);

} // namespace stagecraft
