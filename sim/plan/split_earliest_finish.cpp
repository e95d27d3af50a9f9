// Greedy placement by earliest finish (a 2022 patent's), in the fluid form that a running pipeline needs: an operator
// occupies its device for all micro-batches and releases its successors after the first.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/plan/strategy.hpp"

namespace stagecraft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// r(v) = mean_d t(v,d) + max over successors of (mean communication + r), as in HEFT.
std::vector<double> upward_ranks(const PlanRequest& request) {
  const Problem& problem = request.problem;
  const auto count = static_cast<double>(request.devices.size());
  PathCost mean;
  for (const DeviceId a : request.devices) {
    for (const DeviceId b : request.devices) {
      if (a != b) {
        const PathCost path = problem.path(a, b);
        mean.latency += path.latency / (count * (count - 1));
        mean.seconds_per_byte += path.seconds_per_byte / (count * (count - 1));
      }
    }
  }
  std::vector<double> rank(problem.model.size(), 0.0);
  for (OperatorId op = problem.model.size() - 1; op >= 0; --op) {
    double sum = 0;
    double able = 0;
    for (const DeviceId device : request.devices) {
      const double time = problem.seconds(problem.type_index(device), op);
      sum += std::isinf(time) ? 0 : time;
      able += std::isinf(time) ? 0 : 1;
    }
    for (const OperatorId user : problem.model.successors[op]) {
      rank[op] = std::max(rank[op], mean.time(problem.output_bytes(op)).value + rank[user]);
    }
    rank[op] += able > 0 ? sum / able : 0;
  }
  return rank;
}

// Topological order, largest rank first among those ready, then the lower id.
std::vector<OperatorId> order_by_rank(const ModelGraph& model, const std::vector<double>& rank) {
  const auto later = [&](OperatorId a, OperatorId b) { return rank[a] != rank[b] ? rank[a] > rank[b] : a < b; };
  std::set<OperatorId, decltype(later)> ready(later);
  std::vector<std::size_t> missing(model.size());
  for (OperatorId op = 0; op < model.size(); ++op) {
    missing[op] = model.predecessors[op].size();
    if (missing[op] == 0) {
      ready.insert(op);
    }
  }
  std::vector<OperatorId> order;
  while (!ready.empty()) {
    const OperatorId op = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(op);
    for (const OperatorId user : model.successors[op]) {
      if (--missing[user] == 0) {
        ready.insert(user);
      }
    }
  }
  return order;
}

class Placement {
public:
  Placement(const PlanRequest& request, bool contiguous)
      : request_(request), problem_(request.problem), contiguous_(contiguous), place_(problem_.model.size(), -1),
        first_done_(problem_.model.size(), 0.0), free_(request.devices.size(), 0.0),
        memory_(request.devices.size(), 0.0) {}

  // The reason when an operator finds no device, else "".
  std::string run() {
    for (const OperatorId op : order_by_rank(problem_.model, upward_ranks(request_))) {
      if (!place(op)) {
        return reason(op, lowest_device(op));
      }
    }
    return "";
  }

  Plan plan() const {
    Plan placed = contiguous_ ? plan_by_device() : plan_by_segments();
    placed.memory_bound = memory_bound_;
    return placed;
  }

private:
  bool place(OperatorId op) {
    const int devices = static_cast<int>(request_.devices.size());
    const int lowest = lowest_device(op);
    struct Choice {
      double finish = kNever, start = kNever, time = kNever;
      int device = -1;
      auto key() const { return std::tuple(finish, start, time); }
    } best;
    for (int d = lowest; d < devices; ++d) {
      const double time = problem_.seconds(problem_.type_index(request_.devices[d]), op);
      if (std::isinf(time)) {
        continue;
      }
      if (memory_[d] + bytes(op, d) > memory_of(d)) {
        memory_bound_ = true;
        continue;
      }
      const double start = std::max(ready(op, d), free_[d]);
      const Choice choice{start + problem_.micro_batches * time, start, time, d};
      if (choice.key() < best.key()) {
        best = choice;
      }
    }
    if (best.device < 0) {
      return false;
    }
    place_[op] = best.device;
    free_[best.device] = best.finish;
    first_done_[op] = best.start + best.time;
    memory_[best.device] += bytes(op, best.device);
    return true;
  }

  // Contiguous plans never go back behind the device of an input.
  int lowest_device(OperatorId op) const {
    int lowest = 0;
    for (const OperatorId maker : problem_.model.predecessors[op]) {
      lowest = contiguous_ ? std::max(lowest, place_[maker]) : 0;
    }
    return lowest;
  }

  double ready(OperatorId op, int d) const {
    double ready = 0;
    for (const OperatorId maker : problem_.model.predecessors[op]) {
      const PathCost path = problem_.path(request_.devices[place_[maker]], request_.devices[d]);
      const double transfer = place_[maker] == d ? 0 : path.time(problem_.output_bytes(maker)).value;
      ready = std::max(ready, first_done_[maker] + transfer);
    }
    return ready;
  }

  // Weights, gradients and optimiser, and the activations in flight: those of the schedule where each device holds one
  // stage, of all micro-batches where the order of work is not known yet.
  double bytes(OperatorId op, int d) const {
    const StageMemory memory = stage_memory(problem_.training, problem_.model.operators[op].parameters,
                                            problem_.stash_bytes(op), Bytes{0}, Bytes{0}, Recompute::none);
    const double held = contiguous_ ? request_.in_flight(d, static_cast<int>(request_.devices.size()))
                                    : static_cast<double>(problem_.micro_batches);
    return memory.total(held, request_.versions).value;
  }

  double memory_of(int d) const { return problem_.platform.type_of(request_.devices[d]).memory.value; }

  // Of the devices that have the kernel and may follow the operator's inputs, the one that lacks least memory.
  std::string reason(OperatorId op, int lowest) const {
    const Operator& what = problem_.model.operators[op];
    const std::string name = "operator '" + what.name + "' (" + std::string(row_of(what.kind).name) + ")";
    int nearest = -1;
    double least = kNever;
    for (int d = lowest; d < static_cast<int>(request_.devices.size()); ++d) {
      const double lack = memory_[d] + bytes(op, d) - memory_of(d);
      if (!std::isinf(problem_.seconds(problem_.type_index(request_.devices[d]), op)) && lack < least) {
        least = lack;
        nearest = d;
      }
    }
    if (nearest < 0) {
      return "no device has a kernel for " + name + (lowest > 0 ? " among those behind its inputs' devices" : "");
    }
    return "no device has room for " + name + ": '" + problem_.platform.devices[request_.devices[nearest]].name +
           "' would need " + to_text(Bytes{least + memory_of(nearest)}) + ", " + to_text(Bytes{least}) +
           " more than its " + to_text(Bytes{memory_of(nearest)});
  }

  // Devices never go back along a path, so each device's operators form one stage.
  Plan plan_by_device() const {
    std::vector<Stage> stages(request_.devices.size());
    for (OperatorId op = 0; op < problem_.model.size(); ++op) {
      stages[place_[op]].operators.push_back(op);
    }
    Plan plan;
    for (std::size_t d = 0; d < stages.size(); ++d) {
      if (!stages[d].operators.empty()) {
        stages[d].devices = {request_.devices[d]};
        stages[d].recompute = problem_.training.recompute;
        plan.stages.push_back(std::move(stages[d]));
      }
    }
    return plan;
  }

  // Cuts the placement into convex segments: the level of an operator counts the changes of device on the worst path to
  // it, so operators of one device and level form a convex set, and levels order the segments.
  Plan plan_by_segments() const {
    std::vector<int> level(problem_.model.size(), 0);
    std::map<std::pair<int, int>, Stage> segments;
    for (OperatorId op = 0; op < problem_.model.size(); ++op) {
      for (const OperatorId maker : problem_.model.predecessors[op]) {
        level[op] = std::max(level[op], level[maker] + (place_[maker] != place_[op] ? 1 : 0));
      }
      segments[{level[op], place_[op]}].operators.push_back(op);
    }
    Plan plan;
    for (auto& [key, segment] : segments) {
      segment.devices = {request_.devices[key.second]};
      segment.recompute = problem_.training.recompute;
      plan.stages.push_back(std::move(segment));
    }
    return plan;
  }

  const PlanRequest& request_;
  const Problem& problem_;
  bool contiguous_;
  bool memory_bound_ = false;
  std::vector<int> place_; // index into request_.devices
  std::vector<double> first_done_, free_, memory_;
};

PlanResult split(const PlanRequest& request, bool contiguous) {
  Placement placement(request, contiguous);
  if (const std::string reason = placement.run(); !reason.empty()) {
    return Infeasible{reason};
  }
  return placement.plan();
}

} // namespace

PlanResult split_earliest_finish(const PlanRequest& request) { return split(request, false); }

PlanResult split_earliest_finish_contiguous(const PlanRequest& request) { return split(request, true); }

} // namespace stagecraft
