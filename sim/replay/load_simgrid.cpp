// Loads the module of SimGrid when it is first asked to replay.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/process/module.hpp"
#include "sim/replay/simgrid_module.hpp"

namespace stagecraft {
namespace {

std::vector<Timeline> replay_in_module(std::span<const ReplayRequest> requests, bool computes) {
  const auto replay =
      module_function<decltype(stagecraft_replay_simgrid)>("stagecraft_simgrid.so", "stagecraft_replay_simgrid");
  std::vector<Timeline> timelines;
  replay(requests, computes, timelines);
  return timelines;
}

} // namespace

std::vector<Timeline> replay_simgrid(std::span<const ReplayRequest> requests) {
  return replay_in_module(requests, false);
}

std::vector<Timeline> replay_simgrid_full(std::span<const ReplayRequest> requests) {
  return replay_in_module(requests, true);
}

} // namespace stagecraft
