// What planners assume of a schedule: the micro-batches that its stages hold, and the versions of weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/plan/estimate/in_flight.hpp"
#include "sim/plan/problem.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// Counts of the schedules asked about so far. They depend on no study, model or platform, so studies may share them.
struct ScheduleCounts {
  /// Empty where the schedule cannot be made.
  struct Assumed {
    std::vector<double> in_flight; ///< [stage]
    std::vector<int> versions;     ///< [stage]
  };
  /// Schedule that is planned for, ranks, chunks, micro-batches, and the share of activations that weight gradients
  /// need.
  using Key = std::tuple<const ScheduleRow*, int, int, int, double>;
  std::map<Key, Assumed> known;
  std::vector<Key> made; ///< keys of `known` in the order in which they were asked about

  /// What was made since there were `count`, as bytes for another process forked from the same one.
  std::string made_since(std::size_t count) const;
  /// Takes what made_since() wrote.
  void take(std::string_view bytes);
};

/// The counts of a schedule by name, with a problem's micro-batches and its share of activations that weight gradients
/// need. `counts` must outlive it.
InFlight in_flight_of(ScheduleCounts& counts, const ScheduleRow& row, int chunks, const Problem& problem);

/// The counts of a schedule from elsewhere, with a problem's share of activations that weight gradients need. Where a
/// planner asks for another number of stages than the schedule has, each stage counts as the schedule's own of that
/// number, and as 1 beyond the last: the plan will be refused.
InFlight in_flight_of(const Schedule& orders, const Problem& problem);

/// Versions of weights that a schedule keeps on so many ranks with a problem's micro-batches: the fewest of any stage.
int versions_of(ScheduleCounts& counts, const ScheduleRow& row, int ranks, int chunks, const Problem& problem);

} // namespace stagecraft
