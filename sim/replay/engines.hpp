// The engines by name. Another is one file with its ReplayFunction and one row here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "sim/replay/replay.hpp"

namespace stagecraft {

struct EngineRow {
  std::string_view name, help;
  ReplayFunction replay;
  bool slow_to_start = true; ///< every call starts a process, so one call with many graphs is cheaper than many calls
};

inline constexpr std::array kEngines = {
    EngineRow{"simgrid", "max-min sharing of links, by SimGrid where flows meet", replay_simgrid},
    EngineRow{"simgrid-full", "SimGrid runs all transfers and computations, on hosts with speed profiles",
              replay_simgrid_full},
    EngineRow{"analytic", "every transfer has its links for itself; a hundred times faster", replay_analytic, false},
};

} // namespace stagecraft
