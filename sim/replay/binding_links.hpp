// Which links may hold up the transfers of a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// For each leg of a graph, the links on its way that may be full while no other is, in its order, each as often as the
/// leg crosses it. Left out are links without a limit, and those in the shadow of another: one that is no wider, and
/// that every leg which crosses the first crosses at least as often. Whatever flows, the other one is full before, so
/// max-min sharing gives the same rates without the first.
std::vector<std::vector<LinkId>> binding_links(const TaskGraph& graph, const Platform& platform);

} // namespace stagecraft
