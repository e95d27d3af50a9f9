// Layered graph scheduling over devices, Wang et al. 2024: levels of the graph are grouped into stages, and each
// stage's kernels run on the streams of its device. The number of stages is the one that pays: of those with the least
// (M - 1) max + sum, the one whose replay under the study's schedule is the fastest.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/plan/check_plan.hpp"
#include "sim/plan/estimate.hpp"
#include "sim/plan/plan_request.hpp"
#include "sim/plan/stream_times.hpp"

namespace stagecraft {
namespace {
constexpr int kStreams = 4;             // used if the study does not say
constexpr std::size_t kMostReplays = 6; // of plans, those with the least estimates

class Layers {
public:
  Layers(const PlanRequest& request, int streams)
      : request_(request), problem_(request.problem), streams_(streams), seconds_(problem_.platform.types.size()) {
    const int n = problem_.model.size();
    std::vector<int> level(n, 0);
    for (OperatorId op = 0; op < n; ++op) {
      for (const OperatorId before : problem_.model.predecessors[op]) {
        level[op] = std::max(level[op], level[before] + 1);
      }
    }
    levels_.resize(*std::max_element(level.begin(), level.end()) + 1);
    for (OperatorId op = 0; op < n; ++op) {
      levels_[level[op]].push_back(op);
    }
    sum_borders(level);
  }

  int count() const { return static_cast<int>(levels_.size()); }

  // The bounds of the stages with the least maximum over stage times and boundaries, if each stage fits in its device's
  // memory; empty if none fit. A[j][n] = min over k of max(A[k][n-1], T(k, j, device n), X(k, device n-1, device n)).
  std::vector<int> cut(const std::vector<DeviceId>& devices) {
    const int layers = count();
    const int parts = static_cast<int>(devices.size());
    std::vector<double> least(layers + 1, kInfinity);
    least[0] = 0;
    std::vector<std::vector<int>> from(parts, std::vector<int>(layers + 1, -1));
    for (int part = 0; part < parts; ++part) {
      std::vector<double> next(layers + 1, kInfinity);
      for (int k = part; k < layers; ++k) {
        if (least[k] == kInfinity) {
          continue;
        }
        const double border =
            part > 0 ? 2 * problem_.path(devices[part - 1], devices[part]).time(crossing_[k]).value : 0;
        double load = 0;
        for (int j = k + 1; j <= layers - (parts - 1 - part); ++j) {
          load += seconds_of(j - 1, problem_.type_index(devices[part]));
          const double value = std::max({least[k], load, border});
          if (value < next[j] - kTie * std::max(1e-300, value) && fits(k, j, part, parts, devices[part])) {
            next[j] = value;
            from[part][j] = k;
          }
        }
      }
      least = std::move(next);
    }
    if (least[layers] == kInfinity) {
      return {};
    }
    std::vector<int> bounds(parts + 1, layers);
    for (int part = parts - 1; part >= 0; --part) {
      bounds[part] = from[part][bounds[part + 1]];
    }
    return bounds;
  }

  Plan plan(const std::vector<int>& bounds, const std::vector<DeviceId>& devices) const {
    Plan plan;
    for (std::size_t part = 0; part + 1 < bounds.size(); ++part) {
      Stage stage;
      for (int level = bounds[part]; level < bounds[part + 1]; ++level) {
        stage.operators.insert(stage.operators.end(), levels_[level].begin(), levels_[level].end());
      }
      std::sort(stage.operators.begin(), stage.operators.end());
      stage.devices = {devices[part]};
      recompute_as_trained(problem_, stage);
      stage.streams = streams_;
      plan.stages.push_back(std::move(stage));
    }
    return plan;
  }

private:
  // crossing_[k]: the tensors made below level k and needed from it on. The other sums are over the levels below k.
  void sum_borders(const std::vector<int>& level) {
    crossing_.resize(levels_.size() + 1);
    parameters_.assign(levels_.size() + 1, 0.0);
    stash_.assign(levels_.size() + 1, {});
    resident_.assign(levels_.size() + 1, 0.0);
    for (OperatorId op = 0; op < problem_.model.size(); ++op) {
      int last = level[op];
      for (const OperatorId user : problem_.model.successors[op]) {
        last = std::max(last, level[user]);
      }
      for (int k = level[op] + 1; k <= last; ++k) {
        crossing_[k] += problem_.output_bytes(op);
      }
      parameters_[level[op] + 1] += problem_.model.operators[op].parameters;
      stash_[level[op] + 1] += problem_.stash(op);
      resident_[level[op] + 1] += problem_.model.operators[op].resident_bytes;
    }
    crossing_.front() = problem_.input_bytes();
    std::partial_sum(parameters_.begin(), parameters_.end(), parameters_.begin());
    std::partial_sum(stash_.begin(), stash_.end(), stash_.begin(),
                     [](Activations sum, const Activations& one) { return sum += one; });
    std::partial_sum(resident_.begin(), resident_.end(), resident_.begin());
  }

  double seconds_of(int level, int type) {
    if (seconds_[type].empty()) {
      for (const auto& operators : levels_) {
        const StreamTimes times = stream_times(problem_, operators, type, 1, streams_);
        std::vector<OperatorId> again;
        std::copy_if(operators.begin(), operators.end(), std::back_inserter(again),
                     [&](OperatorId op) { return problem_.recomputes(op); });
        seconds_[type].push_back(times.forward + times.backward +
                                 stream_times(problem_, again, type, 1, streams_).forward);
      }
    }
    return seconds_[type][level];
  }

  bool fits(int first, int last, int part, int parts, DeviceId device) const {
    const StageMemory memory = memory_of_stage(problem_,
                                               {.parameters = parameters_[last] - parameters_[first],
                                                .resident = Bytes{resident_[last] - resident_[first]},
                                                .stash = stash_[last] - stash_[first],
                                                .incoming = crossing_[first],
                                                .outgoing = crossing_[last]},
                                               problem_.training.recompute.what);
    return memory.total(request_.in_flight(part, parts), request_.versions) <= problem_.platform.type_of(device).memory;
  }

  const PlanRequest& request_;
  const Problem& problem_;
  int streams_;
  std::vector<std::vector<OperatorId>> levels_;
  std::vector<Bytes> crossing_;
  std::vector<double> parameters_, resident_; // over the levels below
  std::vector<Activations> stash_;            // the same
  std::vector<std::vector<double>> seconds_;  // [type][level], filled when asked for
};

// The `count` fastest devices, in the given order, once per chunk.
std::vector<DeviceId> fastest(const PlanRequest& request, std::size_t count) {
  std::vector<DeviceId> sorted = request.devices;
  std::stable_sort(sorted.begin(), sorted.end(), [&](DeviceId a, DeviceId b) {
    const auto& seconds = request.problem.prefix.seconds;
    return seconds[request.problem.type_index(a)].back() < seconds[request.problem.type_index(b)].back();
  });
  sorted.resize(count);
  std::vector<DeviceId> chosen;
  std::copy_if(request.devices.begin(), request.devices.end(), std::back_inserter(chosen),
               [&](DeviceId device) { return std::find(sorted.begin(), sorted.end(), device) != sorted.end(); });
  return place_stages(chosen, request.chunks, request.stage_placement);
}

// A plan for each number of stages that fits in memory, least estimate first.
std::vector<std::pair<Seconds, Plan>> plans_by_estimate(const PlanRequest& request, Layers& layers) {
  const Problem& problem = request.problem;
  std::vector<std::pair<Seconds, Plan>> plans;
  for (std::size_t count = 1; count <= request.devices.size(); ++count) {
    const std::vector<DeviceId> devices = fastest(request, count);
    if (static_cast<int>(devices.size()) > layers.count()) {
      break;
    }
    const std::vector<int> bounds = layers.cut(devices);
    if (bounds.empty()) {
      continue;
    }
    Plan plan = layers.plan(bounds, devices);
    if (!plan_shortage(problem, plan, request.chunks, request.in_flight, request.versions, request.stage_placement)) {
      const Seconds estimate = estimate_iteration(problem, plan, cost_plan(problem, plan));
      plan.objective = Objective{"(M - 1) max + sum", estimate};
      plans.emplace_back(estimate, std::move(plan));
    }
  }
  std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return plans;
}

// The plan whose replay is the fastest; the first one where none runs.
Plan fastest_replayed(const PlanRequest& request, std::vector<std::pair<Seconds, Plan>>& plans) {
  std::size_t best = 0;
  Seconds least{kInfinity};
  for (std::size_t at = 0; at < std::min(plans.size(), kMostReplays); ++at) {
    Plan& plan = plans[at].second;
    const Evaluation measured = request.evaluate(plan);
    if (measured.why_not.empty() && improves(measured.iteration.value, least.value)) {
      least = measured.iteration;
      plan.objective = Objective{"iteration time, measured", least};
      best = at;
    }
  }
  return std::move(plans[best].second);
}

} // namespace

PlanResult split_layered(const PlanRequest& request) {
  const Training& training = request.problem.training;
  Layers layers(request, training.streams > 1 ? training.streams : kStreams);
  if (layers.count() < request.chunks) {
    return Infeasible{"the model has " + std::to_string(layers.count()) + " levels, fewer than the " +
                      std::to_string(request.chunks) + " stages asked for"};
  }
  auto plans = plans_by_estimate(request, layers);
  if (plans.empty()) { // the check of a single stage says what is lacking
    return layers.plan({0, layers.count()}, fastest(request, 1));
  }
  return request.evaluate ? fastest_replayed(request, plans) : std::move(plans.front().second);
}

} // namespace stagecraft
