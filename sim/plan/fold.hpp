// What is simulated once where replicas, links and transfers are alike. docs/decisions/0024-folding.md says why that is
// exact.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/plan/shared_parts.hpp"
#include "sim/platform/route.hpp"

namespace stagecraft {

/// The replicas of a stage by class. Those of a class do the same at the same times; the first of them stands for all.
struct StageFold {
  std::vector<std::int32_t> class_of; ///< [replica]
  std::vector<std::int32_t> first;    ///< [class]: the replica that is simulated, ascending
  std::vector<std::int32_t> count;    ///< [class]: replicas that it stands for

  /// The place, among devices that are simulated, of the one that stands for a device of the stage, whose place is
  /// among all; replicas have so many devices.
  std::size_t simulated(std::size_t device, std::size_t degree) const {
    return static_cast<std::size_t>(class_of[device / degree]) * degree + device % degree;
  }
  bool operator==(const StageFold&) const = default;
};

/// Devices of a stage that exchange data, by their places among all, and how many such groups are alike.
struct FoldedGroup {
  std::vector<std::size_t> members;
  std::int32_t count = 1;
};

/// Of groups of a stage's devices, none of which is in two, one of those that are alike. `fold`: null where each stands
/// for itself.
std::vector<FoldedGroup> fold_groups(std::vector<std::vector<std::size_t>> groups, const StageFold* fold,
                                     std::size_t degree);

/// The places, among devices that are simulated, of those that stand for some devices of a stage, each once.
std::vector<std::size_t> simulated_places(const std::vector<std::size_t>& members, const StageFold* fold,
                                          std::size_t degree);

/// Two replicas that exchange data, not always those that are simulated, and how many such pairs are alike.
struct FoldedPair {
  SharedPart part;
  std::int32_t count = 1;

  bool operator==(const FoldedPair&) const = default;
};

/// The quotient of a plan and its platform by classes of devices and links that are alike: each link of a class is
/// crossed as often by transfers of each class, and each transfer of a class crosses as many links of each.
struct Fold {
  std::vector<StageFold> stages;              ///< [stage]
  std::vector<std::vector<FoldedPair>> pairs; ///< [edge of PlanCost]
  std::vector<LinkId> link;                   ///< [LinkId]: the one of its class that is simulated
  std::vector<std::int32_t> links;            ///< [LinkId] of a simulated link: how many it stands for

  /// What `count` flows, alike and each over its own links, are where one of them is simulated. It takes as long as
  /// one where nobody else uses the links. A link that stands for others is crossed by count · m/n flows, where one
  /// flow crosses m of its n: it stands as many times in the leg. Latency and bandwidth are those of one.
  Leg leg(const Leg& one, std::int32_t count) const;

  /// The simulated links on which such flows meet each other.
  std::vector<LinkId> meetings(const Leg& one, std::int32_t count) const;
};

} // namespace stagecraft
