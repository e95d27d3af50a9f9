// How dynamic balancing places operators and updates weights: the key `dynamic` of a study.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace stagecraft {

/// How the balancer places operators; the table of placements has a row for each.
enum class PlacementRule {
  contiguous,
  earliest_finish,
  earliest_finish_contiguous,
  earliest_finish_divided,
  earliest_finish_links
};

/// How a device's weight changes after a round. Its factor is 1 + e (W - Wm)/T (mean) or 1 + e (W/sum W - 1/n) (share),
/// where T is the iteration time, W the time that the device waited, Wm the mean of W over the n devices, and e the
/// step size.
enum class WeightUpdate { mean, share };
struct WeightUpdateRow {
  std::string_view name, help;
  WeightUpdate update;
};
inline constexpr std::array kWeightUpdates = {
    WeightUpdateRow{"mean", "by how far a device's waiting exceeds the mean, relative to the iteration",
                    WeightUpdate::mean},
    WeightUpdateRow{"share", "by a device's share of all waiting, as the patent words it", WeightUpdate::share},
};

/// Key `dynamic` of a study.
struct BalanceOptions {
  PlacementRule placement = PlacementRule::contiguous;
  WeightUpdate update = WeightUpdate::mean;
  double balanced = 0.02; ///< balanced if the longest waiting exceeds the mean by at most this fraction of T
  double changed = 0.02;  ///< the world has changed if T or a busy time differs by more than this fraction of T
  int rounds = 50;        ///< most rounds of a search; then the best plan is held
  bool operator==(const BalanceOptions&) const = default;
};

} // namespace stagecraft
