// How long a forward and a backward of two micro-batches take beside each other where ranks share experts, as
// Megatron-Core runs them: layer by layer, on one stream for what goes to experts and one for all else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/stage_cost/group_passes.hpp"

namespace stagecraft {

/// A pass as it computes and sends tokens by turns: computations[0], exchanges[0], computations[1], …; a computation
/// more than exchanges.
struct SplitPass {
  std::vector<Seconds> computations, exchanges;
  std::vector<Seconds> weights; ///< of a backward: of each computation, behind it, the gradients of weights
  std::vector<double> slower{}; ///< [exchange]: how many times as long computing takes beside it; empty: 1 for all
};

/// How many times as long a device of the type computes beside an exchange of its own, as it says
/// (docs/model.md, "Beside exchanges").
double slower_beside(const PassExchange& exchange, const DeviceType& type);

/// A forward, or a backward with both gradients, on a device of the type. All but what goes to experts counts as
/// computed: it takes as long in all as the pass.
SplitPass split_at_experts(const GroupPass& pass, const DeviceType& type);

/// A backward of which the gradients of weights may wait: `input` without them.
SplitPass split_at_experts(const GroupPass& backward, const GroupPass& input, const DeviceType& type);

/// Seconds of both. While an exchange is under way, of either, what is computed takes longer, as it says. The exchanges
/// of the two are under way one after another: a backward's first, then a forward's, a forward's, a backward's, and so
/// on; beside them the forward and the backward compute by turns, as each of Megatron-Core's pairs of layers does. Each
/// part waits for the one before it in its pass. With `delayed`, gradients of weights come behind what the next
/// exchange waits for. O(exchanges).
Seconds seconds_of_pair(const SplitPass& forward, const SplitPass& backward, bool delayed);

} // namespace stagecraft
