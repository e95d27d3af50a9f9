// PipeDream (Narayanan et al. 2019): stages with replicas, over the devices of a node and over nodes. Its optimiser
// assumes equal workers; docs/model.md says what is assumed on other clusters.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/strategy/dynamic_programming/pipedream_levels.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostLevelDevices = 256;
constexpr int kMostStatesOfLevels = 1000; // every pair of states is planned for within a node

using Unit = std::vector<DeviceId>;

// Groups of devices of one size, each within a node. The size is the greatest common divisor of the nodes' device
// counts.
std::vector<Unit> equal_units(const Problem& problem, const std::vector<DeviceId>& devices) {
  std::map<int, std::size_t> of_node;
  std::vector<Unit> nodes;
  for (const DeviceId device : devices) {
    const auto [slot, is_new] = of_node.try_emplace(problem.platform.devices[device].node, nodes.size());
    if (is_new) {
      nodes.emplace_back();
    }
    nodes[slot->second].push_back(device);
  }
  std::size_t size = 0;
  for (const Unit& node : nodes) {
    size = std::gcd(size, node.size());
  }
  std::vector<Unit> units;
  for (const Unit& node : nodes) {
    for (std::size_t at = 0; at < node.size(); at += size) {
      units.emplace_back(node.begin() + static_cast<std::ptrdiff_t>(at),
                         node.begin() + static_cast<std::ptrdiff_t>(at + size));
    }
  }
  return units;
}

// Bandwidth of the slowest path within a unit, or between units.
BytesPerSecond slowest(const Problem& problem, const std::vector<Unit>& units, bool within) {
  double seconds_per_byte = 0;
  for (const Unit& a : units) {
    for (const Unit& b : units) {
      for (std::size_t i = 0; i < a.size() && (&a == &b) == within; ++i) {
        for (const DeviceId other : b) {
          if (a[i] != other) {
            seconds_per_byte = std::max(seconds_per_byte, problem.path(a[i], other).seconds_per_byte);
          }
        }
      }
    }
  }
  return BytesPerSecond{1 / seconds_per_byte};
}

// The devices as PipeDream sees them: equal units on one level or two.
struct Hierarchy {
  std::vector<Unit> units; ///< units of the outermost level
  std::vector<Level> levels;
  std::string note;
};

Hierarchy make_hierarchy(const Problem& problem, const std::vector<DeviceId>& devices) {
  Hierarchy found{equal_units(problem, devices), {}, ""};
  const int most = problem.divisible_at_will ? static_cast<int>(devices.size())
                                             : static_cast<int>(std::min(std::floor(problem.samples), 1e9));
  const int size = static_cast<int>(found.units.front().size());
  std::map<int, int> count;
  for (const DeviceId device : devices) {
    ++count[problem.platform.devices[device].node];
  }
  if (std::any_of(count.begin(), count.end(), [&](const auto& node) { return node.second != count.begin()->second; })) {
    found.note = "nodes differ in size: planned as " + std::to_string(found.units.size()) + " equal groups of " +
                 std::to_string(size);
  }
  if (size == 1 || found.units.size() == 1) {
    found.units.clear();
    for (const DeviceId device : devices) {
      found.units.push_back({device});
    }
  } else {
    found.levels.push_back({size, slowest(problem, found.units, true), most});
  }
  const int most_units = found.levels.empty() ? most : std::max(1, most / std::min(most, size));
  found.levels.push_back({static_cast<int>(found.units.size()), slowest(problem, found.units, false), most_units});
  return found;
}

// Figures for one micro-batch, with the times of a device of mean speed.
OperatorFigures figures_of(const Problem& problem, const std::vector<DeviceId>& devices) {
  std::vector<double> count(problem.platform.types.size(), 0.0);
  for (const DeviceId device : devices) {
    count[problem.type_index(device)] += 1;
  }
  OperatorFigures figures;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    double speed = 0;
    for (std::size_t type = 0; type < count.size(); ++type) {
      speed += count[type] > 0 ? count[type] / problem.seconds(static_cast<int>(type), op) : 0;
    }
    figures.seconds.push_back(static_cast<double>(devices.size()) / speed);
    figures.parameter_bytes.push_back(problem.model.operators[op].parameters *
                                      parameter_bytes(problem.training).gradient);
    figures.output_bytes.push_back(problem.output_bytes(op).value);
  }
  return figures;
}

enum class Memory { ignored, after_in_unit, after_anywhere };

// Holds the input of the search, which is tried with several options and under several schedules.
class Planner {
public:
  // `devices` are those of the request that have all kernels.
  Planner(const PlanRequest& request, std::vector<DeviceId> devices)
      : problem_(request.problem), devices_(std::move(devices)), left_out_(devices_.size() < request.devices.size()),
        hierarchy_(make_hierarchy(problem_, devices_)),
        cap_(hierarchy_.levels.size() > 1 ? std::min(request.state_cap, kMostStatesOfLevels) : request.state_cap),
        states_(pipedream_states(problem_.model, cap_)),
        sums_(level_states(problem_.model, states_, figures_of(problem_, devices_))) {
    least_memory_ = problem_.platform.type_of(devices_.front()).memory;
    for (const DeviceId device : devices_) {
      least_memory_ = std::min(least_memory_, problem_.platform.type_of(device).memory);
    }
    stash_.assign(states_.count(), {});
    resident_bytes_.assign(states_.count(), 0.0);
    indivisible_.assign(states_.count(), 0);
    for (int state = 0; state < states_.count(); ++state) {
      const bool more = continues(states_.ideals, state);
      if (more) {
        stash_[state] = stash_[state - 1];
        resident_bytes_[state] = resident_bytes_[state - 1];
        indivisible_[state] = indivisible_[state - 1];
      }
      for_each_added(states_.ideals, state, more, [&](OperatorId op) {
        stash_[state] += problem_.stash(op);
        resident_bytes_[state] += problem_.model.operators[op].resident_bytes;
        indivisible_[state] += problem_.model.operators[op].divisible ? 0 : 1;
      });
    }
  }

  // From now on plans are for this request's schedule.
  void plan_for(const PlanRequest& request) {
    in_flight_.clear();
    for (int after = 0; after < static_cast<int>(devices_.size()); ++after) {
      in_flight_.push_back(request.in_flight(0, 1 + after));
    }
    versions_ = request.versions;
  }

  // The plan wherever memory ends, which is the same for all schedules.
  const std::optional<Plan>& unbound_plan(bool fewer_units) {
    std::optional<std::optional<Plan>>& known = unbound_[fewer_units ? 1 : 0];
    if (!known) {
      known = plan(Memory::ignored, fewer_units);
    }
    return *known;
  }

  std::optional<Plan> plan(Memory memory, bool fewer_units) const {
    LevelOptions options{.fewer_units = fewer_units};
    options.fits = [&](const StageCandidate& stage) { return can_be(stage, memory); };
    if (memory != Memory::ignored) {
      options.memory = least_needs(memory);
    }
    const auto found = pipedream_plan(sums_, hierarchy_.levels, options);
    if (!found) {
      return std::nullopt;
    }
    Plan plan{.objective = Objective{"stage time", Seconds{found->stage_seconds}},
              .note = note(fewer_units),
              .memory_bound = memory != Memory::ignored};
    place(found->stages, hierarchy_.units, plan);
    return plan;
  }

private:
  // Whether a stage is possible: it is not replicated or all its operators are divisible, and it fits in memory. The
  // count in flight is the schedule's at the first stage if each device from this one on has a stage. While a unit is
  // planned, only the number of the other units is known.
  bool can_be(const StageCandidate& stage, Memory memory) const {
    if (stage.replicas > 1 && indivisible_[stage.to] > indivisible_[stage.from]) {
      return false;
    }
    if (memory == Memory::ignored || stage.level > 0) {
      return true;
    }
    const double share = 1.0 / stage.replicas;
    const double parameters = (sums_.parameter_bytes[stage.to] - sums_.parameter_bytes[stage.from]) /
                              parameter_bytes(problem_.training).gradient;
    const Activations stash = (stash_[stage.to] - stash_[stage.from]) * share;
    const Bytes incoming = stage.from == 0 ? problem_.input_bytes() : Bytes{sums_.output_bytes[stage.from]};
    const Bytes resident{resident_bytes_[stage.to] - resident_bytes_[stage.from]};
    const StageMemory need = memory_of_stage(
        problem_, {parameters, resident, stash, incoming * share, Bytes{sums_.output_bytes[stage.to]} * share},
        problem_.training.recompute.what);
    return need.total(held(stage.after, memory), versions_) <= least_memory_;
  }

  // Micro-batches in flight at a stage with `after` units of its own group after it.
  double held(int after, Memory memory) const {
    const bool anywhere = memory == Memory::after_anywhere && hierarchy_.levels.size() > 1;
    return in_flight_[after + (anywhere ? (hierarchy_.levels[1].units - 1) * hierarchy_.levels[0].units : 0)];
  }

  // The memory that can_be() asks for, without what crosses the borders.
  LevelMemory least_needs(Memory memory) const {
    const bool full = problem_.training.recompute.what == Recompute::full; // R restores one micro-batch at a time
    LevelMemory needs{.capacity = least_memory_.value};
    for (int state = 0; state < states_.count(); ++state) {
      needs.per_micro_batch.push_back((full ? stash_[state].again : stash_[state].held).value);
      const double parameters = sums_.parameter_bytes[state] / parameter_bytes(problem_.training).gradient;
      needs.fixed.push_back(memory_of_stage(problem_, {parameters, Bytes{resident_bytes_[state]}, {}, {}, {}},
                                            problem_.training.recompute.what)
                                .fixed(versions_)
                                .value);
    }
    for (int after = 0; after < hierarchy_.levels[0].units; ++after) {
      needs.held.push_back(full ? 1 : held(after, memory));
    }
    return needs;
  }

  std::string note(bool fewer_units) const {
    std::string text = note_of(states_, cap_);
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
    const bool mixed = std::any_of(devices_.begin(), devices_.end(), [&](DeviceId device) {
      return problem_.type_index(device) != problem_.type_index(devices_.front());
    });
    if (!hierarchy_.note.empty()) {
      add(hierarchy_.note);
    }
    if (mixed) {
      add("planned for equal devices of the mean speed, then the stages with most work on the fastest");
    }
    if (left_out_) {
      add("left out devices that lack kernels");
    }
    if (fewer_units) {
      add("not every device can have a stage");
    }
    return text;
  }

  double speed(const Unit& unit) const {
    double sum = 0;
    for (const DeviceId device : unit) {
      sum += 1 / std::max(problem_.prefix.seconds[problem_.type_index(device)].back(), 1e-300);
    }
    return sum;
  }

  // Which units run which stage: stages with most work per unit get the fastest units; among equally fast units stages
  // follow each other as in the plan.
  std::vector<std::vector<Unit>> share_out(const std::vector<LevelStage>& stages,
                                           const std::vector<Unit>& units) const {
    struct Slot {
      std::size_t stage;
      double work, speed;
    };
    std::vector<Slot> slots;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const double work = (sums_.seconds[stages[s].to] - sums_.seconds[stages[s].from]) / stages[s].replicas;
      slots.insert(slots.end(), stages[s].replicas, {s, work, 0});
    }
    std::vector<double> fastest;
    for (const Unit& unit : units) {
      fastest.push_back(speed(unit));
    }
    std::sort(fastest.begin(), fastest.end(), std::greater<>());
    std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.work > b.work; });
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].speed = fastest[i];
    }
    std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.stage < b.stage; });
    std::vector<std::size_t> stage_of(units.size(), stages.size()); // or none
    for (const Slot& slot : slots) {
      std::size_t unit = 0;
      while (stage_of[unit] < stages.size() || speed(units[unit]) != slot.speed) {
        ++unit;
      }
      stage_of[unit] = slot.stage;
    }
    std::vector<std::vector<Unit>> of_stage(stages.size());
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      if (stage_of[unit] < stages.size()) {
        of_stage[stage_of[unit]].push_back(units[unit]);
      }
    }
    return of_stage;
  }

  void place(const std::vector<LevelStage>& stages, const std::vector<Unit>& units, Plan& plan) const {
    const auto units_of = share_out(stages, units);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (stages[s].inner.empty()) {
        Unit devices;
        for (const Unit& unit : units_of[s]) {
          devices.push_back(unit.front());
        }
        add_stage(stages[s], devices, plan);
        continue;
      }
      std::vector<Unit> devices(stages[s].inner.size()); // devices of each inner stage, unit after unit
      for (const Unit& unit : units_of[s]) {
        std::vector<Unit> single;
        for (const DeviceId device : unit) {
          single.push_back({device});
        }
        const auto within = share_out(stages[s].inner, single);
        for (std::size_t inner = 0; inner < within.size(); ++inner) {
          for (const Unit& device : within[inner]) {
            devices[inner].push_back(device.front());
          }
        }
      }
      for (std::size_t inner = 0; inner < devices.size(); ++inner) {
        add_stage(stages[s].inner[inner], devices[inner], plan);
      }
    }
  }

  void add_stage(const LevelStage& stage, const Unit& devices, Plan& plan) const {
    std::vector<OperatorId> operators;
    for (OperatorId op = 0; op < problem_.model.size(); ++op) {
      if (has_bit(states_.ideals.row(stage.to), op) && !has_bit(states_.ideals.row(stage.from), op)) {
        operators.push_back(op);
      }
    }
    plan.stages.push_back(make_replicated_stage(problem_, std::move(operators), devices));
  }

  const Problem& problem_;
  std::vector<DeviceId> devices_;
  bool left_out_; // of the request's devices some
  Hierarchy hierarchy_;
  int cap_;
  AntichainStates states_;
  LevelStates sums_;
  std::vector<Activations> stash_;     // [state]
  std::vector<double> resident_bytes_; // [state]
  std::vector<int> indivisible_;       // [state]
  std::vector<double> in_flight_;      // [number of stages after it]: at the first stage, under the schedule
  int versions_ = 1;                   // of the weights, under the schedule
  std::array<std::optional<std::optional<Plan>>, 2> unbound_; // [fewer units], once asked for
  Bytes least_memory_;
};

} // namespace

PlanResult split_pipedream(const PlanRequest& request) {
  const Problem& problem = request.problem;
  if (request.devices.size() > kMostLevelDevices) {
    return Infeasible{std::to_string(request.devices.size()) +
                      " devices are too many for the dynamic program; allowed: at most " +
                      std::to_string(kMostLevelDevices)};
  }
  const AbleDevices able = able_devices(request);
  if (able.devices.empty()) {
    return Infeasible{able.lacks};
  }
  const auto planner = kept_for<Planner>(request, [&] { return Planner(request, able.devices); });
  planner->plan_for(request);
  const bool fewer = !planner->unbound_plan(false);
  const std::optional<Plan>& first = planner->unbound_plan(fewer);
  for (const Memory memory : {Memory::ignored, Memory::after_in_unit, Memory::after_anywhere}) {
    const auto plan = memory == Memory::ignored ? first : planner->plan(memory, fewer);
    if (plan && !plan_shortage(problem, *plan, 1, request.in_flight, request.versions)) {
      return *plan;
    }
  }
  return *first;
}

} // namespace stagecraft
