// How dynamic balancing places operators and updates weights: the key `dynamic` of a study.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sim/plan/plan.hpp"

namespace stagecraft {

struct PlanRequest;

/// Places all operators as if device d were weights[d] times as fast as its costs say; a plan or the reason why not.
using PlaceFunction = PlanResult (*)(const PlanRequest& request, std::span<const double> weights);

PlanResult place_contiguous(const PlanRequest& request, std::span<const double> weights);
PlanResult place_earliest_finish(const PlanRequest& request, std::span<const double> weights);
PlanResult place_earliest_finish_contiguous(const PlanRequest& request, std::span<const double> weights);
PlanResult place_earliest_finish_divided(const PlanRequest& request, std::span<const double> weights);

struct PlacementRow {
  std::string_view name, help;
  PlaceFunction place;
};
inline constexpr std::array kPlacements = {
    PlacementRow{"contiguous", "each device in turn takes what it finishes by the earliest time that all can keep",
                 place_contiguous},
    PlacementRow{"earliest-finish", "each operator where it finishes earliest in a running pipeline, as eft",
                 place_earliest_finish},
    PlacementRow{"earliest-finish-contiguous", "the same, devices never going back along a path, as eft-contiguous",
                 place_earliest_finish_contiguous},
    PlacementRow{"earliest-finish-divided",
                 "as earliest-finish, an operator's samples shared out by weight where it finishes earlier so",
                 place_earliest_finish_divided},
};

/// By what factor a device's weight grows after a round of T seconds, its waiting W, the mean over n devices Wm, at
/// step e: mean 1 + e (W - Wm)/T; share 1 + e (W/sum W - 1/n).
enum class WeightUpdate { mean, share };
struct WeightUpdateRow {
  std::string_view name, help;
  WeightUpdate update;
};
inline constexpr std::array kWeightUpdates = {
    WeightUpdateRow{"mean", "by a device's waiting above the mean, in parts of the iteration", WeightUpdate::mean},
    WeightUpdateRow{"share", "by a device's share of all waiting, the patent's wording", WeightUpdate::share},
};

/// Key `dynamic` of a study.
struct BalanceOptions {
  const PlacementRow* placement = &kPlacements[0];
  WeightUpdate update = WeightUpdate::mean;
  double balanced = 0.02; ///< balanced when the largest waiting is above the mean by this part of T at most
  double changed = 0.02;  ///< the world has changed when T or a device's busy time differs by more than this part of T
  int rounds = 50;        ///< most that a search takes before the best plan is held
  bool operator==(const BalanceOptions&) const = default;
};

} // namespace stagecraft
