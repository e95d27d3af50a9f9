// Which replicas of a stage share states, gradients or weights, and which hold the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// Whether replicas of a stage share in several groups, each for itself, which hold the same (HSDP).
bool shares_in_groups(const StageCost& cost);

/// Replicas that hold the same, by their places among a stage's devices: [group that shares it][part of it]; one group
/// where nothing is shared.
using SharingGroups = std::vector<std::vector<std::size_t>>;

/// The devices of a rank: all of its replicas hold the same, but for experts, of which those have the same ones that
/// have the same place in a group of ranks which share experts.
std::vector<SharingGroups> sharing_groups(const StageCost& cost, std::size_t rank, bool of_experts);

/// The devices that have the same part, for each part.
std::vector<std::vector<std::size_t>> places_of(const SharingGroups& groups);

/// Of a group that shares weights those of each few, in a row, that have a second copy (ZeRO++).
std::vector<std::vector<std::size_t>> second_copies(const std::vector<std::size_t>& group, int members);

/// Who reduces in two hops: the members of each node, and those that have the same place in their nodes. All nodes have
/// as many as the one that has fewest.
struct HopGroups {
  std::vector<std::vector<std::size_t>> inside, between;
};
HopGroups hop_groups(const Platform& platform, const StageCost& cost, const std::vector<std::size_t>& group);

/// Of replicas that hold the same those groups that are simulated. All have a part each where there is one part only.
struct FoldedSharing {
  std::vector<FoldedGroup> groups; ///< that share
  std::vector<FoldedGroup> places; ///< that have the same part
  std::size_t parts = 1;
};
/// Of what is alike one. `fold`: null where each stands for itself.
std::vector<FoldedSharing> fold_sharing(const std::vector<SharingGroups>& all, const StageFold* fold,
                                        std::size_t degree);

} // namespace stagecraft
