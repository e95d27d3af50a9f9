// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/metrics.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "sim/base/improves.hpp"
#include "sim/timeline/critical_path.hpp"
#include "sim/timeline/last_transfers.hpp"
#include "sim/timeline/memory.hpp"

namespace stagecraft {
namespace {

// The part of a device's gap before a task during which the task's last input was being sent.
double exposed_part(double free, double start, double sent, double arrived) {
  return std::max(0.0, std::min(start, arrived) - std::max(free, sent));
}

bool feeds(const Work& work) {
  return work.kind == TaskKind::read || work.kind == TaskKind::load || work.kind == TaskKind::copy;
}

// [work]: the part of its time in which its device draws idle power, as good as.
std::vector<double> resting_parts(const TaskGraph& graph) {
  std::vector<double> parts;
  parts.reserve(graph.works.size());
  for (const Work& work : graph.works) {
    parts.push_back(work.at_rest * (1 - work.exchanging));
  }
  return parts;
}

// Adds one iteration's part of a device's busy, exposed and stalled time, along its program, and updates its peak
// memory. Where exchanges may slow computations down, these rest as long as they do alone: what is taken from them the
// exchanges use. That is known before the walk, in which each task counts.
template <bool kMayBeSlowed>
void walk_device(const TaskGraph& graph, const Timeline& timeline, std::size_t device, int iteration,
                 const LastTransfers& last, const double* resting, Metrics& metrics) {
  const std::size_t base = static_cast<std::size_t>(iteration) * graph.tasks();
  const double* start = timeline.start.data() + base;
  const double* finish = timeline.finish.data() + base;
  const auto program = graph.program_of(device);
  double level = (graph.fixed_memory[device].total() + held_at_start(graph, device)).value;
  double peak = level;
  TaskId peak_task = program.front();
  double busy = 0;
  double exposed = 0;
  double stall = 0;
  double at_rest = 0;
  // The gap before the first task counts too, from the last task of the iteration before.
  double free = iteration > 0 ? timeline.finish[base - graph.tasks() + program.back()] : 0;
  for (const TaskId task : program) {
    const std::int32_t number = graph.work[task];
    const Work& work = graph.works[number];
    if (work.goes_on) { // what its group exchanges before is a part of the same pass
      busy += exchanged_part(graph, last, start, finish, free, task);
    } else if (start[task] > free && last[task] >= 0) {
      const bool fed = feeds(graph.works[graph.work[last[task]]]);
      (fed ? stall : exposed) += exposed_part(free, start[task], fed ? free : start[last[task]], finish[last[task]]);
    }
    free = finish[task];
    busy += free - start[task];
    at_rest += resting[number] * (kMayBeSlowed ? work.seconds.value : free - start[task]);
    level += work.acquire.value;
    if (level > peak) {
      peak = level;
      peak_task = task;
    }
    level -= work.release.value;
  }
  metrics.busy[device] += Seconds{busy / timeline.window};
  metrics.at_rest[device] += Seconds{at_rest / timeline.window};
  metrics.exposed[device] += Seconds{exposed / timeline.window};
  metrics.stall[device] += Seconds{stall / timeline.window};
  if (const Bytes held = graph.held(device, Bytes{peak}); held > metrics.peak_memory[device]) {
    metrics.peak_memory[device] = held;
    metrics.peak_task[device] = peak_task;
  }
}

// Energy of the cores that load batches and of those that each drive a device. A driver that does not wait draws the
// same in every mode; no figure includes that.
void add_host_cores(const TaskGraph& graph, const Platform& platform, Metrics& metrics) {
  if (graph.host == HostWait::unmodelled) {
    return;
  }
  Energy& energy = metrics.energy;
  const bool spins = graph.host == HostWait::spin;
  std::vector<double> loaded(graph.works.size(), 0.0);
  for (const std::int32_t work : graph.work) {
    loaded[work] += graph.works[work].loads() ? graph.works[work].seconds.value : 0;
  }
  for (std::size_t work = 0; work < graph.works.size(); ++work) {
    if (graph.works[work].loads()) { // this work is a loader's
      const Host& host = platform.nodes[graph.works[work].node].host;
      const Seconds waiting = graph.workers * metrics.iteration - Seconds{loaded[work]};
      energy.loaders_busy += host.core_busy * Seconds{loaded[work]};
      energy.loaders_waiting += spins ? host.core_spin * waiting : Joules{0};
    }
  }
  for (const DeviceId device : graph.devices_in_use()) {
    const Host& host = platform.nodes[platform.devices[device].node].host;
    energy.drivers_waiting += spins ? host.core_spin * metrics.iteration : Joules{0};
  }
  energy.hosts_dynamic = energy.loaders_busy + energy.loaders_waiting + energy.drivers_waiting;
}

// Gives links the bytes of those that stand for them, and of what has no links where it is alone.
void unfold_bytes(const TaskGraph& graph, const std::vector<std::int32_t>& tasks, std::vector<double>& bytes) {
  for (std::size_t link = 0; link < graph.folded.link.size(); ++link) {
    bytes[link] = bytes[graph.folded.link[link]];
  }
  for (const auto& [work, links] : graph.folded.alone) {
    for (const LinkId link : links) {
      bytes[link] += tasks[work] * graph.works[work].bytes;
    }
  }
}

// Bytes that each link carries in one iteration.
std::vector<double> bytes_of_links(const TaskGraph& graph, const Platform& platform) {
  std::vector<double> bytes(platform.links.size(), 0.0);
  const std::vector<std::int32_t> tasks = graph.tasks_per_work();
  for (std::size_t work = 0; work < tasks.size(); ++work) {
    const Work& what = graph.works[work];
    if (what.transfers()) {
      for (const LinkId link : graph.legs[what.leg].links) {
        bytes[link] += tasks[work] * what.bytes; // whole numbers, so that their order does not matter
      }
    }
  }
  unfold_bytes(graph, tasks, bytes);
  return bytes;
}

// Which vertices take part in the run: devices in use, and all hosts and switches except the hosts of unused nodes.
std::vector<char> vertices_in_use(const TaskGraph& graph, const Platform& platform, const std::vector<char>& nodes) {
  std::vector<char> used(platform.vertices.size(), 0);
  for (std::size_t v = 0; v < used.size(); ++v) {
    const Vertex& vertex = platform.vertices[v];
    used[v] = vertex.kind == Vertex::Kind::host ? nodes[vertex.index] : vertex.kind != Vertex::Kind::device;
  }
  for (const DeviceId device : graph.devices_in_use()) {
    used[device] = 1;
  }
  return used;
}

// Energy of the links. A link's power is linear in its rate, so the bytes are enough. A link counts if both of its
// ends take part.
void add_links(const TaskGraph& graph, const Platform& platform, const std::vector<char>& nodes, Metrics& metrics) {
  const auto draws = [](const Link& link) { return link.busy.value > 0; };
  if (std::none_of(platform.links.begin(), platform.links.end(), draws)) {
    return;
  }
  const std::vector<double> bytes = bytes_of_links(graph, platform);
  const std::vector<char> used = vertices_in_use(graph, platform, nodes);
  for (std::size_t id = 0; id < bytes.size(); ++id) {
    const Link& link = platform.links[id];
    if (used[link.from] != 0 && used[link.to] != 0) {
      metrics.energy.links_idle += link.idle * metrics.iteration;
      metrics.energy.links_dynamic += (link.busy - link.idle) * (Bytes{bytes[id]} / link.bandwidth);
    }
  }
}

void add_cost(const Price& price, Metrics& metrics) {
  const Dollars cost = price.rate * metrics.iteration;
  metrics.cost += cost;
  metrics.assumed_cost += price.assumed ? cost : Dollars{0};
}

void add_energy_and_cost(const TaskGraph& graph, const Platform& platform, Metrics& metrics) {
  std::vector<char> node_used(platform.nodes.size(), 0);
  const std::span<const DeviceId> devices = graph.devices_in_use();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceType& type = platform.type_of(devices[i]);
    metrics.energy.devices_idle += type.idle * metrics.iteration;
    const Seconds blocked = std::max(Seconds{0}, metrics.waiting[i] - metrics.stall[i]); // no kernel waits for a loader
    metrics.energy.devices_waiting += (type.waiting_power() - type.idle) * blocked;
    metrics.energy.devices_dynamic += (type.busy_power() - type.idle) * (metrics.busy[i] - metrics.at_rest[i]);
    add_cost(type.price, metrics);
    node_used[platform.devices[devices[i]].node] = 1;
  }
  for (std::size_t node = 0; node < platform.nodes.size(); ++node) {
    if (node_used[node] != 0) {
      metrics.energy.hosts_idle += platform.nodes[node].host.idle * metrics.iteration;
      add_cost(platform.nodes[node].host.price, metrics);
    }
  }
  add_links(graph, platform, node_used, metrics);
  add_host_cores(graph, platform, metrics);
}

// The tasks of a device's program take this long in one iteration.
double work_of(const TaskGraph& graph, std::size_t device) {
  double seconds = 0;
  for (const TaskId task : graph.program_of(device)) {
    seconds += graph.works[graph.work[task]].seconds.value;
  }
  return seconds;
}

// The device with the most work.
std::size_t busiest(const TaskGraph& graph) {
  std::size_t most = 0;
  for (std::size_t device = 1; device < graph.devices.size(); ++device) {
    most = work_of(graph, device) > work_of(graph, most) ? device : most;
  }
  return most;
}

// The length of the window: from the end of the iteration before it to its own end. These ends may be of two devices,
// and one that had fallen behind may have caught up meanwhile, so that they lie closer together than in the long run.
// The ends of one device never lie closer than its work, and the device with the most work is the one that the others
// follow in the end: its own ends are the least that counts.
double length_of_window(const TaskGraph& graph, const Timeline& timeline) {
  const int last = timeline.iterations - 1;
  const int before = last - timeline.window;
  const double length = end_of_iteration(graph, timeline, last) - end_of_iteration(graph, timeline, before);
  if (before < 0) {
    return length;
  }
  const TaskId task = graph.program_of(busiest(graph)).back();
  const double* const finish = timeline.finish.data() + task;
  const double own =
      finish[static_cast<std::size_t>(last) * graph.tasks()] - finish[static_cast<std::size_t>(before) * graph.tasks()];
  return improves(length, own) ? own : length; // shorter, and not by rounding alone
}

// Gives each device in use the figures of the one that stands for it.
template <class Figure> void unfold(const TaskGraph& graph, std::vector<Figure>& figures) {
  std::vector<Figure> all;
  all.reserve(graph.devices_in_use().size());
  for (std::size_t device = 0; device < graph.devices_in_use().size(); ++device) {
    all.push_back(figures[graph.simulated(device)]);
  }
  figures = std::move(all);
}

void unfold(const TaskGraph& graph, Metrics& metrics) {
  if (graph.folded.devices.empty()) {
    return;
  }
  for (std::vector<Seconds>* figures :
       {&metrics.busy, &metrics.at_rest, &metrics.waiting, &metrics.tail, &metrics.exposed, &metrics.stall}) {
    unfold(graph, *figures);
  }
  unfold(graph, metrics.peak_memory);
  unfold(graph, metrics.peak_task);
}

} // namespace

Metrics measure(const TaskGraph& graph, const Timeline& timeline, const Platform& platform) {
  Metrics metrics;
  const int last_iteration = timeline.iterations - 1;
  const double end = end_of_iteration(graph, timeline, last_iteration);
  metrics.makespan = Seconds{end_of_iteration(graph, timeline, 0)};
  const int before = last_iteration - timeline.window; // the iteration before the window
  metrics.iteration = Seconds{length_of_window(graph, timeline) / timeline.window};
  const std::size_t base = static_cast<std::size_t>(last_iteration) * graph.tasks();
  metrics.busy.resize(graph.devices.size());
  metrics.at_rest.resize(graph.devices.size());
  metrics.exposed.resize(graph.devices.size());
  metrics.stall.resize(graph.devices.size());
  metrics.peak_memory.resize(graph.devices.size());
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    metrics.peak_task.push_back(graph.program_of(device).front());
  }
  const std::vector<double> resting = resting_parts(graph);
  for (int iteration = before + 1; iteration <= last_iteration; ++iteration) {
    const LastTransfers last(graph, timeline, static_cast<std::size_t>(iteration) * graph.tasks());
    for (std::size_t device = 0; device < graph.devices.size(); ++device) {
      const DeviceType& type = platform.type_of(graph.devices[device]);
      const auto walk = type.beside_exchange != BesideExchange{} ? walk_device<true> : walk_device<false>;
      walk(graph, timeline, device, iteration, last, resting.data(), metrics);
    }
  }
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    metrics.waiting.push_back(metrics.iteration - metrics.busy[device]);
    metrics.tail.push_back(Seconds{end - timeline.finish[base + graph.program_of(device).back()]});
  }
  unfold(graph, metrics);
  Seconds total;
  Seconds largest;
  for (const Seconds busy : metrics.busy) {
    total += busy;
    largest = std::max(largest, busy);
  }
  const auto devices = static_cast<double>(metrics.busy.size());
  metrics.bubble_fraction = metrics.iteration.value > 0 ? 1 - total / (devices * metrics.iteration) : 0;
  metrics.load_imbalance = total.value > 0 ? largest / (total / devices) - 1 : 0;
  metrics.tasks = static_cast<long>(graph.executed()) * timeline.iterations;
  add_energy_and_cost(graph, platform, metrics);
  return metrics;
}

BusiestLink busiest_link(const TaskGraph& graph, const Platform& platform, Seconds iteration) {
  const std::vector<double> bytes = bytes_of_links(graph, platform);
  BusiestLink busiest;
  for (LinkId link = 0; link < static_cast<int>(bytes.size()); ++link) {
    const double share = bytes[link] / (platform.links[link].bandwidth * iteration).value;
    if (share > busiest.share) {
      busiest = {link, share};
    }
  }
  return busiest;
}

} // namespace stagecraft
