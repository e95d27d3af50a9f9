// Simulates one rank of each tensor group where all of them do the same at the same times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "sim/schedule/task_graph/expand_exchanges.hpp"

namespace stagecraft {

/// The legs of flows of the teams that stay, over the links that stay.
using RankLegs = std::map<const Leg*, Leg>;

/// Leaves of each tensor group its first rank, in the graph and in the plan, and puts it in the place of the others:
/// each of these has as many tasks, of the same times and bytes, in the same order, that wait for the same and cross
/// alike links as often. That is looked at task by task and link by link, so that what stays is exact
/// (docs/decisions/0024-folding.md); nothing is changed, and nothing returned, where it is not so.
std::optional<RankLegs> fold_ranks(TaskGraph& graph, ExchangePlan& plan, const Platform& platform, const Fold& fold);

} // namespace stagecraft
