// Tokens on their way to experts and back as DeepEP sends them: once to each node over the network, to the rank of the
// same place in it, and from there once to each rank inside (DeepSeek-AI 2024, "DeepSeek-V3", 3.2.2).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/collective/collective.hpp"
#include "sim/collective/flow.hpp"
#include "sim/collective/rank_map.hpp"

namespace stagecraft {

/// What each rank of a group sends of its tokens: copies of one token, on average over tokens, of the busiest rank.
struct DispatchTraffic {
  double between = 0; ///< through its NIC, to other nodes or from them
  double inside = 0;  ///< through its port, to other ranks of the node or from them, be they forwarded or its own
  Bytes dispatched, combined; ///< a token on its way to the experts, and back
  int processors = 0;         ///< multiprocessors that the kernels take
  std::string_view kernels;   ///< whose they are: "deepep" or "hybridep"
};

/// Whether a collective is of tokens on their way to experts or back.
constexpr bool is_of_tokens(CollectiveKind kind) {
  return kind == CollectiveKind::dispatch || kind == CollectiveKind::combine;
}

/// What crosses the network, and beside it what crosses the ports inside the nodes; the buffer is a rank's own tokens,
/// once. Where the device's fits have times of such kernels, each flow alone takes the time of the whole.
Flows dispatch_flows(CollectiveKind kind, const RankMap& ranks, Router& router, const DispatchTraffic& tokens);

} // namespace stagecraft
