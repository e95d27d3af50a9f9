// Costs of stages that were worked out before, for searches whose plans share most of their stages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// Remembers what stages cost. It holds about 128 MiB at most, and then starts anew.
class KnownStages {
public:
  /// What make() returned when the key was asked for first. The key names all that make() reads. Valid until the next
  /// call.
  template <class Make> const StageCost& find_or_make(std::string key, const Make& make) {
    constexpr std::size_t kMost = 128 << 20;
    if (bytes_ > kMost) {
      known_.clear();
      bytes_ = 0;
    }
    const auto [known, is_new] = known_.try_emplace(std::move(key));
    if (is_new) {
      known->second = make();
      bytes_ += known->first.size() + sizeof(StageCost) + known->second.replicas.size() * sizeof(ReplicaCost);
    }
    return known->second;
  }

private:
  std::unordered_map<std::string, StageCost> known_;
  std::size_t bytes_ = 0; // of all that is known, about
};

/// cost_plan() and cost_memory() of a plan, some of whose stages may be known; null: none is, and none is kept. The
/// problem must outlive `known`.
PlanCost cost_plan(const Problem& problem, const Plan& plan, KnownStages* known);
PlanCost cost_memory(const Problem& problem, const Plan& plan, KnownStages* known);

} // namespace stagecraft
