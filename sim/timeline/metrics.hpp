// Figures that follow from a timeline, as pure functions. docs/model.md, "Metrics", defines each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Energy of one iteration, split by what draws it.
struct Energy {
  Joules devices_idle;    ///< all devices in use, all the time
  Joules devices_waiting; ///< what waiting devices draw beyond idle
  Joules devices_dynamic; ///< what computing devices draw beyond idle
  Joules hosts_idle, hosts_dynamic;
  Joules loaders_busy, loaders_waiting, drivers_waiting; ///< add up to hosts_dynamic
  Joules links_idle, links_dynamic;
  Joules total() const {
    return devices_idle + devices_waiting + devices_dynamic + hosts_idle + hosts_dynamic + links_idle + links_dynamic;
  }
};

/// Figures of one run. Per-device vectors follow TaskGraph::devices_in_use(); unused devices have no entry.
struct Metrics {
  Seconds iteration;            ///< period of the steady state
  Seconds makespan;             ///< one iteration alone, from an empty pipeline
  std::vector<Seconds> busy;    ///< per device: F, B, W, R and optimiser steps of an iteration
  std::vector<Seconds> at_rest; ///< per device: the part of `busy` in which it draws idle power, as good as
  std::vector<Seconds> waiting; ///< per device: iteration - busy
  std::vector<Seconds> tail;    ///< per device: from its last task to the end of the iteration; a part of waiting
  std::vector<Seconds> exposed; ///< per device: waiting for data that is being sent
  std::vector<Seconds> stall;   ///< per device: waiting for the loader
  std::vector<Bytes> peak_memory;
  std::vector<TaskId> peak_task; ///< per device: the task that starts when memory peaks
  double bubble_fraction = 0;    ///< 1 - sum busy / (devices * iteration)
  double load_imbalance = 0;     ///< max / mean busy - 1
  Energy energy;                 ///< of devices in use, the hosts of their nodes, and links between these
  Dollars cost;                  ///< of devices in use and the hosts of their nodes, per iteration
  Dollars assumed_cost;          ///< the part of `cost` that rests on assumed prices
  long tasks = 0;                ///< number of tasks run in all iterations replayed, transfers included
};

Metrics measure(const TaskGraph& graph, const Timeline& timeline, const Platform& platform);

/// The busiest link of the last iteration, and its share: bytes / (bandwidth * iteration).
struct BusiestLink {
  LinkId link = -1;
  double share = 0;
};
BusiestLink busiest_link(const TaskGraph& graph, const Platform& platform, Seconds iteration);

} // namespace stagecraft
