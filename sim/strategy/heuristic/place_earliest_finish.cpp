// Greedy placement by earliest finish (a 2022 patent's), in the fluid form that a running pipeline needs: an operator
// occupies its device for all micro-batches and releases its successors after the first. With Rule::links a tensor
// occupies its links in the same way, and an operator ends no sooner than its last input lets it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/improves.hpp"
#include "sim/collective/collective.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/plan/stage_cost/groups/axis_groups.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/strategy/heuristic/balance.hpp"
#include "sim/strategy/heuristic/placement.hpp"
#include "sim/strategy/heuristic/placements.hpp"

namespace stagecraft {
namespace {

// A device's part of an operator: the samples from `begin` to `end` of each micro-batch, as fractions of it.
struct Part {
  int device = 0; // index into the request's
  double begin = 0, end = 1;
  double start = 0;
  double time = 0; // seconds per micro-batch, weighted
};

// An operator on one device, or divided over several, ascending.
struct Choice {
  std::vector<Part> parts;
  double reduction = 0; // seconds to reduce the parts' gradients, once per iteration
  double finish = kInfinity;
};

enum class Rule { anywhere, contiguous, divided, links };

// When the first micro-batch of a tensor is there, and the last.
struct Arrival {
  double first = 0, last = 0;
};

// Links that carry one tensor at a time: all its micro-batches, and their gradients on the way back.
class LinkQueues {
public:
  explicit LinkQueues(const Problem& problem) : problem_(problem), free_(problem.platform.links.size(), 0.0) {}

  // Of a tensor that was made at `made`, if it is sent now.
  Arrival arrival(const Arrival& made, Bytes bytes, DeviceId from, DeviceId to) const {
    const PathCost path = problem_.path(from, to);
    const double start = std::max(made.first, queue_end(from, to));
    const double one = path.time(bytes).value;
    const double flows = problem_.micro_batches * bytes.value * path.seconds_per_byte;
    return {start + one, std::max(start + path.latency.value + flows, made.last + one)};
  }

  void send(const Arrival& made, Bytes bytes, DeviceId from, DeviceId to) {
    const double start = std::max(made.first, queue_end(from, to));
    for_links(from, to, [&](LinkId link) {
      free_[link] = start + problem_.micro_batches * (bytes / problem_.platform.links[link].bandwidth).value;
    });
  }

private:
  template <class Call> void for_links(DeviceId from, DeviceId to, const Call& call) const {
    for (const Route* route : {problem_.router.find(from, to), problem_.router.find(to, from)}) {
      for (const Leg& leg : route->legs) {
        std::for_each(leg.links.begin(), leg.links.end(), call);
      }
    }
  }

  double queue_end(DeviceId from, DeviceId to) const {
    double end = 0;
    for_links(from, to, [&](LinkId link) { end = std::max(end, free_[link]); });
    return end;
  }

  const Problem& problem_;
  std::vector<double> free_; // [link]
};

class Placement {
public:
  Placement(const PlanRequest& request, std::span<const double> weights, Rule rule)
      : request_(request), problem_(request.problem), weights_(weights), rule_(rule), parts_(problem_.model.size()),
        free_(request.devices.size(), 0.0), memory_(request.devices.size()), queues_(problem_),
        finish_(problem_.model.size(), 0.0) {}

  // Places all operators; returns the reason if one finds no device, else "".
  std::string run() {
    const PathCost path = mean_path(request_);
    const auto transfer = [&](int from, int) { return path.time(problem_.output_bytes(from)).value; };
    const auto& successors = problem_.model.successors;
    for (const OperatorId op : order_by_rank(successors, upward_ranks(successors, mean_seconds(request_), transfer))) {
      const std::vector<Choice> singles = single_devices(op);
      if (singles.empty()) {
        return reason(op);
      }
      take(op, rule_ == Rule::divided && problem_.model.operators[op].divisible ? best_division(op, singles)
                                                                                : singles.front());
    }
    return "";
  }

  Plan plan() const {
    Plan placed = rule_ == Rule::contiguous ? plan_by_device() : plan_by_level();
    placed.memory_bound = memory_bound_;
    return placed;
  }

private:
  // The devices that may take all of `op`, earliest finish first; among equals the earlier start, then the faster, then
  // the lower device.
  std::vector<Choice> single_devices(OperatorId op) {
    std::vector<Choice> singles;
    for (int d = lowest_device(op); d < static_cast<int>(request_.devices.size()); ++d) {
      const Part whole{.device = d};
      if (std::isinf(seconds(op, whole))) {
        continue;
      }
      if (memory_[d] + bytes(op, whole) > memory_of(d)) {
        memory_bound_ = true;
        continue;
      }
      singles.push_back(timed(op, {whole}, 0));
    }
    const auto key = [](const Choice& one) {
      return std::tuple(one.finish, one.parts.front().start, one.parts.front().time);
    };
    std::stable_sort(singles.begin(), singles.end(), [&](const Choice& a, const Choice& b) { return key(a) < key(b); });
    return singles;
  }

  // The best of the first device alone and a division over the first two, three, … of those devices, with shares in
  // proportion to weighted speed.
  Choice best_division(OperatorId op, const std::vector<Choice>& singles) const {
    Choice best = singles.front();
    std::vector<Part> devices;
    for (const Choice& single : singles) {
      const auto after = std::upper_bound(devices.begin(), devices.end(), single.parts.front(),
                                          [](const Part& a, const Part& b) { return a.device < b.device; });
      devices.insert(after, single.parts.front());
      if (!problem_.divisible_at_will && static_cast<double>(devices.size()) > problem_.samples) {
        break; // a device would be left without a sample
      }
      const Choice divided = timed(op, shared_out(devices), reduction(op, devices));
      best = devices.size() > 1 && improves(divided.finish, best.finish) ? divided : best;
    }
    return best;
  }

  std::vector<Part> shared_out(const std::vector<Part>& devices) const {
    std::vector<double> speeds;
    for (const Part& whole : devices) {
      speeds.push_back(1 / std::max(whole.time, 1e-300));
    }
    std::vector<Part> parts;
    double begin = 0;
    for (const double share : shares_by_speed(problem_, speeds)) {
      parts.push_back({.device = devices[parts.size()].device, .begin = begin, .end = begin + share});
      begin = parts.back().end;
    }
    std::erase_if(parts, [](const Part& part) { return part.begin == part.end; });
    return parts;
  }

  double reduction(OperatorId op, const std::vector<Part>& parts) const {
    std::vector<DeviceId> ring;
    for (const Part& part : parts) {
      ring.push_back(request_.devices[part.device]);
    }
    const double parameters = problem_.model.operators[op].parameters;
    const Bytes gradients{parameters * parameter_bytes(problem_.training).gradient};
    return ring.size() < 2 || parameters == 0
               ? 0
               : seconds_of({CollectiveKind::all_reduce, group_of_devices(problem_, ring), gradients}).value;
  }

  Choice timed(OperatorId op, std::vector<Part> parts, double reduction) const {
    double last = 0;
    for (Part& part : parts) {
      part.time = seconds(op, part);
      const Arrival inputs = rule_ == Rule::links ? arrival(op, part.device) : Arrival{ready(op, part)};
      part.start = std::max(inputs.first, free_[part.device]);
      last = std::max({last, part.start + problem_.micro_batches * part.time, inputs.last + part.time});
    }
    return {.parts = std::move(parts), .reduction = reduction, .finish = last + reduction};
  }

  // Rule::links: when an operator's inputs are on a device, each tensor being sent there once.
  Arrival arrival(OperatorId op, int device) const {
    Arrival all;
    for (const OperatorId maker : problem_.model.predecessors[op]) {
      const Arrival one = arrival_of(maker, device);
      all = {std::max(all.first, one.first), std::max(all.last, one.last)};
    }
    return all;
  }

  Arrival arrival_of(OperatorId maker, int device) const {
    const Part& made = parts_[maker].front();
    const Arrival there{made.start + made.time, finish_[maker]};
    const auto sent = sent_.find({maker, device});
    return made.device == device ? there
           : sent != sent_.end() ? sent->second
                                 : queues_.arrival(there, problem_.output_bytes(maker), request_.devices[made.device],
                                                   request_.devices[device]);
  }

  void send_inputs(OperatorId op, int device) {
    for (const OperatorId maker : problem_.model.predecessors[op]) {
      const Part& made = parts_[maker].front();
      if (made.device != device && sent_.try_emplace({maker, device}, arrival_of(maker, device)).second) {
        queues_.send({made.start + made.time, finish_[maker]}, problem_.output_bytes(maker),
                     request_.devices[made.device], request_.devices[device]);
      }
    }
  }

  void take(OperatorId op, const Choice& choice) {
    if (rule_ == Rule::links) {
      send_inputs(op, choice.parts.front().device);
    }
    parts_[op] = choice.parts;
    finish_[op] = choice.finish;
    for (const Part& part : choice.parts) {
      free_[part.device] = part.start + problem_.micro_batches * part.time + choice.reduction;
      memory_[part.device] += bytes(op, part);
    }
  }

  // In a contiguous plan no operator is on a device before that of one of its inputs.
  int lowest_device(OperatorId op) const {
    int lowest = 0;
    for (const OperatorId maker : problem_.model.predecessors[op]) {
      lowest = rule_ == Rule::contiguous ? std::max(lowest, parts_[maker].front().device) : 0;
    }
    return lowest;
  }

  double seconds(OperatorId op, const Part& part) const {
    const int type = problem_.type_index(request_.devices[part.device]);
    return share_seconds(problem_, type, op, part.end - part.begin) / weights_[part.device];
  }

  // When the inputs of the part's samples of the first micro-batch have arrived, from each device that makes some of
  // them.
  double ready(OperatorId op, const Part& part) const {
    double ready = 0;
    for (const OperatorId maker : problem_.model.predecessors[op]) {
      for (const Part& made : parts_[maker]) {
        const double overlap = std::min(made.end, part.end) - std::max(made.begin, part.begin);
        if (overlap > kTie) {
          const PathCost path = problem_.path(request_.devices[made.device], request_.devices[part.device]);
          const double transfer =
              made.device == part.device ? 0 : path.time(problem_.output_bytes(maker) * overlap).value;
          ready = std::max(ready, made.start + made.time + transfer);
        }
      }
    }
    return ready;
  }

  // If each device holds one stage, the activations in flight are the schedule's; otherwise they are those of all
  // micro-batches, since the order of work is not known yet.
  Bytes bytes(OperatorId op, const Part& part) const {
    const double held = rule_ == Rule::contiguous
                            ? request_.in_flight(part.device, static_cast<int>(request_.devices.size()))
                            : static_cast<double>(problem_.micro_batches);
    return placed_bytes(request_, op, held * (part.end - part.begin));
  }

  Bytes memory_of(int d) const { return problem_.platform.type_of(request_.devices[d]).memory; }

  std::string reason(OperatorId op) const {
    std::vector<Bytes> need = memory_;
    for (int d = 0; d < static_cast<int>(need.size()); ++d) {
      need[d] += bytes(op, {.device = d});
    }
    return why_no_device(request_, op, lowest_device(op), need);
  }

  // Devices never go back along a path, so each device's operators form one stage.
  Plan plan_by_device() const {
    std::vector<Stage> stages(request_.devices.size());
    for (OperatorId op = 0; op < problem_.model.size(); ++op) {
      stages[parts_[op].front().device].operators.push_back(op);
    }
    Plan plan;
    for (std::size_t d = 0; d < stages.size(); ++d) {
      if (!stages[d].operators.empty()) {
        stages[d].devices = {request_.devices[d]};
        recompute_as_trained(problem_, stages[d]);
        plan.stages.push_back(std::move(stages[d]));
      }
    }
    return plan;
  }

  // Operators with the same devices have one place: a device's index, or a new number for each set of several devices.
  Plan plan_by_level() const {
    std::vector<std::vector<int>> places;
    std::map<std::vector<int>, int> place_of;
    for (int d = 0; d < static_cast<int>(request_.devices.size()); ++d) {
      places.push_back({d});
      place_of[{d}] = d;
    }
    std::vector<int> place;
    for (const std::vector<Part>& parts : parts_) {
      std::vector<int> devices;
      for (const Part& part : parts) {
        devices.push_back(part.device);
      }
      const auto [found, is_new] = place_of.try_emplace(devices, static_cast<int>(places.size()));
      place.push_back(found->second);
      if (is_new) {
        places.push_back(std::move(devices));
      }
    }
    return make_segment_plan(request_, place, places, weights_);
  }

  const PlanRequest& request_;
  const Problem& problem_;
  std::span<const double> weights_; // per device of the request
  Rule rule_;
  bool memory_bound_ = false;
  std::vector<std::vector<Part>> parts_; // [operator]
  std::vector<double> free_;
  std::vector<Bytes> memory_;
  LinkQueues queues_;
  std::vector<double> finish_;                         // [operator]: of its last micro-batch
  std::map<std::pair<OperatorId, int>, Arrival> sent_; // maker and device -> when it arrives there
};

PlanResult place(const PlanRequest& request, std::span<const double> weights, Rule rule) {
  Placement placement(request, weights, rule);
  if (const std::string reason = placement.run(); !reason.empty()) {
    return Infeasible{reason};
  }
  return placement.plan();
}

} // namespace

PlanResult place_earliest_finish(const PlanRequest& request, std::span<const double> weights) {
  return place(request, weights, Rule::anywhere);
}

PlanResult place_earliest_finish_contiguous(const PlanRequest& request, std::span<const double> weights) {
  return place(request, weights, Rule::contiguous);
}

PlanResult place_earliest_finish_links(const PlanRequest& request, std::span<const double> weights) {
  return place(request, weights, Rule::links);
}

PlanResult place_earliest_finish_divided(const PlanRequest& request, std::span<const double> weights) {
  return place(request, weights, Rule::divided);
}

} // namespace stagecraft
