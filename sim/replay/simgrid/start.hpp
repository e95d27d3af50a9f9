// Starts SimGrid; docs/decisions/0002-simgrid-as-flow-engine.md gives the reasons. Only replay and its tests include
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simgrid/s4u.hpp>

#include <string>
#include <vector>

namespace stagecraft {

/// The one engine of the process: max-min sharing without effects of TCP. It has no latencies, since timers stand for
/// them, and merges events only within 1e-12 s.
inline simgrid::s4u::Engine start_simgrid() {
  std::vector<std::string> words = {"stagecraft",
                                    "--log=root.thres:error",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/TCP-gamma:1e15",
                                    "--cfg=surf/precision:1e-12"};
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  int count = static_cast<int>(words.size());
  return simgrid::s4u::Engine(&count, arguments.data());
}

} // namespace stagecraft
