// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/placement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/plan/stage_cost/passes/stream_times.hpp"

namespace stagecraft {

std::vector<double> upward_ranks(const std::vector<std::vector<int>>& successors, std::span<const double> seconds,
                                 const std::function<double(int from, int to)>& transfer) {
  std::vector<double> rank(successors.size(), 0.0);
  for (int task = static_cast<int>(successors.size()) - 1; task >= 0; --task) {
    for (const int user : successors[task]) {
      rank[task] = std::max(rank[task], transfer(task, user) + rank[user]);
    }
    rank[task] += seconds[task];
  }
  return rank;
}

std::vector<int> order_by_rank(const std::vector<std::vector<int>>& successors, std::span<const double> ranks) {
  std::vector<int> missing(successors.size(), 0);
  for (const auto& users : successors) {
    for (const int user : users) {
      ++missing[user];
    }
  }
  std::set<int> ready;
  for (std::size_t task = 0; task < missing.size(); ++task) {
    if (missing[task] == 0) {
      ready.insert(static_cast<int>(task));
    }
  }
  std::vector<int> order;
  while (!ready.empty()) {
    int next = *ready.begin();
    for (const int task : ready) {
      next = ranks[task] > ranks[next] + kTie * std::abs(ranks[next]) ? task : next;
    }
    ready.erase(next);
    order.push_back(next);
    for (const int user : successors[next]) {
      if (--missing[user] == 0) {
        ready.insert(user);
      }
    }
  }
  return order;
}

std::vector<double> mean_seconds(const PlanRequest& request) {
  const Problem& problem = request.problem;
  std::vector<double> mean(problem.model.size(), 0.0);
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    int able = 0;
    for (const DeviceId device : request.devices) {
      const double time = problem.seconds(problem.type_index(device), op);
      mean[op] += std::isinf(time) ? 0 : time;
      able += std::isinf(time) ? 0 : 1;
    }
    mean[op] /= std::max(able, 1);
  }
  return mean;
}

double share_seconds(const Problem& problem, int type, OperatorId op, double share) {
  if (share == 1) {
    return problem.seconds(type, op);
  }
  const StreamTimes times = stream_times(problem, std::span(&op, 1), type, share, 1);
  const double again = problem.counts_again(op) ? times.forward : 0;
  return times.forward + times.backward + again;
}

PathCost mean_path(const PlanRequest& request) {
  const auto count = static_cast<double>(request.devices.size());
  PathCost mean;
  for (const DeviceId a : request.devices) {
    for (const DeviceId b : request.devices) {
      if (a != b) {
        const PathCost path = request.problem.path(a, b);
        mean.latency += path.latency / (count * (count - 1));
        mean.seconds_per_byte += path.seconds_per_byte / (count * (count - 1));
      }
    }
  }
  return mean;
}

Bytes placed_bytes(const PlanRequest& request, OperatorId op, double held) {
  const Problem& problem = request.problem;
  const Operator& what = problem.model.operators[op];
  return memory_of_stage(problem, {what.parameters, Bytes{what.resident_bytes}, {problem.stash_bytes(op), {}}, {}, {}},
                         Recompute::none)
      .total(held, request.versions);
}

std::string why_no_device(const PlanRequest& request, OperatorId op, int lowest, std::span<const Bytes> need) {
  const Problem& problem = request.problem;
  const Operator& what = problem.model.operators[op];
  const std::string name = "operator '" + what.name + "' (" + std::string(row_of(what.kind).name) + ")";
  const auto lack = [&](int d) { return need[d] - problem.platform.type_of(request.devices[d]).memory; };
  int nearest = -1;
  for (int d = lowest; d < static_cast<int>(request.devices.size()); ++d) {
    const bool able = !std::isinf(problem.seconds(problem.type_index(request.devices[d]), op));
    if (able && (nearest < 0 || lack(d) < lack(nearest))) {
      nearest = d;
    }
  }
  if (nearest < 0) {
    return "no device has a kernel for " + name + (lowest > 0 ? " among those behind its inputs' devices" : "");
  }
  const Device& device = problem.platform.devices[request.devices[nearest]];
  return "no device has room for " + name + ": '" + device.name + "' would need " + to_text(need[nearest]) + ", " +
         to_text(lack(nearest)) + " more than its " +
         to_text(problem.platform.type_of(request.devices[nearest]).memory);
}

namespace {

std::vector<Segment> segments_by_level(const ModelGraph& model, std::span<const int> place) {
  std::vector<int> level(model.size(), 0);
  std::map<std::pair<int, int>, Segment> segments;
  for (OperatorId op = 0; op < model.size(); ++op) {
    for (const OperatorId maker : model.predecessors[op]) {
      level[op] = std::max(level[op], level[maker] + (place[maker] != place[op] ? 1 : 0));
    }
    Segment& segment = segments[{level[op], place[op]}];
    segment.place = place[op];
    segment.operators.push_back(op);
  }
  std::vector<Segment> all;
  for (auto& [key, segment] : segments) {
    if (segment.place >= 0) {
      all.push_back(std::move(segment));
    }
  }
  return all;
}

// One segment for each place, in topological order; among places that are ready, the one with the earliest operator
// comes first. Empty if data returns to a place that it left.
std::vector<Segment> segments_by_place(const ModelGraph& model, std::span<const int> place) {
  const int places = place.empty() ? 0 : *std::max_element(place.begin(), place.end()) + 2;
  std::vector<Segment> segments(places); // [place + 1]
  std::vector<std::set<int>> targets(places);
  for (OperatorId op = 0; op < model.size(); ++op) {
    segments[place[op] + 1].place = place[op];
    segments[place[op] + 1].operators.push_back(op);
    for (const OperatorId user : model.successors[op]) {
      if (place[user] != place[op]) {
        targets[place[op] + 1].insert(place[user] + 1);
      }
    }
  }
  std::vector<int> missing(places, 0);
  for (const std::set<int>& to : targets) {
    for (const int target : to) {
      ++missing[target];
    }
  }
  std::set<std::pair<OperatorId, int>> ready;
  const auto offer = [&](int at) {
    if (missing[at] == 0 && !segments[at].operators.empty()) {
      ready.emplace(segments[at].operators.front(), at);
    }
  };
  for (int at = 0; at < places; ++at) {
    offer(at);
  }
  std::size_t placed = 0;
  std::vector<Segment> ordered;
  while (!ready.empty()) {
    const int at = ready.begin()->second;
    ready.erase(ready.begin());
    placed += segments[at].operators.size();
    for (const int target : targets[at]) {
      --missing[target];
      offer(target);
    }
    if (segments[at].place >= 0) {
      ordered.push_back(std::move(segments[at]));
    }
  }
  return placed == place.size() ? ordered : std::vector<Segment>{};
}

} // namespace

std::vector<Segment> convex_segments(const ModelGraph& model, std::span<const int> place) {
  std::vector<Segment> segments = segments_by_place(model, place);
  return segments.empty() ? segments_by_level(model, place) : segments;
}

Plan make_segment_plan(const PlanRequest& request, std::span<const int> place, std::span<const std::vector<int>> places,
                       std::span<const double> weights) {
  Plan plan;
  for (Segment& segment : segments_by_level(request.problem.model, place)) {
    std::vector<DeviceId> devices;
    std::vector<double> theirs;
    for (const int d : places[segment.place]) {
      devices.push_back(request.devices[d]);
      theirs.push_back(weights[d]);
    }
    plan.stages.push_back(make_replicated_stage(request.problem, std::move(segment.operators), devices, theirs));
  }
  return plan;
}

Plan make_segment_plan(const PlanRequest& request, std::span<const int> place) {
  std::vector<std::vector<int>> places;
  for (int d = 0; d < static_cast<int>(request.devices.size()); ++d) {
    places.push_back({d});
  }
  return make_segment_plan(request, place, places, std::vector(places.size(), 1.0));
}

} // namespace stagecraft
