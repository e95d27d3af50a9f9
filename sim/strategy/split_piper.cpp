// Piper (Tarnawski et al. 2021): data, tensor and pipeline parallelism with recompute, by dynamic programming over
// ideals, devices and micro-batches in flight.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "sim/base/improves.hpp"
#include "sim/base/wide_loops.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/strategy/dynamic_programming/piper_segments.hpp"

namespace stagecraft {
namespace {
constexpr int kMostPiperStates = 1500;
constexpr double kMostWork = 1e10; // pairs of states x devices x stages x degrees
constexpr double kMostCells = 2e7; // cells of the table

// One stage of the answer: operators between two states, and how they run.
struct Choice {
  int upper; // state after the stage
  std::int32_t degree, replicas;
};

struct Solution {
  double load = kInfinity;
  int devices = 0, s = 0;
  std::vector<int> states; // states at which the stages begin
  std::vector<Choice> choices;
  std::vector<int> in_flight; // s of each stage
};

// Whether the larger of `least` and what comes after is better than the best of any.
STAGECRAFT_WIDE_LOOP bool any_better(double least, const double* after, const double* best, int count) {
  std::int64_t any = 0;
  for (int i = 0; i < count; ++i) {
    any |= improves(std::max(least, after[i]), best[i]) ? 1 : 0;
  }
  return any != 0;
}

// dp[state][k][s]: the least max-load of the operators above a state, on at most k devices and with at most s in flight
// at the first stage. States are closed under predecessors, so a stage comes before all that its upper state leaves
// out.
class Solver {
public:
  /// Loads above `limit` are ignored.
  Solver(PiperSums& sums, std::vector<int> used, double limit)
      : instance_(sums.instance()), states_(sums.states()), sums_(sums), segment_(sums), used_(std::move(used)),
        limit_(limit), devices_(static_cast<int>(instance_.devices.size())) {
    most_ = instance_.given ? std::min(instance_.problem.micro_batches, devices_) : devices_;
    width_ = static_cast<std::size_t>(devices_ + 1) * (most_ + 1);
    best_.assign(used_.size() * width_, kInfinity);
    choice_ = std::make_unique_for_overwrite<Choice[]>(used_.size() * width_);
    std::fill_n(best_.begin() + static_cast<std::ptrdiff_t>((used_.size() - 1) * width_), width_, 0.0);
    for (int replicas = 1; replicas <= devices_; ++replicas) {
      if (instance_.allows_replicas(replicas)) {
        replicas_.push_back(replicas);
      }
    }
    sum_up();
    bound_devices();
  }

  Solution run() {
    for (int lower = static_cast<int>(used_.size()) - 2; lower >= 0; --lower) {
      for (int upper = lower + 1; upper < static_cast<int>(used_.size()) && least_[lower] <= most_devices_[lower];
           ++upper) {
        for (std::size_t t = 0; t < instance_.degrees.size(); ++t) {
          if (may_be_stage(lower, upper, t)) {
            add_stage(lower, upper, t);
          }
        }
      }
      spread(lower);
    }
    return trace();
  }

private:
  std::size_t cell(int state, int k, int s) const {
    return state * width_ + static_cast<std::size_t>(s) * (devices_ + 1) + k; // loops over k come innermost
  }

  std::vector<double> of_used(const std::vector<double>& of_all) const {
    std::vector<double> values;
    for (const int state : used_) {
      values.push_back(of_all[state]);
    }
    return values;
  }

  // Per state and degree, over its ideal: least times, least memory, operators that cannot run.
  void sum_up() {
    for (const PiperDegree& degree : instance_.degrees) {
      const auto least = [&](OperatorId op, const auto& of) {
        double value = degree.options[op].empty() ? 0 : kInfinity;
        for (const Configuration& one : degree.options[op]) {
          value = std::min(value, of(one));
        }
        return value;
      };
      seconds_.push_back(of_used(sums_.sum(
          [&](OperatorId op) { return least(op, [](const Configuration& one) { return one.seconds.value; }); })));
      bytes_.push_back(of_used(sums_.sum(
          [&](OperatorId op) { return least(op, [](const Configuration& one) { return one.resident.value; }); })));
      lacking_.push_back(of_used(sums_.sum([&](OperatorId op) { return degree.options[op].empty() ? 1.0 : 0.0; })));
    }
  }

  // Bounds the number of devices that may run what lies above a state: enough for that, and enough left for the rest,
  // within the limit. An operator at degree t takes t devices for its seconds, so its work is the least of degree *
  // seconds.
  void bound_devices() {
    const std::vector<double> work = of_used(sums_.sum([&](OperatorId op) {
      double least = kInfinity;
      for (const PiperDegree& degree : instance_.degrees) {
        for (const Configuration& one : degree.options[op]) {
          least = std::min(least, degree.degree * one.seconds.value);
        }
      }
      return std::isinf(least) ? 0 : least;
    }));
    constexpr double kRounding = 1e-6;
    const double room = std::min(limit_ * (1 + kRounding), std::numeric_limits<double>::max()); // infinity times 0
    for (const double below : work) {
      int least = 0;
      while (least < devices_ && work.back() - below > room * least) {
        ++least;
      }
      int most = devices_;
      while (most > 0 && below > room * (devices_ - most)) {
        --most;
      }
      least_.push_back(least);
      most_devices_.push_back(most);
    }
  }

  // Cheap bounds first: kernels, memory that no choice can save, the fastest times.
  bool may_be_stage(int lower, int upper, std::size_t t) const {
    const int replicas = devices_ / instance_.degrees[t].degree;
    return lacking_[t][upper] == lacking_[t][lower] && least_[upper] <= most_devices_[upper] &&
           (bytes_[t][upper] - bytes_[t][lower]) * (1 - kTie) <= instance_.memory &&
           (seconds_[t][upper] - seconds_[t][lower]) / replicas <= limit_ * (1 + kTie) &&
           is_subset(states_.ideals.row(used_[lower]), states_.ideals.row(used_[upper]));
  }

  // A stage between two states, its devices, and how much `s` it adds.
  struct Candidate {
    int lower, upper, degree, replicas;
    int devices, step, first, last; ///< first, last: range of k
  };

  void add_stage(int lower, int upper, std::size_t t) {
    const int degree = instance_.degrees[t].degree;
    segment_.set(used_[lower], used_[upper], static_cast<int>(t));
    for (const int replicas : replicas_) {
      const int devices = replicas * degree;
      if (devices > devices_) {
        break;
      }
      const Candidate candidate{lower,
                                upper,
                                static_cast<int>(t),
                                replicas,
                                devices,
                                instance_.step(replicas),
                                std::max({devices, least_[lower], devices + least_[upper]}),
                                std::min(most_devices_[lower], devices + most_devices_[upper])};
      const double least = (seconds_[t][upper] - seconds_[t][lower]) / replicas;
      if (candidate.first <= candidate.last && least <= limit_ * (1 + kTie) &&
          segment_.fastest(replicas) * (1 - kTie) <= limit_) {
        add_candidate(candidate);
      }
    }
  }

  void add_candidate(const Candidate& one) {
    const double fastest = segment_.fastest(one.replicas);
    double held = -1;
    double load = -1; // not known yet
    for (int s = one.step; s <= most_; ++s) {
      if (const double now = instance_.held(s, one.replicas); now != held) {
        held = now;
        load = -1;
      }
      const double* const afters = &best_[cell(one.upper, 0, s - one.step)];
      double* const bests = &best_[cell(one.lower, 0, s)];
      const int ends = one.last + 1 - one.first;
      if (!any_better(fastest * (1 - kTie), afters + (one.first - one.devices), bests + one.first, ends)) {
        continue; // no improvement, whatever memory asks for
      }
      for (int k = one.first; k <= one.last; ++k) {
        const double after = afters[k - one.devices];
        double& best = bests[k];
        if (!improves(std::max(fastest * (1 - kTie), after), best)) {
          continue;
        }
        if (load < 0) {
          load = segment_.load(one.replicas, held);
        }
        if (std::isinf(load)) {
          return; // more in flight needs no less memory
        }
        if (load > limit_ * (1 + kTie)) {
          break;
        }
        if (const double value = std::max(load, after); improves(value, best)) {
          best = value;
          choice_[cell(one.lower, k, s)] = {one.upper, one.degree, one.replicas};
        }
      }
    }
  }

  // "At most": a solution with fewer devices or less in flight counts too.
  void spread(int lower) {
    for (int s = 0; s <= most_; ++s) {
      for (int k = 0; k <= devices_; ++k) {
        const auto take = [&](std::size_t other) {
          const std::size_t here = cell(lower, k, s);
          if (improves(best_[other], best_[here])) {
            best_[here] = best_[other];
            choice_[here] = choice_[other];
          }
        };
        if (k > 0) {
          take(cell(lower, k - 1, s));
        }
        if (s > 0) {
          take(cell(lower, k, s - 1));
        }
      }
    }
  }

  Solution trace() const {
    Solution found;
    for (int k = 1; k <= devices_; ++k) {
      for (int s = 1; s <= most_; ++s) {
        const double value = best_[cell(0, k, s)];
        if (improves(value, found.load)) {
          found.load = value;
          found.devices = k;
          found.s = s;
        }
      }
    }
    const int last = static_cast<int>(used_.size()) - 1;
    int k = found.devices;
    int s = found.s;
    for (int state = 0; state != last && found.load < kInfinity;) {
      const Choice& choice = choice_[cell(state, k, s)];
      found.states.push_back(used_[state]);
      found.choices.push_back({used_[choice.upper], choice.degree, choice.replicas});
      found.in_flight.push_back(s);
      k -= choice.replicas * instance_.degrees[choice.degree].degree;
      s -= instance_.step(choice.replicas);
      state = choice.upper;
    }
    return found;
  }

  const PiperInstance& instance_;
  const AntichainStates& states_;
  PiperSums& sums_;
  PiperSegment segment_;
  std::vector<int> used_; // states, from the empty one to the whole graph
  double limit_;
  std::vector<int> replicas_; // that a stage may have, ascending
  int devices_, most_ = 0;
  std::size_t width_ = 0;
  std::vector<double> best_;
  std::unique_ptr<Choice[]> choice_;                           // set where best_ is finite
  std::vector<std::vector<double>> seconds_, bytes_, lacking_; // [degree][used state]
  std::vector<int> least_, most_devices_;                      // [used state]
};

// Some prefixes of the topological order. They are nested, so a coarse plan can be made of them.
std::vector<int> coarse_states(const AntichainStates& states, int operators, int count) {
  std::vector<int> prefixes;
  for (int state = 0; state < states.count(); ++state) {
    const auto row = states.ideals.row(state);
    int size = 0;
    while (size < operators && has_bit(row, size)) {
      ++size;
    }
    bool prefix = true;
    for (int op = size; op < operators && prefix; ++op) {
      prefix = !has_bit(row, op);
    }
    if (prefix) {
      prefixes.push_back(state);
    }
  }
  const int last = static_cast<int>(prefixes.size()) - 1;
  std::vector<int> coarse;
  for (int i = 0; i <= std::min(count, last); ++i) {
    coarse.push_back(prefixes[static_cast<std::size_t>(i) * last / std::min(count, last)]);
  }
  return coarse;
}

// Searches over few states bound the search over all. Returns the solution with the least load, which is infinite if
// none is below `limit`.
Solution solve(PiperSums& sums, double limit) {
  const int operators = sums.instance().problem.model.size();
  for (const int count : {24, 96}) {
    const Solution coarse = Solver(sums, coarse_states(sums.states(), operators, count), limit).run();
    limit = std::min(limit, coarse.load);
  }
  std::vector<int> all(sums.states().count());
  std::iota(all.begin(), all.end(), 0);
  return Solver(sums, std::move(all), limit).run();
}

// The devices of each stage: groups of t within a node, the largest groups first, so that none is split between nodes.
std::vector<std::vector<DeviceId>> place(const PiperInstance& instance, const Solution& solution) {
  const Platform& platform = instance.problem.platform;
  std::map<int, std::vector<DeviceId>> free; // per node
  for (const DeviceId device : instance.devices) {
    free[platform.devices[device].node].push_back(device);
  }
  std::vector<std::size_t> order(solution.choices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto degree_of = [&](std::size_t stage) { return instance.degrees[solution.choices[stage].degree].degree; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return degree_of(a) > degree_of(b); });
  std::vector<std::vector<DeviceId>> placed(order.size());
  for (const std::size_t stage : order) {
    for (int replica = 0; replica < solution.choices[stage].replicas; ++replica) {
      const auto node = std::find_if(free.begin(), free.end(), [&](const auto& one) {
        return static_cast<int>(one.second.size()) >= degree_of(stage);
      });
      check(node != free.end(), "a tensor-parallel group finds no node");
      const auto end = node->second.begin() + degree_of(stage);
      placed[stage].insert(placed[stage].end(), node->second.begin(), end);
      node->second.erase(node->second.begin(), end);
    }
  }
  return placed;
}

Plan make_piper_plan(PiperSums& sums, const Solution& solution) {
  const PiperInstance& instance = sums.instance();
  Plan plan;
  const auto placed = place(instance, solution);
  PiperSegment segment(sums);
  for (std::size_t i = 0; i < solution.choices.size(); ++i) {
    const Choice& choice = solution.choices[i];
    segment.set(solution.states[i], choice.upper, choice.degree);
    PiperStage chosen = segment.stage(choice.replicas, instance.held(solution.in_flight[i], choice.replicas));
    plan.stages.push_back({.operators = segment.operators(),
                           .devices = placed[i],
                           .tensor_parallel = instance.degrees[choice.degree].degree,
                           .recompute = chosen.recompute,
                           .recomputed = std::move(chosen.recomputed)});
  }
  plan.objective = Objective{"max-load", Seconds{solution.load}};
  plan.memory_bound = true;
  return plan;
}

// As many states as the dynamic program can hold and pair.
int state_cap(const PlanRequest& request) {
  const auto n = static_cast<double>(request.devices.size());
  const double by_work = std::sqrt(2 * kMostWork / (n * n * 4 * (std::log2(n) + 1)));
  return static_cast<int>(std::min(
      {static_cast<double>(request.state_cap), static_cast<double>(kMostPiperStates), by_work, kMostCells / (n * n)}));
}

// Device types from fastest to slowest for the whole model; those that lack a kernel last.
std::vector<int> types_by_speed(const PlanRequest& request) {
  const Problem& problem = request.problem;
  std::vector<int> types;
  for (const DeviceId device : request.devices) {
    if (std::find(types.begin(), types.end(), problem.type_index(device)) == types.end()) {
      types.push_back(problem.type_index(device));
    }
  }
  std::stable_sort(types.begin(), types.end(),
                   [&](int a, int b) { return problem.prefix.seconds[a].back() < problem.prefix.seconds[b].back(); });
  return types;
}

std::string why_no_split_fits(const PlanRequest& request) {
  const AbleDevices able = able_devices(request);
  if (able.devices.empty()) {
    return able.lacks;
  }
  return "no split over " + std::to_string(request.devices.size()) +
         " devices fits into the memory that all of them have, recomputed or not; the largest has " +
         to_text(most_memory(request.problem.platform, able.devices));
}

// Whether each stage has room for its fastest options.
bool fits(PiperSums& sums, const Solution& solution) {
  PiperSegment segment(sums);
  for (std::size_t i = 0; i < solution.choices.size(); ++i) {
    const Choice& choice = solution.choices[i];
    segment.set(solution.states[i], choice.upper, choice.degree);
    const double held = sums.instance().held(solution.in_flight[i], choice.replicas);
    if (segment.load(choice.replicas, held) > segment.fastest(choice.replicas)) {
      return false;
    }
  }
  return true;
}

// An instance over the devices of some types, with its sums.
class PiperTables {
public:
  PiperTables(PiperInstance made, const AntichainStates& states)
      : instance_(std::move(made)), sums_(instance_, states) {}
  PiperTables(const PiperTables&) = delete;
  PiperTables& operator=(const PiperTables&) = delete;

  PiperSums& sums() { return sums_; }
  void set_in_flight(std::vector<double> in_flight) { instance_.in_flight = std::move(in_flight); }

  /// The solution with the least load, infinite if none is below `limit`. Memory only ever adds to the load of a stage,
  /// so one that is the best without a limit of memory, and fits, is the best with it. It is looked for when a second
  /// schedule asks.
  Solution best(double limit) {
    if (!std::exchange(asked_, true)) {
      return solve(sums_, limit);
    }
    if (limit > unlimited_below_) {
      const double memory = std::exchange(instance_.memory, kInfinity);
      unlimited_ = solve(sums_, limit);
      unlimited_below_ = limit;
      instance_.memory = memory;
    }
    return unlimited_.load >= limit || fits(sums_, unlimited_) ? unlimited_ : solve(sums_, limit);
  }

private:
  PiperInstance instance_;
  PiperSums sums_;
  bool asked_ = false;
  Solution unlimited_;          // the best below a limit, if memory had none
  double unlimited_below_ = -1; // that limit; none was asked for yet
};

// What schedules have in common.
struct PiperProblem {
  std::unique_ptr<const AntichainStates> states;
  std::vector<std::unique_ptr<PiperTables>> of_types; // [fastest types - 1], as far as they were asked for

  PiperTables& tables(std::size_t types, const PlanRequest& request, const std::vector<DeviceId>& devices) {
    if (of_types.size() < types) {
      of_types.push_back(std::make_unique<PiperTables>(piper_instance(request, devices), *states));
    } else {
      of_types[types - 1]->set_in_flight(piper_in_flight(request, static_cast<int>(devices.size())));
    }
    return *of_types[types - 1];
  }
};

} // namespace

PlanResult split_piper(const PlanRequest& request) {
  const int cap = state_cap(request);
  if (cap < 2) {
    return Infeasible{std::to_string(request.devices.size()) +
                      " devices are too many for the dynamic program; allowed: fewer devices"};
  }
  const auto problem = kept_for<PiperProblem>(request, [&] {
    return PiperProblem{std::make_unique<const AntichainStates>(antichain_states(request.problem.model, cap)), {}};
  });
  const AntichainStates& states = *problem->states;
  if (states.count() > 2 * cap && states.count() > kMostPiperStates) {
    return Infeasible{std::to_string(states.count()) + " states on " + std::to_string(request.devices.size()) +
                      " devices are too many for the dynamic program; allowed: fewer devices, or a coarser model"};
  }
  const std::vector<int> types = types_by_speed(request);
  PlanResult best = Infeasible{""};
  double least = kInfinity;
  for (std::size_t count = 1; count <= types.size(); ++count) {
    std::vector<DeviceId> devices;
    for (const DeviceId device : request.devices) {
      const auto at = std::find(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(count),
                                request.problem.type_index(device));
      if (at != types.begin() + static_cast<std::ptrdiff_t>(count)) {
        devices.push_back(device);
      }
    }
    PiperTables& tables = problem->tables(count, request, devices);
    PiperSums& sums = tables.sums();
    const Solution solution = tables.best(least);
    if (improves(solution.load, least)) {
      least = solution.load;
      Plan plan = make_piper_plan(sums, solution);
      plan.note = note_of(states, cap);
      if (types.size() > 1) {
        plan.note += std::string(plan.note.empty() ? "" : "; ") + "planned as if the " +
                     std::to_string(devices.size()) + " devices of " + std::to_string(count) + " of " +
                     std::to_string(types.size()) + " types were all like the slowest, with the least memory";
      }
      best = std::move(plan);
    }
    sums.forget_swaps();
  }
  return std::isinf(least) ? PlanResult{Infeasible{why_no_split_fits(request)}} : best;
}

} // namespace stagecraft
