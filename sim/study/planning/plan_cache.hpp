// Plans made so far, reused for every schedule that they serve.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/study/study_costs.hpp"

namespace stagecraft {

/// A plan, or why there is none, and how long the planning took.
struct Planned {
  PlanResult result;
  double seconds = 0;
};

/// What a planner reads, except its schedule's micro-batches in flight and versions: each Planning keeps those.
struct PlanKey {
  const StrategyRow* strategy = nullptr;
  int micro_batches = 1;
  int recompute = 0; ///< choice of the study's training
  FitChange change = FitChange::none;
  const ScheduleRow* schedule = nullptr; ///< only for a strategy that asks for replays; no other can see which it is
  const Schedule* orders = nullptr;      ///< the same for orders from elsewhere
  int chunks = 1;
  StagePlacement stage_placement = StagePlacement::interleaved;
  std::uint64_t seed = 0;
  bool any_plan = false; ///< only for a strategy that asks for replays; one that was searched for will do as well
  auto operator<=>(const PlanKey&) const = default;
};

/// Plannings of one study. A planning also serves another schedule in two cases:
///  - The schedule tells the planner the same: as many versions of weights, and as many micro-batches in
///    flight wherever the planner asked. A planner is a function, so it would make the same plan again.
///  - Memory did not shape the plan, and the plan fits under the schedule. Tighter counts would only have ruled out
///    plans that the planner did not want. (Not where everything is recomputed to see whether one schedule then fits.)
class PlanCache {
public:
  /// The planning that serves a request of this key; makes one where none does.
  const Planned& find_or_plan(const PlanKey& key, const PlanRequest& request);

  /// How many were made.
  std::size_t plannings() const { return made_.size(); }

  /// Those made since there were `count`, as bytes for another process forked from the same one.
  std::string made_since(std::size_t count) const;
  /// Takes what made_since() wrote, as if the plannings had been made here.
  void take(std::string_view bytes);

private:
  struct Planning {
    int versions = 1;
    InFlight in_flight; // knows what the planner asked
    Planned planned;
  };
  using Plannings = std::deque<Planning>; // in the order in which they were made; references to them stay valid

  static const Planning* serving(const Plannings& known, const PlanKey& key, const PlanRequest& request);
  static Planning plan(const StrategyRow& strategy, PlanRequest request);

  const Planning& add(const PlanKey& key, Planning planning);

  std::map<PlanKey, Plannings> known_;
  std::vector<std::pair<PlanKey, const Planning*>> made_; // in their order
};

} // namespace stagecraft
