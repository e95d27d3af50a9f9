// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/what_if/sensitivities.hpp"

#include <algorithm>
#include <map>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

// The ids with the largest weights, at most so many, in the order of ids.
template <class Id> std::vector<Id> heaviest(std::vector<std::pair<double, Id>> weighted, std::size_t most) {
  std::stable_sort(weighted.begin(), weighted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  weighted.resize(std::min(weighted.size(), most));
  std::vector<Id> ids;
  for (const auto& [weight, id] : weighted) {
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// What each device computes and each link carries in an iteration.
struct Usage {
  std::vector<double> seconds; ///< [device of the graph]
  std::vector<double> bytes;   ///< [link]
  bool loads = false;
};

Usage usage_of(const TaskGraph& graph, const Platform& platform) {
  Usage usage{std::vector<double>(graph.devices.size(), 0.0), std::vector<double>(platform.links.size(), 0.0)};
  for (const std::int32_t index : graph.work) {
    const Work& work = graph.works[index];
    usage.loads = usage.loads || work.loads();
    if (work.computes()) {
      usage.seconds[work.device] += work.seconds.value;
      if (work.group_leg >= 0) {
        const Leg& leg = graph.group_legs[work.group_leg];
        for (const LinkId link : leg.links) {
          usage.bytes[link] += (work.exchanging - work.exchanging_latency) * work.seconds.value * leg.bandwidth.value;
        }
      }
    } else if (work.transfers()) {
      for (const LinkId link : graph.legs[work.leg].links) {
        usage.bytes[link] += work.bytes;
      }
    }
  }
  return usage;
}

void add_devices(const TaskGraph& graph, const Platform& platform, const Usage& usage, std::size_t most_single,
                 std::vector<Part>& parts) {
  std::map<int, std::vector<DeviceId>> of_type;
  std::map<int, int> count;
  std::vector<std::pair<double, DeviceId>> weighted;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    const int type = platform.devices[graph.devices[device]].type;
    of_type[type].push_back(graph.devices[device]);
    count[type] += graph.stands_for(device);
    weighted.emplace_back(usage.seconds[device], graph.devices[device]);
  }
  for (const auto& [type, devices] : of_type) {
    if (count[type] > 1) {
      const std::string& name = platform.types[type].name;
      parts.push_back({"all " + (name.empty() ? "devices" : name), devices, {}});
    }
  }
  for (const DeviceId device : heaviest(weighted, most_single)) {
    parts.push_back({platform.devices[device].name, {device}, {}});
  }
}

bool is(const Platform& platform, int vertex, Vertex::Kind kind) { return platform.vertices[vertex].kind == kind; }

// Whether the platform says where its links are. An executed run knows only their names.
bool knows_places(const Platform& platform) { return !platform.vertices.empty(); }

// The group of a link: where in the cluster it is.
std::string group_of(const Platform& platform, const Link& link) {
  if (!knows_places(platform)) {
    return "all links";
  }
  if (is(platform, link.from, Vertex::Kind::disk) || is(platform, link.to, Vertex::Kind::disk)) {
    return "disks";
  }
  if (link.from == link.to) {
    return "memories of hosts";
  }
  const auto between = Vertex::Kind::fabric_switch;
  return is(platform, link.from, between) || is(platform, link.to, between) ? "all links between nodes"
                                                                            : "all links within nodes";
}

// Whether these are several links, also where they are folded.
bool several(const TaskGraph& graph, const std::vector<LinkId>& links) {
  const std::vector<LinkId>& simulated = graph.folded.link;
  return links.size() > 1 || std::count(simulated.begin(), simulated.end(), links.front()) > 1;
}

void add_links(const TaskGraph& graph, const Platform& platform, const Usage& usage, std::size_t most_single,
               std::vector<Part>& parts) {
  std::map<std::string, std::vector<LinkId>> groups;
  std::map<std::pair<int, int>, std::vector<LinkId>> wires; // by the vertices at their ends
  std::map<std::pair<int, int>, double> bytes;
  for (LinkId id = 0; id < static_cast<LinkId>(platform.links.size()); ++id) {
    const Link& link = platform.links[id];
    if (usage.bytes[id] > 0) {
      const std::pair<int, int> ends =
          knows_places(platform) ? std::pair<int, int>(std::minmax(link.from, link.to)) : std::pair(id, id);
      groups[group_of(platform, link)].push_back(id);
      wires[ends].push_back(id);
      bytes[ends] += usage.bytes[id];
    }
  }
  for (const auto& [name, links] : groups) {
    if (several(graph, links)) {
      parts.push_back({name, {}, links});
    }
  }
  std::vector<std::pair<double, std::pair<int, int>>> weighted;
  for (const auto& [ends, carried] : bytes) {
    weighted.emplace_back(carried, ends);
  }
  for (const auto& ends : heaviest(weighted, most_single)) {
    const bool is_wire = ends.first != ends.second;
    const std::string name = is_wire ? platform.vertices[ends.first].name + " - " + platform.vertices[ends.second].name
                                     : platform.links[wires[ends].front()].name;
    parts.push_back({"link " + name, {}, wires[ends]});
  }
}

template <class T> bool among(const std::vector<T>& values, T wanted) {
  return std::find(values.begin(), values.end(), wanted) != values.end();
}

// A computation with other times of its parts: computing, and of its group's exchange the latencies and the rest.
void retime(Work& work, double computing, double latencies, double rest) {
  const double all = work.seconds.value;
  const double latency = work.exchanging_latency * all * latencies;
  const double streaming = (work.exchanging - work.exchanging_latency) * all * rest;
  const double handing = work.handing_over * all; // the host's
  const double whole = ((1 - work.exchanging) * all - handing) * computing + handing + latency + streaming;
  work.seconds = Seconds{whole};
  work.exchanging = whole > 0 ? (latency + streaming) / whole : 0;
  work.handing_over = whole > 0 ? handing / whole : 0;
  work.exchanging_latency = whole > 0 ? latency / whole : 0;
}

// [leg]: its narrowest link's bandwidth.
std::vector<double> narrowest(const Platform& platform, const std::vector<Leg>& legs) {
  std::vector<double> bandwidths;
  bandwidths.reserve(legs.size());
  for (const Leg& leg : legs) {
    bandwidths.push_back(narrowest_of(platform, leg.links).bandwidth.value);
  }
  return bandwidths;
}

// Scales each leg by what its links give it more, so that a measured leg keeps its ratio to its links; returns the
// gains.
std::vector<double> scale_legs(const Platform& platform, const std::vector<double>& before, std::vector<Leg>& legs) {
  std::vector<double> gains;
  gains.reserve(legs.size());
  for (std::size_t leg = 0; leg < legs.size(); ++leg) {
    const double inverse = 1 / before[leg];
    gains.push_back(inverse > 0 ? inverse * narrowest_of(platform, legs[leg].links).bandwidth.value : 1);
    legs[leg].bandwidth = legs[leg].bandwidth * gains.back();
  }
  return gains;
}

void widen_links(Rig& rig, const Part& part, double factor) {
  const std::vector<double> before = narrowest(rig.platform, rig.graph.legs);
  const std::vector<double> in_groups = narrowest(rig.platform, rig.graph.group_legs);
  for (const LinkId link : part.links) {
    rig.platform.links[link].bandwidth = rig.platform.links[link].bandwidth * factor;
  }
  const std::vector<double> gains = scale_legs(rig.platform, before, rig.graph.legs);
  const std::vector<double> group_gains = scale_legs(rig.platform, in_groups, rig.graph.group_legs);
  for (Work& work : rig.graph.works) {
    if (work.transfers()) {
      work.seconds = work.latency + (1 / gains[work.leg]) * (work.seconds - work.latency);
    } else if (work.group_leg >= 0) {
      retime(work, 1, 1, 1 / group_gains[work.group_leg]);
    }
  }
}

void shorten_latencies(Rig& rig, double factor) {
  for (Link& link : rig.platform.links) {
    link.latency = link.latency / factor;
  }
  for (Leg& leg : rig.graph.legs) {
    leg.latency = leg.latency / factor;
  }
  for (Work& work : rig.graph.works) {
    if (work.transfers()) {
      work.seconds = work.seconds - work.latency + work.latency / factor;
      work.latency = work.latency / factor;
    } else if (work.group_leg >= 0) {
      retime(work, 1, 1 / factor, 1);
    }
  }
}

} // namespace

std::vector<Part> parts_of(const TaskGraph& graph, const Platform& platform, std::size_t most_single) {
  const Usage usage = usage_of(graph, platform);
  std::vector<Part> parts;
  add_devices(graph, platform, usage, most_single, parts);
  const std::size_t before = parts.size();
  add_links(graph, platform, usage, most_single, parts);
  if (parts.size() > before) {
    parts.push_back({.name = "latencies of all links", .latencies = true});
  }
  if (usage.loads) {
    parts.push_back({.name = "cores that load", .loading = true});
  }
  return parts;
}

Rig with_faster(Rig rig, const Part& part, double factor) {
  for (Work& work : rig.graph.works) {
    const bool computes = work.computes() && among(part.devices, rig.graph.devices[work.device]);
    if (computes && (work.group_leg >= 0 || work.handing_over > 0)) {
      retime(work, 1 / factor, 1, 1); // its group's links and its host are no faster
    } else if (computes || (part.loading && work.loads())) {
      work.seconds = work.seconds / factor;
    }
  }
  if (!part.links.empty()) {
    widen_links(rig, part, factor);
  }
  if (part.latencies) {
    shorten_latencies(rig, factor);
  }
  return rig;
}

std::vector<Sensitivity> sensitivities(const Rig& rig, const std::vector<Part>& parts,
                                       const std::function<Seconds(const Rig&)>& replayed, Seconds before,
                                       Seconds iteration) {
  constexpr double kNoMatter = 1e-9; // of an iteration
  std::vector<Sensitivity> ranked;
  for (const Part& part : parts) {
    const Seconds now = replayed(with_faster(rig, part, Sensitivity::kFaster));
    ranked.push_back({part.name, iteration * (now / before)});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Sensitivity& a, const Sensitivity& b) {
    return a.iteration.value < b.iteration.value - kNoMatter * iteration.value;
  });
  return ranked;
}

} // namespace stagecraft
