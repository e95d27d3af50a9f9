// Piper (Tarnawski et al. 2021): data, tensor and pipeline parallelism with recompute, by dynamic programming over
// ideals, devices and what is in flight. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "sim/plan/piper_costs.hpp"

namespace stagecraft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTie = 1e-9;
constexpr int kMostStates = 1500;
constexpr double kMostWork = 1e10; // pairs of states x devices x stages x degrees
constexpr double kMostCells = 2e7; // of the table

// One stage of the answer: operators between two states, and how they run.
struct Choice {
  int upper = -1; // state after the stage
  std::int32_t degree = 0, replicas = 0;
};

struct Solution {
  double load = kNever;
  int devices = 0, s = 0;
  std::vector<int> states; // of the stages' lower ends
  std::vector<Choice> choices;
  std::vector<int> in_flight; // s of each stage
};

// dp[state][k][s]: the least largest load of what lies above a state, on at most k devices and with at most s in flight
// at its first stage. States are closed under predecessors, so a stage stands in front of what its upper state leaves.
class Solver {
public:
  Solver(const PiperInstance& instance, const AntichainStates& states, std::vector<int> used, double limit)
      : instance_(instance), states_(states), used_(std::move(used)), limit_(limit),
        devices_(static_cast<int>(instance.devices.size())) {
    most_ = instance.given ? std::min(instance.problem.micro_batches, devices_) : devices_;
    width_ = static_cast<std::size_t>(devices_ + 1) * (most_ + 1);
    best_.assign(used_.size() * width_, kNever);
    choice_.resize(used_.size() * width_);
    std::fill_n(best_.begin() + static_cast<std::ptrdiff_t>((used_.size() - 1) * width_), width_, 0.0);
    sum_up();
  }

  Solution run() {
    for (int lower = static_cast<int>(used_.size()) - 2; lower >= 0; --lower) {
      for (int upper = lower + 1; upper < static_cast<int>(used_.size()); ++upper) {
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
    return state * width_ + static_cast<std::size_t>(k) * (most_ + 1) + s;
  }

  // Per state and degree, over its ideal: least times, least memory, operators that cannot run.
  void sum_up() {
    for (const PiperDegree& degree : instance_.degrees) {
      auto& seconds = seconds_.emplace_back();
      auto& bytes = bytes_.emplace_back();
      auto& lacking = lacking_.emplace_back();
      for (const int state : used_) {
        double time = 0;
        double memory = 0;
        int missing = 0;
        for (OperatorId op = 0; op < instance_.problem.model.size(); ++op) {
          if (!has_bit(states_.ideals.row(state), op)) {
            continue;
          }
          double least_time = kNever;
          double least_memory = kNever;
          for (const Configuration& one : degree.options[op]) {
            least_time = std::min(least_time, one.seconds.value);
            least_memory = std::min(least_memory, one.resident.value);
          }
          missing += degree.options[op].empty() ? 1 : 0;
          time += degree.options[op].empty() ? 0 : least_time;
          memory += degree.options[op].empty() ? 0 : least_memory;
        }
        seconds.push_back(time);
        bytes.push_back(memory);
        lacking.push_back(missing);
      }
    }
  }

  // Cheap bounds first: kernels, memory that no choice can save, the fastest times.
  bool may_be_stage(int lower, int upper, std::size_t t) const {
    const int replicas = devices_ / instance_.degrees[t].degree;
    return lacking_[t][upper] == lacking_[t][lower] &&
           (bytes_[t][upper] - bytes_[t][lower]) * (1 - kTie) <= instance_.memory &&
           (seconds_[t][upper] - seconds_[t][lower]) / replicas <= limit_ * (1 + kTie) &&
           is_subset(states_.ideals.row(used_[lower]), states_.ideals.row(used_[upper]));
  }

  std::vector<OperatorId> operators_between(int lower, int upper) const {
    std::vector<OperatorId> operators;
    for (OperatorId op = 0; op < instance_.problem.model.size(); ++op) {
      if (has_bit(states_.ideals.row(used_[upper]), op) && !has_bit(states_.ideals.row(used_[lower]), op)) {
        operators.push_back(op);
      }
    }
    return operators;
  }

  void add_stage(int lower, int upper, std::size_t t) {
    const int degree = instance_.degrees[t].degree;
    PiperSegment segment(instance_, instance_.degrees[t], operators_between(lower, upper));
    for (int replicas = 1; replicas * degree <= devices_; ++replicas) {
      const double least = (seconds_[t][upper] - seconds_[t][lower]) / replicas;
      if (!instance_.allows_replicas(replicas) || least > limit_ * (1 + kTie)) {
        continue;
      }
      const int step = instance_.step(replicas);
      double held = -1;
      double load = kNever;
      for (int s = step; s <= most_; ++s) {
        if (const double now = instance_.held(s, replicas); now != held) {
          held = now;
          load = segment.load(replicas, held);
        }
        if (std::isinf(load)) {
          break; // more in flight needs no less memory
        }
        if (load > limit_ * (1 + kTie)) {
          continue;
        }
        for (int k = replicas * degree; k <= devices_; ++k) {
          const double value = std::max(load, best_[cell(upper, k - replicas * degree, s - step)]);
          double& best = best_[cell(lower, k, s)];
          if (value < best * (1 - kTie) || (std::isinf(best) && value < kNever)) {
            best = value;
            choice_[cell(lower, k, s)] = {upper, static_cast<std::int32_t>(t), replicas};
          }
        }
      }
    }
  }

  // "At most": fewer devices or less in flight serve too.
  void spread(int lower) {
    for (int k = 0; k <= devices_; ++k) {
      for (int s = 0; s <= most_; ++s) {
        const auto take = [&](std::size_t other) {
          const std::size_t here = cell(lower, k, s);
          if (best_[other] < best_[here] * (1 - kTie) || (std::isinf(best_[here]) && best_[other] < kNever)) {
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
        if (value < found.load * (1 - kTie) || (std::isinf(found.load) && value < kNever)) {
          found.load = value;
          found.devices = k;
          found.s = s;
        }
      }
    }
    const int last = static_cast<int>(used_.size()) - 1;
    int k = found.devices;
    int s = found.s;
    for (int state = 0; state != last && found.load < kNever;) {
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
  std::vector<int> used_; // states, from the empty one to the whole graph
  double limit_;          // loads above it are of no use
  int devices_, most_ = 0;
  std::size_t width_ = 0;
  std::vector<double> best_;
  std::vector<Choice> choice_;
  std::vector<std::vector<double>> seconds_, bytes_; // [degree][used state]
  std::vector<std::vector<int>> lacking_;
};

// Some of the prefixes of the topological order: they are nested, so a coarse plan can be made of them.
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

// The first plan bounds the second, which looks at every state: the result is the least load over all of them.
Solution solve(const PiperInstance& instance, const AntichainStates& states) {
  constexpr int kCoarse = 24;
  const int operators = instance.problem.model.size();
  const Solution coarse = Solver(instance, states, coarse_states(states, operators, kCoarse), kNever).run();
  std::vector<int> all(states.count());
  std::iota(all.begin(), all.end(), 0);
  return Solver(instance, states, std::move(all), coarse.load).run();
}

// The devices of each stage: groups of t within a node, the largest groups first, so that none is torn.
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

Plan make_piper_plan(const PiperInstance& instance, const AntichainStates& states, const Solution& solution) {
  Plan plan;
  const auto placed = place(instance, solution);
  for (std::size_t i = 0; i < solution.choices.size(); ++i) {
    const Choice& choice = solution.choices[i];
    Stage stage;
    for (OperatorId op = 0; op < instance.problem.model.size(); ++op) {
      if (has_bit(states.ideals.row(choice.upper), op) && !has_bit(states.ideals.row(solution.states[i]), op)) {
        stage.operators.push_back(op);
      }
    }
    const PiperDegree& degree = instance.degrees[choice.degree];
    PiperStage chosen = PiperSegment(instance, degree, stage.operators)
                            .stage(choice.replicas, instance.held(solution.in_flight[i], choice.replicas));
    stage.devices = placed[i];
    stage.tensor_parallel = degree.degree;
    stage.recompute = chosen.recompute;
    stage.recomputed = std::move(chosen.recomputed);
    plan.stages.push_back(std::move(stage));
  }
  plan.objective = Objective{"max-load", Seconds{solution.load}};
  plan.memory_bound = true;
  return plan;
}

// As many states as the dynamic program can hold and pair.
int state_cap(const PlanRequest& request) {
  const double n = static_cast<double>(request.devices.size());
  const double by_work = std::sqrt(2 * kMostWork / (n * n * 4 * (std::log2(n) + 1)));
  return static_cast<int>(std::min(
      {static_cast<double>(request.state_cap), static_cast<double>(kMostStates), by_work, kMostCells / (n * n)}));
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

std::string why_none(const PlanRequest& request) {
  const Problem& problem = request.problem;
  std::vector<OperatorId> all(problem.model.size());
  std::iota(all.begin(), all.end(), 0);
  Bytes most;
  std::string lacks;
  for (const int type : types_by_speed(request)) {
    const std::string here = missing_kernel(problem, type, all);
    lacks = lacks.empty() ? here : lacks;
    if (here.empty()) {
      most = std::max(most, problem.platform.types[type].memory);
    }
  }
  if (most.value == 0 && !lacks.empty()) {
    return lacks;
  }
  return "no split over " + std::to_string(request.devices.size()) +
         " devices fits into the memory that all of them have, recomputed or not; the largest has " + to_text(most);
}

} // namespace

PlanResult split_piper(const PlanRequest& request) {
  const int cap = state_cap(request);
  if (cap < 2) {
    return Infeasible{std::to_string(request.devices.size()) +
                      " devices are too many for the dynamic program; allowed: fewer devices"};
  }
  const AntichainStates states = antichain_states(request.problem.model, cap);
  if (states.count() > 2 * cap && states.count() > kMostStates) {
    return Infeasible{std::to_string(states.count()) + " states on " + std::to_string(request.devices.size()) +
                      " devices are too many for the dynamic program; allowed: fewer devices, or a coarser model"};
  }
  const std::vector<int> types = types_by_speed(request);
  PlanResult best = Infeasible{""};
  double least = kNever;
  for (std::size_t count = 1; count <= types.size(); ++count) {
    std::vector<DeviceId> devices;
    for (const DeviceId device : request.devices) {
      const auto at = std::find(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(count),
                                request.problem.type_index(device));
      if (at != types.begin() + static_cast<std::ptrdiff_t>(count)) {
        devices.push_back(device);
      }
    }
    const PiperInstance instance = piper_instance(request, devices);
    const Solution solution = solve(instance, states);
    if (solution.load < least * (1 - kTie) || (std::isinf(least) && solution.load < kNever)) {
      least = solution.load;
      Plan plan = make_piper_plan(instance, states, solution);
      plan.note = note_of(states, cap);
      if (types.size() > 1) {
        plan.note += std::string(plan.note.empty() ? "" : "; ") + "planned as if the " +
                     std::to_string(devices.size()) + " devices of " + std::to_string(count) + " of " +
                     std::to_string(types.size()) + " types were all like the slowest, with the least memory";
      }
      best = std::move(plan);
    }
  }
  return std::isinf(least) ? PlanResult{Infeasible{why_none(request)}} : best;
}

} // namespace stagecraft
