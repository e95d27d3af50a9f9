// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/steady_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/plan/estimate/estimate.hpp"

namespace stagecraft {
namespace {

// A stage in the steady state.
struct SteadyStage {
  Seconds work;     // of its slowest device, per micro-batch
  Seconds step;     // the optimiser's
  Seconds reduce;   // of gradients
  Seconds there;    // a transfer to the next stage
  Seconds bytes;    // the part of it in which bytes flow
  double turns = 1; // replicas that take whole micro-batches in turn
  double ahead = 0; // forwards of a replica before the backward of the same micro-batch
};

// The largest part of a micro-batch that a replica has, and so sends or receives.
double largest_share(const StageCost& stage) {
  double largest = 0;
  for (const ReplicaCost& replica : stage.replicas) {
    largest = std::max(largest, replica.share);
  }
  return largest;
}

std::vector<SteadyStage> steady_stages(const Problem& problem, const Plan& plan, const PlanCost& cost,
                                       const Pace& pace) {
  std::vector<SteadyStage> stages(plan.stages.size());
  double ranks = 0; // from this stage on
  for (std::size_t s = stages.size(); s-- > 0;) {
    SteadyStage& stage = stages[s];
    for (const ReplicaCost& replica : cost.stages[s].replicas) {
      const Seconds prediction = pace.predicts_weights ? replica.prediction : Seconds{0};
      stage.work = std::max(stage.work, replica.busy() + prediction);
      stage.step = std::max(stage.step, replica.optimizer);
    }
    stage.reduce = seconds_to_reduce(problem, plan.stages[s], cost.stages[s]);
    stage.turns = static_cast<double>(cost.stages[s].turns);
    ranks += stage.turns;
    stage.ahead = std::floor((ranks - 1) / stage.turns);
    if (s + 1 < stages.size()) {
      const auto transfer = [&](Bytes bytes) {
        return slowest_transfer(problem, cost.stages[s], cost.stages[s + 1], bytes);
      };
      stage.there = transfer(cost.cut[s] * std::max(largest_share(cost.stages[s]), largest_share(cost.stages[s + 1])));
      stage.bytes = stage.there - transfer(Bytes{0});
    }
  }
  return stages;
}

// The period of a chain of stages that never runs dry: the longest that a device, a link, a reduction or a chain of
// waiting stages needs for an iteration.
Seconds steady_period(const std::vector<SteadyStage>& stages, double micro_batches, const Pace& pace) {
  Seconds period;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const SteadyStage& stage = stages[s];
    const double own = micro_batches / stage.turns; // micro-batches of one replica
    const Seconds update = pace.steps_late ? stage.step : stage.reduce + stage.step;
    period = std::max(period, own * stage.work + (pace.steps_each_micro_batch ? own : 1) * update);
    if (s + 1 < stages.size()) {
      period = std::max(period, micro_batches / std::min(stage.turns, stages[s + 1].turns) * stage.bytes);
    }
    if (pace.steps_late) { // the step, if anything follows it in the iteration, comes `ahead` turns before its end
      period = std::max(period, stage.reduce);
      period = std::max(period, stage.ahead > 0 ? stage.reduce + stage.step + stage.ahead * stage.work : Seconds{0});
    }
    // A forward of stage s goes on to stage t, which then runs a backward that comes back to s and lets it run a later
    // forward: so many micro-batches are done in that time.
    Seconds loop = pace.steps_each_micro_batch ? update : Seconds{0};
    for (std::size_t t = s; t < stages.size(); ++t) {
      loop += stages[t].work + (t > s ? 2 * stages[t - 1].there : Seconds{0});
      const double done = (stage.ahead + 1) * stage.turns - stages[t].ahead * stages[t].turns;
      period = std::max(period, micro_batches / done * loop);
    }
  }
  return period;
}

} // namespace

Seconds estimate_period(const Problem& problem, const Plan& plan, const PlanCost& cost, const Pace& pace) {
  return pace.flushes ? estimate_iteration(problem, plan, cost)
                      : steady_period(steady_stages(problem, plan, cost, pace), problem.micro_batches, pace);
}

} // namespace stagecraft
