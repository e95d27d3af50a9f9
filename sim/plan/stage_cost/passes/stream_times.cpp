// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/stream_times.hpp"

#include <algorithm>

#include "sim/base/improves.hpp"
#include "sim/cost/alike_times.hpp"
#include "sim/cost/streams.hpp"
#include "sim/plan/stage_cost/passes/host_launches.hpp"

namespace stagecraft {
namespace {

// Times of the stage's operators for its share; the problem's tables have those of the whole micro-batch.
std::vector<OperatorTime> operator_times(const Problem& problem, std::span<const OperatorId> operators, int type,
                                         double share) {
  std::vector<OperatorTime> times;
  times.reserve(operators.size());
  AlikeTimes known(problem.cost, problem.platform.types[type], problem.samples * share, problem.training.precision);
  for (const OperatorId op : operators) {
    if (share == 1) {
      times.push_back({Seconds{problem.forward[type][op]}, Seconds{problem.backward_input[type][op]},
                       Seconds{problem.backward_weight[type][op]}});
      continue;
    }
    const std::optional<OperatorTime>& time = known.of(op);
    times.push_back(time ? *time : OperatorTime{Seconds{kInfinity}, Seconds{kInfinity}, Seconds{kInfinity}});
  }
  return times;
}

class StageKernels {
public:
  StageKernels(const Problem& problem, std::span<const OperatorId> operators, int type, double share)
      : problem_(problem), operators_(operators), type_(problem.platform.types[type]),
        samples_(problem.samples * share), times_(operator_times(problem, operators, type, share)) {}

  const std::vector<OperatorTime>& times() const { return times_; }

  // On one stream.
  RestOfPasses rest() const {
    RestOfPasses sum;
    for (std::size_t at = 0; at < operators_.size(); ++at) {
      sum += rest_of(problem_.model.operators[operators_[at]], {}, type_, samples_, problem_.training.precision,
                     times_[at]);
    }
    return sum;
  }

  KernelGraph forward() const {
    KernelGraph graph;
    for (std::size_t at = 0; at < operators_.size(); ++at) {
      const Operator& op = problem_.model.operators[operators_[at]];
      add(graph, op, op.forward, times_[at].forward, inside(problem_.model.predecessors[operators_[at]]));
    }
    return graph;
  }

  // From the last operator to the first: the gradient of an output is ready once all its users in the stage have
  // computed theirs. A kernel of zero time passes on what it waits for.
  KernelGraph backward(bool input, bool weight) const {
    KernelGraph graph;
    std::vector<int> gradient(operators_.size(), -1);
    for (std::size_t at = operators_.size(); at-- > 0;) {
      const Operator& op = problem_.model.operators[operators_[at]];
      std::vector<int> after;
      for (const int user : inside(problem_.model.successors[operators_[at]])) {
        if (gradient[user] >= 0) {
          after.push_back(gradient[user]);
        }
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      if (weight && times_[at].backward_weight.value > 0) {
        add(graph, op, op.backward_weight, times_[at].backward_weight, after);
      }
      if (input) {
        gradient[at] = static_cast<int>(graph.kernels.size());
        add(graph, op, op.backward_input, times_[at].backward_input, std::move(after));
      }
    }
    return graph;
  }

private:
  void add(KernelGraph& graph, const Operator& op, const Pass& pass, Seconds time, std::vector<int> after) const {
    graph.kernels.push_back(kernel_of(pass, op.kind, type_, samples_, problem_.training.precision, time, op.products));
    graph.predecessors.push_back(std::move(after));
  }

  // Positions in the stage of those of these operators that belong to it.
  std::vector<int> inside(const std::vector<OperatorId>& operators) const {
    std::vector<int> places;
    for (const OperatorId op : operators) {
      const auto found = std::lower_bound(operators_.begin(), operators_.end(), op);
      if (found != operators_.end() && *found == op) {
        places.push_back(static_cast<int>(found - operators_.begin()));
      }
    }
    return places;
  }

  const Problem& problem_;
  std::span<const OperatorId> operators_;
  const DeviceType& type_;
  double samples_;
  std::vector<OperatorTime> times_;
};

// Both graphs as one, without edges between them.
KernelGraph side_by_side(KernelGraph one, KernelGraph other) {
  const int offset = static_cast<int>(one.kernels.size());
  for (std::size_t kernel = 0; kernel < other.kernels.size(); ++kernel) {
    for (int& before : other.predecessors[kernel]) {
      before += offset;
    }
    one.kernels.push_back(other.kernels[kernel]);
    one.predecessors.push_back(std::move(other.predecessors[kernel]));
  }
  return one;
}

} // namespace

double seconds_side_by_side(const Problem& problem, const StagePart& forward, const StagePart& backward,
                            bool with_weight, int type, int streams) {
  const StreamTimes first = stream_times(problem, forward.operators, type, forward.share, streams);
  const StreamTimes second = stream_times(problem, backward.operators, type, backward.share, streams);
  const double apart = first.forward + (with_weight ? second.backward : second.backward_input);
  if (streams <= 1 || apart == kInfinity) {
    return apart;
  }
  const KernelGraph both =
      side_by_side(StageKernels(problem, forward.operators, type, forward.share).forward(),
                   StageKernels(problem, backward.operators, type, backward.share).backward(true, with_weight));
  const double launch = problem.platform.types[type].launch_overhead.value;
  return std::min(apart, unsynchronised_seconds(fuse_cheap(both, launch), streams));
}

namespace {

// No pass takes less than launching its kernels, which take `forward` alone and of that rest as long as `rest` says.
void bound_by_host(const Problem& problem, std::span<const OperatorId> operators, double host_speed, double forward,
                   RestOfPasses rest, StreamTimes& times) {
  if (problem.training.launches.each.value > 0) {
    const PassLaunches launches = launches_of(problem, operators, {}, host_speed);
    times.forward = std::max(times.forward, launches.forward.value);
    times.ahead = Seconds{std::max(0.0, times.backward - launches.backward().value)};
    rest.forward += Seconds{times.forward - forward};
    const double backward = std::max(times.backward, launches.backward().value);
    if (backward > times.backward) {
      rest.backward += Seconds{backward - times.backward};
      const double factor = times.backward > 0 ? backward / times.backward : 0;
      times.backward_input = factor > 0 ? times.backward_input * factor : launches.backward_input.value;
      times.backward_weight = factor > 0 ? times.backward_weight * factor : launches.backward_weight.value;
      times.backward = backward;
    }
  }
  times.rest = parts_of(rest, Seconds{times.forward}, Seconds{times.backward});
}

// Of kernels one after another.
double forward_in_order(const Problem& problem, std::span<const OperatorId> operators, double host_speed,
                        std::span<const OperatorTime> times) {
  std::vector<Seconds> alone;
  for (const OperatorTime& time : times) {
    alone.push_back(time.forward);
  }
  if (problem.training.launches.each.value == 0) {
    return sum_of(alone).value;
  }
  return sum_of(forward_beside_host(launches_of_each(problem, operators, {}, {}, host_speed), alone)).value;
}

} // namespace

StreamTimes stream_times(const Problem& problem, std::span<const OperatorId> operators, int type, double share,
                         int streams, StreamFigures figures) {
  const StageKernels kernels(problem, operators, type, share);
  StreamTimes sums;
  for (const OperatorTime& time : kernels.times()) {
    sums.forward += time.forward.value;
    sums.backward_input += time.backward_input.value;
    sums.backward_weight += time.backward_weight.value;
  }
  const double host_speed = problem.platform.types[type].host_speed;
  sums.backward = sums.backward_input + sums.backward_weight;
  if (streams <= 1 || sums.forward + sums.backward == kInfinity) {
    const double alone = sums.forward;
    sums.forward = forward_in_order(problem, operators, host_speed, kernels.times());
    bound_by_host(problem, operators, host_speed, alone,
                  figures == StreamFigures::with_rest ? kernels.rest() : RestOfPasses{}, sums);
    return sums;
  }
  const double forward_alone = sums.forward, backward_alone = sums.backward;
  const double launch = problem.platform.types[type].launch_overhead.value;
  sums.forward = best_seconds(kernels.forward(), streams, launch);
  sums.backward_input = best_seconds(kernels.backward(true, false), streams, launch);
  sums.backward_weight = best_seconds(kernels.backward(false, true), streams, launch);
  sums.backward =
      std::min(sums.backward_input + sums.backward_weight, best_seconds(kernels.backward(true, true), streams, launch));
  RestOfPasses rest;
  if (figures == StreamFigures::with_rest) { // kernels side by side draw as much energy as one after another
    const RestOfPasses in_order = kernels.rest();
    rest = {std::max(Seconds{0}, in_order.forward - Seconds{forward_alone - sums.forward}),
            std::max(Seconds{0}, in_order.backward - Seconds{backward_alone - sums.backward})};
  }
  bound_by_host(problem, operators, host_speed, sums.forward, rest, sums);
  return sums;
}

} // namespace stagecraft
