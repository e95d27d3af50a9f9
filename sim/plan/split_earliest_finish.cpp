// Greedy placement by earliest finish (a 2022 patent's), in the fluid form that a running pipeline needs: an operator
// occupies its device for all micro-batches and releases its successors after the first.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/plan/balance.hpp"
#include "sim/plan/placement.hpp"

namespace stagecraft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Placement {
public:
  Placement(const PlanRequest& request, std::span<const double> weights, bool contiguous)
      : request_(request), problem_(request.problem), weights_(weights), contiguous_(contiguous),
        place_(problem_.model.size(), -1), first_done_(problem_.model.size(), 0.0), free_(request.devices.size(), 0.0),
        memory_(request.devices.size()) {}

  // The reason when an operator finds no device, else "".
  std::string run() {
    const PathCost path = mean_path(request_);
    const auto transfer = [&](int from, int) { return path.time(problem_.output_bytes(from)).value; };
    const auto& successors = problem_.model.successors;
    for (const OperatorId op : order_by_rank(successors, upward_ranks(successors, mean_seconds(request_), transfer))) {
      if (!place(op)) {
        return reason(op);
      }
    }
    return "";
  }

  Plan plan() const {
    Plan placed = contiguous_ ? plan_by_device() : make_segment_plan(request_, place_);
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
      const double time = problem_.seconds(problem_.type_index(request_.devices[d]), op) / weights_[d];
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

  // The activations in flight are those of the schedule where each device holds one stage, of all micro-batches where
  // the order of work is not known yet.
  Bytes bytes(OperatorId op, int d) const {
    return placed_bytes(request_, op,
                        contiguous_ ? request_.in_flight(d, static_cast<int>(request_.devices.size()))
                                    : static_cast<double>(problem_.micro_batches));
  }

  Bytes memory_of(int d) const { return problem_.platform.type_of(request_.devices[d]).memory; }

  std::string reason(OperatorId op) const {
    std::vector<Bytes> need = memory_;
    for (int d = 0; d < static_cast<int>(need.size()); ++d) {
      need[d] += bytes(op, d);
    }
    return why_no_device(request_, op, lowest_device(op), need);
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

  const PlanRequest& request_;
  const Problem& problem_;
  std::span<const double> weights_; // of the request's devices
  bool contiguous_;
  bool memory_bound_ = false;
  std::vector<int> place_; // index into request_.devices
  std::vector<double> first_done_, free_;
  std::vector<Bytes> memory_;
};

PlanResult place(const PlanRequest& request, std::span<const double> weights, bool contiguous) {
  Placement placement(request, weights, contiguous);
  if (const std::string reason = placement.run(); !reason.empty()) {
    return Infeasible{reason};
  }
  return placement.plan();
}

} // namespace

PlanResult place_earliest_finish(const PlanRequest& request, std::span<const double> weights) {
  return place(request, weights, false);
}

PlanResult place_earliest_finish_contiguous(const PlanRequest& request, std::span<const double> weights) {
  return place(request, weights, true);
}

PlanResult split_earliest_finish(const PlanRequest& request) {
  return place_earliest_finish(request, std::vector(request.devices.size(), 1.0));
}

PlanResult split_earliest_finish_contiguous(const PlanRequest& request) {
  return place_earliest_finish_contiguous(request, std::vector(request.devices.size(), 1.0));
}

} // namespace stagecraft
