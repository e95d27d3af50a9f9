// How dynamic balancing places operators and updates weights: the key `dynamic` of a study.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace stagecraft {

/// How the balancer places operators; the table of placements has a row for each.
enum class PlacementRule { contiguous, earliest_finish, earliest_finish_contiguous, earliest_finish_divided };

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
  PlacementRule placement = PlacementRule::contiguous;
  WeightUpdate update = WeightUpdate::mean;
  double balanced = 0.02; ///< balanced when the largest waiting is above the mean by this part of T at most
  double changed = 0.02;  ///< the world has changed when T or a device's busy time differs by more than this part of T
  int rounds = 50;        ///< most that a search takes before the best plan is held
  bool operator==(const BalanceOptions&) const = default;
};

} // namespace stagecraft
