// Finds what of a plan is alike, before any task exists.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

struct FoldRequest {
  const Problem& problem;
  const Plan& plan;             ///< placed on the ranks of its schedule
  bool clips_gradients = false; ///< by the norm over all devices
  bool shares_links = true;     ///< the engine lets transfers share links
};

/// Proposes that all replicas of a stage are alike, and splits classes of devices and links until each member of a
/// class sees the same: the types, stages and ranks of devices, the bandwidths of links, who sends what to whom over
/// which links, who reduces and gathers together, who shares tokens and experts (colour refinement). Nothing where no
/// two replicas are alike, where equal replicas may drift apart on a link that they share (docs/decisions/0016), and
/// for what is not folded: stages whose replicas have unequal shares or take micro-batches in turn, clipped gradients
/// that are left to hosts, and reductions hop by hop. Returns the costs of the replicas that are simulated, with the
/// fold.
std::optional<PlanCost> fold_plan(const FoldRequest& request);

} // namespace stagecraft
