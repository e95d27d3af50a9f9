// What a timeline says: pure functions of it. Every figure is defined in docs/model.md, "Metrics".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Energy of one iteration, split by what draws it.
struct Energy {
  Joules devices_idle;    ///< all devices in use, all the time
  Joules devices_waiting; ///< what a device that waits draws beyond idle
  Joules devices_dynamic; ///< what a device that computes draws beyond idle
  Joules hosts_idle, hosts_dynamic;
  Joules loaders_busy, loaders_waiting, drivers_waiting; ///< add up to hosts_dynamic
  Joules links_idle, links_dynamic;
  Joules total() const {
    return devices_idle + devices_waiting + devices_dynamic + hosts_idle + hosts_dynamic + links_idle + links_dynamic;
  }
};

/// Figures of one run. Per-device vectors follow TaskGraph::devices; unused devices have no entry.
struct Metrics {
  Seconds iteration;            ///< the period of the steady state
  Seconds makespan;             ///< one iteration alone from empty
  std::vector<Seconds> busy;    ///< F, B, W, R and optimiser, per iteration
  std::vector<Seconds> waiting; ///< iteration - busy
  std::vector<Seconds> tail;    ///< from the device's last task to the end of the iteration, within waiting
  std::vector<Seconds> exposed; ///< waiting for data already on its way
  std::vector<Seconds> stall;   ///< waiting for the loader
  std::vector<Bytes> peak_memory;
  std::vector<TaskId> peak_task; ///< the task that starts when memory peaks
  double bubble_fraction = 0;    ///< 1 - sum busy / (devices * iteration)
  double load_imbalance = 0;     ///< max / mean busy - 1
  Energy energy;                 ///< devices in use, the hosts of their nodes, and the links of both
  Dollars cost;                  ///< devices in use and the hosts of their nodes, per iteration
  long tasks = 0;                ///< executed over all iterations replayed, transfers included
};

Metrics measure(const TaskGraph& graph, const Timeline& timeline, const Platform& platform);

/// The link that is busiest in the last iteration, as bytes / (bandwidth * iteration).
struct BusiestLink {
  LinkId link = -1;
  double share = 0;
};
BusiestLink busiest_link(const TaskGraph& graph, const Platform& platform, Seconds iteration);

} // namespace stagecraft
