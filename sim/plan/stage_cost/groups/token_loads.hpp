// How much of an attention falls to each of the ranks that share tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/workload/model_graph.hpp"
#include "sim/workload/training/context.hpp"

namespace stagecraft {

/// [loop of the context axis]: pairs of a query of this rank's tokens and a key that it sees, to an equal share of all.
/// A zig-zag loads all ranks alike under a full causal mask, but not where a sequence is packed from documents.
std::vector<double> token_loads(const AttentionMask& mask, const Context& context);

} // namespace stagecraft
