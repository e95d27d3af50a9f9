// Over how many ranks, or nodes, the experts of one token lie.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// [block]: the probability that at least one of a token's experts is in the block, where `block_of` says in which each
/// expert is; their sum is the expected number of blocks that a token is sent to. A token draws experts one after
/// another without replacement, each in proportion to its popularity among those that are left: first
/// Routing::top_groups groups of experts by the popularity of their sum, then Routing::top experts of these. Where
/// experts are chosen in turn, it is the part of the tokens that have one there.
std::vector<double> hit_probabilities(const Routing& routing, const std::vector<int>& block_of);

} // namespace stagecraft
