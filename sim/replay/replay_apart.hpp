// Max-min sharing where nothing has to be shared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// What SimGrid would say of a graph of which no flows meet on a full link: each then has the rate that it has alone,
/// which is what max-min sharing gives it. Nothing where some do meet. Throws what a ReplayFunction throws.
std::optional<Timeline> replay_apart(const ReplayRequest& request);

} // namespace stagecraft
