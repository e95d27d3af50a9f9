// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/order_transfers.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/schedule/add_edges.hpp"

namespace stagecraft {
namespace {

constexpr std::int32_t kUnordered = -1;

// A transfer between stages, or one leg of it.
bool carries_tensor(const TaskGraph& graph, TaskId task) {
  const Work& work = graph.works[graph.work[task]];
  return work.transfers() && work.kind == TaskKind::transfer;
}

// Gives the transfer, and the legs that follow it, the place of what made its data.
void place_legs(const TaskGraph& graph, TaskId transfer, std::int32_t place, std::vector<std::int32_t>& places) {
  places[transfer] = std::max(places[transfer], place);
  for (const TaskId next : graph.successors_of(transfer)) {
    if (carries_tensor(graph, next)) {
      place_legs(graph, next, place, places);
    }
  }
}

// Of each transfer between stages the place in the programs of the computation that makes its data.
std::vector<std::int32_t> places_of(const TaskGraph& graph) {
  std::vector<std::int32_t> places(graph.tasks(), kUnordered);
  for (std::size_t at = 0; at < graph.program.size(); ++at) {
    for (const TaskId next : graph.successors_of(graph.program[at])) {
      if (carries_tensor(graph, next)) {
        place_legs(graph, next, static_cast<std::int32_t>(at), places);
      }
    }
  }
  return places;
}

} // namespace

Ways ways_of(const TaskGraph& graph) {
  using Key = std::tuple<std::int32_t, bool, std::vector<LinkId>>; // sender, reduction, links
  std::map<Key, std::int32_t> known;
  Ways ways;
  for (std::size_t work = 0; work < graph.works.size(); ++work) {
    const Work& one = graph.works[work];
    ways.of_work.push_back(-1);
    if (one.transfers()) {
      const Key key{one.device, one.kind == TaskKind::all_reduce, graph.legs[one.leg].links};
      const auto [slot, fresh] = known.try_emplace(key, static_cast<std::int32_t>(ways.work_of.size()));
      if (fresh) {
        ways.work_of.push_back(static_cast<std::int32_t>(work));
        ways.transfers.push_back(0);
      }
      ways.of_work.back() = slot->second;
    }
  }
  for (const std::int32_t work : graph.work) {
    if (ways.of_work[work] >= 0) {
      ++ways.transfers[ways.of_work[work]];
    }
  }
  return ways;
}

TaskGraph order_transfers(TaskGraph graph) {
  const Ways ways = ways_of(graph);
  const std::vector<std::int32_t> places = places_of(graph);
  std::vector<std::tuple<std::int32_t, std::int32_t, TaskId>> ordered; // way, place, task
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    if (places[task] != kUnordered) {
      ordered.emplace_back(ways.of_work[graph.work[task]], places[task], task);
    }
  }
  std::sort(ordered.begin(), ordered.end());
  std::vector<Edge> edges;
  for (std::size_t i = 1; i < ordered.size(); ++i) {
    if (std::get<0>(ordered[i - 1]) == std::get<0>(ordered[i])) {
      edges.push_back({std::get<2>(ordered[i - 1]), std::get<2>(ordered[i])});
    }
  }
  add_edges(graph, edges);
  return graph;
}

} // namespace stagecraft
