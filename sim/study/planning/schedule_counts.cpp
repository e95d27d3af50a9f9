// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/schedule_counts.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

const ScheduleCounts::Assumed& assumed(ScheduleCounts& counts, const ScheduleRow& row, int ranks, int chunks,
                                       int micro_batches, double kept) {
  const auto [slot, is_new] = counts.known.try_emplace({&row, ranks, chunks, micro_batches, kept});
  if (is_new) {
    ScheduleResult made = make_schedule(planned_row(row), {ranks, micro_batches, chunks});
    if (const Schedule* schedule = std::get_if<Schedule>(&made)) {
      slot->second = {in_flight(*schedule, kept), schedule->versions};
    }
  }
  return slot->second;
}

// The share of a micro-batch's activations that weight gradients need, over the whole model, for planners. It is 1
// where operators have several configurations, and where something is recomputed: stages then keep less than their
// activations.
double kept_for_weights(const Problem& problem) {
  Bytes all;
  Bytes needed;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    all += problem.stash_bytes(op);
    needed += problem.weight_bytes(op);
  }
  const bool known = problem.model.configurations.empty() && problem.training.recompute.what == Recompute::none;
  return known && needed < all ? needed / all : 1;
}

} // namespace

InFlight in_flight_of(ScheduleCounts& counts, const ScheduleRow& row, int chunks, const Problem& problem) {
  const double kept = kept_for_weights(problem);
  return [&counts, &row, chunks, kept, micro_batches = problem.micro_batches](int stage, int stages) {
    const int ranks = std::max(1, stages / chunks);
    // A schedule that cannot run so many stages says so itself later; a memory error must not come first.
    const std::vector<double>& held = assumed(counts, row, ranks, chunks, micro_batches, kept).in_flight;
    return stage < static_cast<int>(held.size()) ? held[stage] : 1.0;
  };
}

InFlight in_flight_of(const Schedule& orders, const Problem& problem) {
  return [held = in_flight(orders, kept_for_weights(problem))](int stage, int) {
    return stage < static_cast<int>(held.size()) ? held[stage] : 1.0;
  };
}

int versions_of(ScheduleCounts& counts, const ScheduleRow& row, int ranks, int chunks, int micro_batches) {
  const std::vector<int>& kept = assumed(counts, row, ranks, chunks, micro_batches, 1).versions;
  return kept.empty() ? 1 : *std::min_element(kept.begin(), kept.end());
}

} // namespace stagecraft
