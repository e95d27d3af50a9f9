// A coarser graph for models with too many antichain states: parallel branches are cut into fewer blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Nodes of a graph by their predecessors; nodes are in topological order.
using Predecessors = std::vector<std::vector<int>>;

/// Ideals of a graph as rows of flags, breadth first by size; empty if there are more than `cap` besides the empty
/// ideal.
std::vector<std::vector<char>> ideals_of(const Predecessors& graph, int cap);

/// A partition of the operators into convex blocks: the block of each operator, blocks in topological order.
struct Blocks {
  std::vector<int> of;
  Predecessors predecessors; ///< per block
  int count() const { return static_cast<int>(predecessors.size()); }
};

/// Contracts parallel branches until the blocks have at most `cap` ideals. Operators that are comparable with all
/// others stay blocks of their own; regions lie between them. Each step takes the region with most ideals and cuts its
/// branch with most blocks into half as many; once all branches there are single blocks, the two with the fewest
/// operators become one.
Blocks contract_branches(const ModelGraph& model, int cap);

} // namespace stagecraft
