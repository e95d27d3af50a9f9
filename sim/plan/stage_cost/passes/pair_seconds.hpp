// How long a forward and a backward of two micro-batches take beside each other where ranks share experts, as
// Megatron-Core runs them: layer by layer, on one stream for what goes to experts and one for all else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/plan/stage_cost/passes/group_passes.hpp"

namespace stagecraft {

/// Seconds in which the host launches the parts of a pass.
struct SplitLaunches {
  std::vector<Seconds> computations; ///< with the exchanges behind them
  std::vector<Seconds> weights;
  std::vector<std::optional<Seconds>> exchanges; ///< of those before which the host waits, behind that wait
};

/// A pass as it computes and sends tokens by turns: computations[0], exchanges[0], computations[1], …; a computation
/// more than exchanges.
struct SplitPass {
  std::vector<Seconds> computations, exchanges;
  std::vector<Seconds> weights; ///< of a backward: of each computation, behind it, the gradients of weights
  std::vector<double> slower{}; ///< [exchange]: how many times as long computing takes beside it; empty: 1 for all
  std::optional<SplitLaunches> launches{}; ///< nothing: the host takes no time
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
/// exchange waits for. One host launches both, part by part, ahead of the device but for where it waits; it is as far
/// ahead at first as such a pair leaves it at the end. `each_part` is what it does besides for each of the parts, but
/// for the gradients of weights. O(exchanges).
Seconds seconds_of_pair(const SplitPass& forward, const SplitPass& backward, bool delayed, Seconds each_part = {});

} // namespace stagecraft
