// Layered graph scheduling over devices, Wang et al. 2024: levels of the graph are grouped into stages, and each
// stage's kernels run on the streams of its device. The number of stages is the one that pays: of those with the least
// (M - 1) max + sum, the one whose replay under the study's schedule is the fastest.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/estimate/plan_request.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"
#include "sim/plan/stage_cost/passes/stream_times.hpp"
#include "sim/strategy/dynamic_programming/kept_answers.hpp"

namespace stagecraft {
namespace {
constexpr int kStreams = 4;             // used if the study does not say
constexpr std::size_t kMostReplays = 6; // of plans, those with the least estimates
constexpr double kMargin = 1e-6;        // of limits, far more than what ties decide

// Of one list of devices.
struct FoundCut {
  double least = -1;                      // no cut has a smaller maximum; -1: not known
  std::optional<std::vector<int>> bounds; // without a limit of memory
  KeptAnswers<std::vector<int>> limited;  // bounds within memory; empty if none fit
};

// What no schedule changes, kept for the next one.
struct FoundLayers {
  std::vector<std::vector<double>> seconds; // [type][level], filled when asked for
  std::map<std::vector<DeviceId>, FoundCut> cuts;
  std::map<std::pair<std::vector<DeviceId>, std::vector<int>>, Seconds> estimates; // of cuts
};

class Layers {
public:
  Layers(const PlanRequest& request, int streams)
      : request_(request), problem_(request.problem), streams_(streams),
        found_(kept_for<FoundLayers>(
            request,
            [&] { return FoundLayers{.seconds = std::vector<std::vector<double>>(problem_.platform.types.size())}; })),
        known_(kept_for<KnownStages>(request, [] { return KnownStages(); })) {
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
  // Where the best without a limit of memory fits, it is the one.
  std::vector<int> cut(const std::vector<DeviceId>& devices) {
    FoundCut& known = found_->cuts[devices];
    if (!known.bounds) {
      known.bounds = best_cut(measure(devices, false, known));
    }
    const std::vector<int>& unlimited = *known.bounds;
    if (unlimited.empty()) {
      return {};
    }
    const Parts parts = measure(devices, true, known);
    if (all_fit(parts, unlimited)) {
      return unlimited;
    }
    const auto stays = [&](const std::vector<int>& bounds) { return bounds.empty() || all_fit(parts, bounds); };
    return known.limited.find_or_keep({parts.held, request_.versions}, stays, [&] { return best_cut(parts); });
  }

  // (M - 1) max + sum of a plan with these bounds.
  Seconds estimate(const std::vector<int>& bounds, const std::vector<DeviceId>& devices, const Plan& plan) {
    const auto [known, is_new] = found_->estimates.try_emplace({devices, bounds});
    if (is_new) {
      known->second = estimate_iteration(problem_, plan, cost_plan(problem_, plan, known_.get()));
    }
    return known->second;
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
  // The stages that cut() is asked for, one on each device of the list.
  struct Parts {
    const std::vector<DeviceId>& devices;
    std::vector<double> held;       // [part]: micro-batches in flight
    std::vector<double> speed_left; // [part]: of the devices from this one on, in whole models per second
    std::vector<int> first; // [part]: the levels from earlier ones on do not fit on the devices from this one on
    double least = 0;       // no cut has a smaller maximum
    bool limited = true;    // by memory
    int count() const { return static_cast<int>(devices.size()); }
  };

  // Narrow limits come first: the wider the limit, the more cells may be part of a cut.
  std::vector<int> best_cut(const Parts& parts) {
    if (parts.first.front() > 0) {
      return {};
    }
    for (const double wide : {1.125, 1.5, 3.0}) {
      if (std::vector<int> bounds = cut_below(parts, parts.least * wide); !bounds.empty()) {
        return bounds;
      }
    }
    return cut_below(parts, kInfinity);
  }

  bool all_fit(const Parts& parts, const std::vector<int>& bounds) {
    for (int part = 0; part < parts.count(); ++part) {
      if (!fits(bounds[part], bounds[part + 1], parts, part, memory_upto(parts.held[part]), true)) {
        return false;
      }
    }
    return true;
  }

  Parts measure(const std::vector<DeviceId>& devices, bool limited, FoundCut& known) {
    if (work_left_.empty()) {
      measure_work();
    }
    Parts parts{.devices = devices, .limited = limited};
    parts.speed_left.assign(devices.size() + 1, 0.0);
    for (int part = parts.count() - 1; part >= 0; --part) {
      parts.speed_left[part] = parts.speed_left[part + 1] + speed_[problem_.type_index(devices[part])];
    }
    for (int part = 0; part < parts.count(); ++part) {
      parts.held.push_back(limited ? request_.in_flight(part, parts.count()) : 0);
    }
    parts.first = limited ? first_levels(parts) : std::vector<int>(parts.count(), 0);
    parts.first.resize(parts.count() + 1, count());
    if (known.least < 0) {
      known.least =
          std::max({work_left_.front() / parts.speed_left.front(), longest_level(devices), longest_border(devices)});
    }
    parts.least = known.least;
    return parts;
  }

  // Each level is at its fastest on the devices that it can be on: each stage has a level or more.
  double longest_level(const std::vector<DeviceId>& devices) {
    std::vector<int> first(found_->seconds.size(), -1); // [type]: the first part and the last one
    std::vector<int> last(found_->seconds.size(), -1);
    for (int part = 0; part < static_cast<int>(devices.size()); ++part) {
      const int type = problem_.type_index(devices[part]);
      first[type] = first[type] < 0 ? part : first[type];
      last[type] = part;
    }
    std::vector<double> fastest(levels_.size(), kInfinity);
    for (int type = 0; type < static_cast<int>(found_->seconds.size()); ++type) {
      for (int level = 0; level < count() && first[type] >= 0; ++level) {
        const int earliest = static_cast<int>(devices.size()) - (count() - level);
        if (first[type] <= level && last[type] >= earliest) {
          fastest[level] = std::min(fastest[level], seconds_of(type)[level]);
        }
      }
    }
    return *std::max_element(fastest.begin(), fastest.end());
  }

  // Each border is where the least crosses it.
  double longest_border(const std::vector<DeviceId>& devices) const {
    const Bytes least = devices.size() > 1 ? *std::min_element(crossing_.begin() + 1, crossing_.end() - 1) : Bytes{0};
    double longest = 0;
    for (std::size_t part = 1; part < devices.size(); ++part) {
      longest = std::max(longest, border(problem_.path(devices[part - 1], devices[part]), least));
    }
    return longest;
  }

  // Seconds of the tensors and of their gradients.
  static double border(const PathCost& path, Bytes crossing) { return 2 * path.time(crossing).value; }

  // A level is the least part of the whole that it is on any device type, without the kernels that a type lacks.
  void measure_work() {
    std::vector<double> work(levels_.size(), kInfinity);
    for (int type = 0; type < static_cast<int>(found_->seconds.size()); ++type) {
      const std::vector<double>& seconds = seconds_of(type);
      const double whole = std::accumulate(seconds.begin(), seconds.end(), 0.0,
                                           [](double sum, double one) { return sum + (one < kInfinity ? one : 0); });
      speed_.push_back(1 / std::max(whole, 1e-300));
      for (std::size_t level = 0; level < work.size(); ++level) {
        work[level] = std::min(work[level], seconds[level] * speed_.back());
      }
    }
    measure_memory();
    work_left_.assign(levels_.size() + 1, 0.0);
    for (std::size_t level = work.size(); level-- > 0;) {
      work_left_[level] = work_left_[level + 1] + (work[level] < kInfinity ? work[level] : 0);
    }
  }

  // A stage's memory is linear in what it holds and in the micro-batches in flight.
  void measure_memory() {
    const auto bytes = [&](const StageAmounts& amounts, double held) {
      return memory_of_stage(problem_, amounts, problem_.training.recompute.what).total(held, request_.versions).value;
    };
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const StageAmounts amounts{.parameters = parameters_[level + 1] - parameters_[level],
                                 .resident = Bytes{resident_[level + 1] - resident_[level]},
                                 .stash = stash_[level + 1] - stash_[level]};
      level_bytes_.push_back(bytes(amounts, 0));
      level_held_.push_back(bytes(amounts, 1) - bytes(amounts, 0));
    }
    outgoing_bytes_ = bytes({.outgoing = Bytes{1}}, 0);
    border_bytes_ = bytes({.incoming = Bytes{1}}, 0);
    border_held_ = bytes({.incoming = Bytes{1}}, 1) - border_bytes_;
  }

  // The memory that the levels below each take where so many micro-batches are held, without borders.
  const std::vector<double>& memory_upto(double held) {
    std::vector<double>& upto = upto_[held];
    if (upto.empty()) {
      upto.assign(levels_.size() + 1, 0.0);
      for (std::size_t level = 0; level < levels_.size(); ++level) {
        upto[level + 1] = upto[level] + level_bytes_[level] + held * level_held_[level];
      }
    }
    return upto;
  }

  // As many levels as fit on each part, from the last one back, were there no borders.
  std::vector<int> first_levels(const Parts& parts) {
    std::vector<int> first(parts.count() + 1, count());
    for (int part = parts.count() - 1; part >= 0; --part) {
      const std::vector<double>& upto = memory_upto(parts.held[part]);
      const auto last = upto.begin() + first[part + 1];
      const double most = problem_.platform.type_of(parts.devices[part]).memory.value + kMargin * upto.back();
      first[part] = static_cast<int>(std::lower_bound(upto.begin(), last, *last - most) - upto.begin());
    }
    return first;
  }

  // cut() with a maximum of at most about `limit`. The part of a cell's value that ties decide is far smaller than the
  // margin, so all cells below the limit are as they would be without one. A cell whose work left is too much for the
  // devices left is on no such cut. Where the stage that begins one level later replaces this one, longer stages from
  // here need not be tried.
  std::vector<int> cut_below(const Parts& parts, double limit) {
    const int layers = count();
    const double most = limit * (1 + kMargin);
    std::vector<double> least(layers + 1, kInfinity);
    least[0] = 0;
    std::vector<std::vector<int>> from(parts.count(), std::vector<int>(layers + 1, -1));
    for (int part = 0; part < parts.count(); ++part) {
      const std::vector<double>& seconds = seconds_of(problem_.type_index(parts.devices[part]));
      const std::vector<double>& upto = memory_upto(parts.held[part]);
      const int later = parts.count() - 1 - part; // parts, each with at least one level
      const double most_left = limit == kInfinity ? kInfinity : most * parts.speed_left[part] * (1 + kMargin);
      const PathCost path = part > 0 ? problem_.path(parts.devices[part - 1], parts.devices[part]) : PathCost{};
      std::vector<double> before(layers + 1, kInfinity);
      for (int k = std::max(part, parts.first[part]); k < layers; ++k) {
        const bool counts = least[k] < kInfinity && work_left_[k] <= most_left;
        before[k] = counts ? std::max(least[k], part > 0 ? border(path, crossing_[k]) : 0) : kInfinity;
      }
      std::vector<double> next(layers + 1, kInfinity);
      for (int k = std::max(part, parts.first[part]); k < layers; ++k) {
        if (before[k] > most || before[k] == kInfinity) {
          continue;
        }
        const double enough =
            is_replaced(parts, part, k) && before[k + 1] <= most ? before[k + 1] * (1 + kMargin) : most;
        const int nearest = std::max(k + 1, parts.first[part + 1]); // earlier ends lead nowhere
        double load = 0;
        for (int level = k; level < std::min(nearest - 1, layers - later) && load <= most; ++level) {
          load += seconds[level];
        }
        for (int j = nearest; j <= layers - later; ++j) {
          load += seconds[j - 1];
          const double value = std::max(before[k], load);
          if (value > most || (load > enough && j > k + 1)) {
            break;
          }
          if (value >= next[j] - kTie * std::max(1e-300, value)) {
            continue;
          }
          if (fits(k, j, parts, part, upto, true)) {
            next[j] = value;
            from[part][j] = k;
          } else if (!fits(k, j, parts, part, upto, false)) {
            break; // nor will more levels
          }
        }
      }
      least = std::move(next);
    }
    if (least[layers] == kInfinity || least[layers] > limit) {
      return {};
    }
    return trace(from);
  }

  // Whether a stage that begins at level k + 1 takes less time than one that begins at level k, by more than ties
  // decide, and fits wherever that one fits.
  bool is_replaced(const Parts& parts, int part, int k) {
    constexpr double kClear = 1e-8;
    const int type = problem_.type_index(parts.devices[part]);
    const double memory = parts.limited ? problem_.platform.types[type].memory.value : kInfinity;
    const double held = parts.held[part];
    const double drop = level_bytes_[k] + held * level_held_[k] -
                        (crossing_[k + 1] - crossing_[k]).value * (border_bytes_ + held * border_held_);
    return (drop > kClear * memory || memory == kInfinity) && seconds_of(type)[k] * speed_[type] > kClear;
  }

  std::vector<int> trace(const std::vector<std::vector<int>>& from) const {
    std::vector<int> bounds(from.size() + 1, count());
    for (std::size_t part = from.size(); part-- > 0;) {
      bounds[part] = from[part][bounds[part + 1]];
    }
    return bounds;
  }

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

  const std::vector<double>& seconds_of(int type) { // [level]
    std::vector<double>& seconds = found_->seconds[type];
    if (seconds.empty()) {
      for (const auto& operators : levels_) {
        const StreamTimes times = stream_times(problem_, operators, type, 1, streams_);
        std::vector<OperatorId> again;
        std::copy_if(operators.begin(), operators.end(), std::back_inserter(again),
                     [&](OperatorId op) { return problem_.counts_again(op); });
        seconds.push_back(times.forward + times.backward + stream_times(problem_, again, type, 1, streams_).forward);
      }
    }
    return seconds;
  }

  // Whether the levels [first, last) fit; without borders they need less, and the more levels the more. Sums tell it
  // unless their rounding may matter.
  bool fits(int first, int last, const Parts& parts, int part, const std::vector<double>& upto, bool borders) const {
    constexpr double kRounding = 1e-9;
    if (!parts.limited) {
      return true;
    }
    const double held = parts.held[part];
    const double crossing =
        crossing_[first].value * (border_bytes_ + held * border_held_) + crossing_[last].value * outgoing_bytes_;
    const double need = upto[last] - upto[first] + (borders ? crossing : 0);
    const double have = problem_.platform.type_of(parts.devices[part]).memory.value;
    if (std::abs(need - have) > kRounding * (upto.back() + crossing)) {
      return need < have;
    }
    return fits_exactly(first, last, parts, part, borders);
  }

  bool fits_exactly(int first, int last, const Parts& parts, int part, bool borders) const {
    const StageMemory memory = memory_of_stage(problem_,
                                               {.parameters = parameters_[last] - parameters_[first],
                                                .resident = Bytes{resident_[last] - resident_[first]},
                                                .stash = stash_[last] - stash_[first],
                                                .incoming = borders ? crossing_[first] : Bytes{0},
                                                .outgoing = borders ? crossing_[last] : Bytes{0}},
                                               problem_.training.recompute.what);
    return memory.total(parts.held[part], request_.versions) <= problem_.platform.type_of(parts.devices[part]).memory;
  }

  const PlanRequest& request_;
  const Problem& problem_;
  int streams_;
  std::vector<std::vector<OperatorId>> levels_;
  std::vector<Bytes> crossing_;
  std::vector<double> parameters_, resident_; // over the levels below
  std::vector<Activations> stash_;            // the same
  std::shared_ptr<FoundLayers> found_;
  std::shared_ptr<KnownStages> known_;
  std::vector<double> speed_;                  // [type]: whole models per second
  std::vector<double> work_left_;              // [k]: of level k and later ones, at least, in whole models
  std::vector<double> level_bytes_;            // [level]: of memory, without borders and micro-batches in flight
  std::vector<double> level_held_;             // [level]: of memory, for each micro-batch in flight
  std::map<double, std::vector<double>> upto_; // [micro-batches in flight][level]
  double border_bytes_ = 0, border_held_ = 0;  // for each byte that comes in, the same
  double outgoing_bytes_ = 0;                  // for each byte that goes out
};

// The devices, the fastest ones first.
std::vector<DeviceId> by_speed(const PlanRequest& request) {
  std::vector<DeviceId> sorted = request.devices;
  std::stable_sort(sorted.begin(), sorted.end(), [&](DeviceId a, DeviceId b) {
    const auto& seconds = request.problem.prefix.seconds;
    return seconds[request.problem.type_index(a)].back() < seconds[request.problem.type_index(b)].back();
  });
  return sorted;
}

// The first `count` of these, in the order of the request, once per chunk.
std::vector<DeviceId> fastest(const PlanRequest& request, const std::vector<DeviceId>& sorted, std::size_t count) {
  std::vector<char> is_chosen(request.problem.platform.devices.size(), 0);
  for (std::size_t at = 0; at < count; ++at) {
    is_chosen[sorted[at]] = 1;
  }
  std::vector<DeviceId> chosen;
  std::copy_if(request.devices.begin(), request.devices.end(), std::back_inserter(chosen),
               [&](DeviceId device) { return is_chosen[device] != 0; });
  return place_stages(chosen, request.chunks, request.stage_placement);
}

// A plan for each number of stages that fits in memory, least estimate first.
std::vector<std::pair<Seconds, Plan>> plans_by_estimate(const PlanRequest& request, Layers& layers) {
  const Problem& problem = request.problem;
  std::vector<std::pair<Seconds, Plan>> plans;
  const std::vector<DeviceId> sorted = by_speed(request);
  for (std::size_t count = 1; count <= request.devices.size(); ++count) {
    const std::vector<DeviceId> devices = fastest(request, sorted, count);
    if (static_cast<int>(devices.size()) > layers.count()) {
      break;
    }
    const std::vector<int> bounds = layers.cut(devices);
    if (bounds.empty()) {
      continue;
    }
    Plan plan = layers.plan(bounds, devices);
    if (!plan_shortage(problem, plan, request.chunks, request.in_flight, request.versions, request.stage_placement)) {
      const Seconds estimate = layers.estimate(bounds, devices, plan);
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
    return layers.plan({0, layers.count()}, fastest(request, by_speed(request), 1));
  }
  return request.evaluate ? fastest_replayed(request, plans) : std::move(plans.front().second);
}

} // namespace stagecraft
