// Collective communication as values: what is exchanged, among whom, how much, and how long it takes on links that
// nobody else uses. The replay runs the same traffic step by step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/platform/route.hpp"

namespace stagecraft {

/// The collectives that plans use. traffic_of() has the closed form of each kind. A transfer from one device to another
/// is not a collective: PathCost::time() has its time.
enum class CollectiveKind {
  all_reduce,     ///< every rank brings a buffer and ends up with the sum of all
  reduce_scatter, ///< every rank brings a buffer and ends up with its own part of the sum
  all_gather,     ///< every rank brings its own part and ends up with all of them
  all_to_all,     ///< every rank brings a part for each other one
  shift,          ///< every rank sends its buffer to the next one, the last to the first: a step of a ring
  broadcast,      ///< every rank gets the buffer that one of them has
  dispatch,       ///< every rank sends its tokens to the ranks of their experts, each once to a node (DispatchTraffic)
  combine,        ///< what these make of them comes back the same way
};
inline constexpr std::size_t kCollectiveKinds = 8;

class GroupWays;
struct DispatchTraffic;

/// A group as closed forms see it: the number of ranks, and the greatest latency and the greatest time per byte between
/// neighbours of their ring. A planner that does not know the devices yet may assume a group.
struct Group {
  int ranks = 1;
  PathCost slowest;
  std::shared_ptr<const GroupWays> ways = nullptr; ///< of known devices; none: a plain ring over the slowest path
};

/// The devices as one ring, in this order and from the last back to the first.
Group ring_of(const std::vector<DeviceId>& devices, Router& router);

/// The same with the ways in which these devices can exchange data, of the algorithm `wanted` or, if that is "auto",
/// of every one. With `tokens`, also those in which they send these to experts.
Group group_with_ways(const std::vector<DeviceId>& devices, Router& router, std::string_view wanted,
                      const DispatchTraffic* tokens = nullptr);

/// Groups for which this is the same take the same times.
std::vector<double> figures_of(const Group& group);

/// The greater latency and the greater time per byte of two paths.
PathCost slowest_of(const PathCost& a, const PathCost& b);

struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Group group;
  /// The buffer of each rank: of a reduce_scatter before it, of an all_gather and a broadcast after it, of a dispatch
  /// and a combine its own tokens.
  Bytes bytes;
};

/// The bytes that each rank sends to its neighbour in total, and the number of steps, each of which waits for the one
/// before.
struct Traffic {
  Bytes bytes;
  int steps = 0;
};

/// An all-reduce runs on a ring of r ranks: r-1 steps add up and r-1 steps pass the sums on; in each step every rank
/// sends one r-th of its buffer (Patarasuk, Yuan 2009). A reduce_scatter is the first half of that, an all_gather the
/// second. In an all_to_all each rank sends an r-th to every other one, in a shift all to the next; a broadcast passes
/// all on from rank to rank, piece by piece. A group of one rank exchanges nothing.
Traffic traffic_of(const Collective& collective);

/// steps * latency + bytes / bandwidth, over the slowest of the group's paths; or, of known devices, the closed form of
/// their fastest way.
Seconds seconds_of(const Collective& collective);

/// The same, the part of it that is latency, and the most multiprocessors that its kernels take on a rank at once, 0
/// where that is not known.
struct CollectiveCost {
  Seconds seconds, latency;
  int processors = 0;
};
CollectiveCost cost_of(const Collective& collective);

} // namespace stagecraft
