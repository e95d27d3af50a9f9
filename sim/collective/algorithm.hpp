// Algorithms of collectives: one row each in a table, one file each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/collective/flow.hpp"
#include "sim/collective/rank_map.hpp"

namespace stagecraft {

/// Multiprocessors that a library's kernel takes on each rank.
struct KernelProcessors {
  int in_node, between; ///< among ranks of one node, and of several
};

struct AlgorithmRow {
  std::string_view name, help;
  /// Why the algorithm cannot carry out the collective among these ranks; "" if it can.
  std::string (*why_not)(CollectiveKind kind, const RankMap& ranks, Router& router);
  /// What it sends. A group of one rank sends nothing.
  Flows (*flows)(CollectiveKind kind, const RankMap& ranks, Router& router);
  KernelProcessors processors;
};
std::span<const AlgorithmRow> algorithms();

/// A ring through all nodes, once for each channel (Patarasuk, Yuan 2009). An all-reduce of n bytes by r ranks sends
/// 2 (r-1)/r n over each hop, after 2 (r-1) hops; a reduce-scatter or an all-gather is half of that.
std::string why_no_ring(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows ring_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// Two binary trees over the nodes for each channel, each reducing and spreading half of the bytes, so that the inner
/// nodes of one are leaves of the other (Sanders, Speck, Träff 2009); a chain inside each node.
std::string why_no_tree(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows tree_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// A ring inside each node, then rings over the nodes, one for each rank of a node with its part of the bytes, then
/// rings inside the nodes again.
std::string why_no_hierarchy(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows hierarchical_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// The switch of a node adds up and spreads: every rank sends and receives n + n/r bytes.
std::string why_no_nvls(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows nvls_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// Where every two ranks have a link of their own, as in a full mesh of Infinity Fabric: each adds up its own part,
/// which it gets from all others at once, and sends it to all. An r-th of the buffer on each link in each half of an
/// all-reduce.
std::string why_not_direct(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows direct_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// On a torus, whose ranks form a grid of it: a ring along every axis, both ways round, all at once, each with its part
/// of the bytes; a line where the ranks of an axis do not close (Austin et al. 2025, "How to Scale Your Model",
/// Sharded Matrices). An all-to-all's pairs go along one axis after another.
std::string why_no_torus(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows torus_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// Every rank sends every other one its part, in step s to the s-th rank after it; all steps share the links.
std::string why_no_pairs(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows pairs_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// Whatever a library does below a switch, in the time that was measured for it. The bytes are those of a ring, or of
/// pairs in an all-to-all, as far as they fit into that time; only they share links.
std::string why_not_measured(CollectiveKind kind, const RankMap& ranks, Router& router);
Flows measured_flows(CollectiveKind kind, const RankMap& ranks, Router& router);

/// An algorithm that a group may use.
struct Way {
  const AlgorithmRow* algorithm = nullptr;
  Flows flows;
};

/// The ways in which the devices can carry out a collective: of the algorithm `wanted`, or if that is "auto" the
/// measured one where there is one, since it is what a library chose, else every one. Where the wanted one cannot, the
/// ring; why_not_wanted() says why.
std::vector<Way> ways_of(CollectiveKind kind, const std::vector<DeviceId>& devices, Router& router,
                         std::string_view wanted);
std::vector<Way> ways_of(CollectiveKind kind, const RankMap& ranks, Router& router, std::string_view wanted);
std::string why_not_wanted(CollectiveKind kind, const std::vector<DeviceId>& devices, Router& router,
                           std::string_view wanted);

/// The way of least closed form for a buffer of this size; the first of equals.
const Way& fastest_of(std::span<const Way> ways, Bytes buffer);

} // namespace stagecraft
