// The placements that dynamic balancing can use, one row each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// Places all operators as if device d were weights[d] times as fast as its costs say; a plan or the reason why not.
using PlaceFunction = PlanResult (*)(const PlanRequest& request, std::span<const double> weights);

PlanResult place_contiguous(const PlanRequest& request, std::span<const double> weights);
PlanResult place_earliest_finish(const PlanRequest& request, std::span<const double> weights);
PlanResult place_earliest_finish_contiguous(const PlanRequest& request, std::span<const double> weights);
PlanResult place_earliest_finish_divided(const PlanRequest& request, std::span<const double> weights);
PlanResult place_earliest_finish_links(const PlanRequest& request, std::span<const double> weights);

/// A placement as users name it, key `dynamic.placement` of a study.
struct PlacementRow {
  std::string_view name, help;
  PlacementRule rule;
  PlaceFunction place;
};
inline constexpr std::array kPlacements = {
    PlacementRow{"contiguous",
                 "each device in turn takes what it finishes within a common limit, the smallest that works",
                 PlacementRule::contiguous, place_contiguous},
    PlacementRow{"earliest-finish", "each operator where it finishes earliest in a running pipeline, as eft",
                 PlacementRule::earliest_finish, place_earliest_finish},
    PlacementRow{"earliest-finish-contiguous",
                 "the same, but data never goes back to an earlier device, as eft-contiguous",
                 PlacementRule::earliest_finish_contiguous, place_earliest_finish_contiguous},
    PlacementRow{"earliest-finish-divided",
                 "as earliest-finish, with an operator's samples divided by weight if it then finishes earlier",
                 PlacementRule::earliest_finish_divided, place_earliest_finish_divided},
    PlacementRow{"earliest-finish-links",
                 "as earliest-finish, but a link carries one tensor at a time, and nothing ends before its last input",
                 PlacementRule::earliest_finish_links, place_earliest_finish_links},
};

/// The row of a rule.
constexpr const PlacementRow& row_of(PlacementRule rule) { return kPlacements[static_cast<std::size_t>(rule)]; }

} // namespace stagecraft
