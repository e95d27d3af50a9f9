// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <type_traits>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/strategy/dynamic_programming/stage_borders.hpp"

namespace stagecraft {
namespace {

constexpr double kClearly = 1 + 1e-6; // times a value: more by far more than ties decide

// A[node][state]: the least bottleneck of a pipeline that covers the state's ideal and whose last stage is the node's.
class IdealPipelineSearch {
public:
  IdealPipelineSearch(const PlanRequest& request, const AntichainStates& states, const StateCosts& costs,
                      const DeviceChoices& choices)
      : request_(request), ideals_(states.ideals), borders_(request.problem, states.ideals), costs_(costs),
        choices_(choices), states_(costs.parameters.size()), has_type_(request.problem.platform.types.size(), 0) {
    measure_work();
  }

  // The pipeline with the least bottleneck that is at most `at_most`: with `total` stages that fit in memory, or, if
  // `total` is 0, with any number of stages up to `most_stages` and no memory limit.
  std::optional<IdealPipeline> run(int total, int exact_stages, double at_most,
                                   int most_stages = std::numeric_limits<int>::max()) {
    total_ = total;
    most_stages_ = total > 0 ? total : std::min(most_stages, choices_.most_stages);
    constexpr double kMost = std::numeric_limits<double>::max(); // finite: it is multiplied by 0
    constexpr double kLeast = std::numeric_limits<double>::min();
    best_ = std::min(at_most * (1 + kTie) + kLeast, kMost); // values below it count, 0 among them
    best_node_ = -1;
    measure_memory();
    reached_.assign(choices_.nodes.size(), {});
    if (value_ == nullptr) { // most of it may never be touched
      value_ = std::make_unique_for_overwrite<double[]>(choices_.nodes.size() * states_);
      from_ = std::make_unique_for_overwrite<From[]>(choices_.nodes.size() * states_);
    }
    least_on_.clear();
    row_of(0)[0] = 0;
    reached_[0] = {0, 0};
    for (std::size_t node = 0; node < choices_.nodes.size(); ++node) {
      const DeviceChoices::Node& here = choices_.nodes[node];
      if (here.stages >= most_stages_ || is_least(best_)) {
        break;
      }
      if (reached_[node].first > reached_[node].last) {
        continue;
      }
      if (total == 0 && exact_stages == 0 && node > 0 && choices_.in_order) {
        drop_longer(static_cast<int>(node));
      }
      for (const DeviceChoices::Next& next : here.next) {
        const bool may_end =
            (total == 0 || here.stages + 1 == total) && (exact_stages == 0 || here.stages + 1 == exact_stages);
        relax(static_cast<int>(node), next, may_end);
        if (is_least(best_)) {
          break;
        }
      }
    }
    if (best_node_ < 0) {
      return std::nullopt;
    }
    return trace();
  }

  // Whether no pipeline has a smaller bottleneck, because some operator takes as long on any device. Differences of
  // sums over longer stages are no smaller, also when rounded.
  bool is_least(double bottleneck) const { return bottleneck <= longest_operator_; }

private:
  struct From {
    int node, state;
  };
  // The states of a node that have a value lie between these; none at first.
  struct Range {
    int first = std::numeric_limits<int>::max(), last = -1;
  };
  // Of the stage at one place: upto's difference between two states is the memory of a stage between them, without its
  // borders. after: the least of upto from a state on. left_bytes: the least memory of all stages after a state.
  struct Place {
    double held = 0;   // micro-batches in flight
    double border = 0; // memory for each byte that comes in
    std::vector<double> upto, after, left_bytes;
  };

  // left_[state]: the least weighted work outside the state's ideal, sum_v min over types of speed * time. A pipeline
  // with stages of at most `best` seconds can do no more than best * speed of the devices left.
  // least_after_[type][state]: the least time of any state from there on; states grow, so it ends the inner loop early.
  void measure_work() {
    const Problem& problem = request_.problem;
    left_.assign(states_, 0.0);
    for (std::size_t state = 0; state < states_; ++state) {
      left_[state] = costs_.weighted.back() - costs_.weighted[state];
    }
    is_chain_ = 2 * costs_.pairs == states_ * (states_ - 1) && std::is_sorted(left_.rbegin(), left_.rend());
    for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
      std::vector<double> least = costs_.seconds[type];
      for (std::size_t state = states_ - 1; state > 0; --state) {
        least[state - 1] = std::min(least[state - 1], least[state]);
      }
      least_after_.push_back(std::move(least));
    }
    for (std::size_t node = 1; node < choices_.nodes.size(); ++node) {
      const int type = problem.type_index(choices_.nodes[node].device);
      fastest_ = std::max(fastest_, costs_.seconds[type].back() > 0 ? 1 / costs_.seconds[type].back() : 0);
      has_type_[type] = 1;
    }
    for (std::size_t state = 1; state < states_ && is_chain_; ++state) {
      double least = kInfinity;
      for (std::size_t type = 0; type < has_type_.size(); ++type) {
        const auto& seconds = costs_.seconds[type];
        least = has_type_[type] != 0 ? std::min(least, seconds[state] - seconds[state - 1]) : least;
      }
      longest_operator_ = std::max(longest_operator_, least);
      double made = 0;
      for_each_added(ideals_, static_cast<int>(state), true,
                     [&](OperatorId op) { made += problem.output_bytes(op).value; });
      most_more_.push_back(std::max(made, costs_.cut_bytes[state] - costs_.cut_bytes[state - 1]));
    }
  }

  // Of the devices that may still follow, as many as the pipeline may have, in whole models per second.
  double speed_left(const DeviceChoices::Node& node) const {
    const double rounding = kTie * choices_.nodes.front().speed_left;
    return std::min(node.speed_left, (most_stages_ - node.stages) * fastest_) + rounding;
  }

  // Without a memory limit there is one place, where everything is 0.
  void measure_memory() {
    places_.assign(std::max(1, total_), {});
    for (int stage = 0; stage < total_; ++stage) {
      places_[stage].held = request_.in_flight(stage, total_);
    }
    const Bytes per_parameter =
        memory_of_stage(request_.problem, {.parameters = 1}, Recompute::none).fixed(request_.versions);
    double held_later = kInfinity;
    for (int stage = std::max(1, total_); stage-- > 0;) {
      Place& place = places_[stage];
      place.upto.assign(states_, 0.0);
      place.left_bytes.assign(states_, 0.0);
      held_later = std::min(held_later, place.held);
      place.border = memory_of_stage(request_.problem, {.incoming = Bytes{1}}, request_.problem.training.recompute.what)
                         .total(place.held, request_.versions)
                         .value;
      for (std::size_t j = 0; j < states_ && total_ > 0; ++j) {
        place.upto[j] = costs_.parameters[j] * per_parameter.value + costs_.resident_bytes[j] +
                        costs_.stash[j].total(place.held).value;
        place.left_bytes[j] = (costs_.parameters.back() - costs_.parameters[j]) * per_parameter.value +
                              costs_.resident_bytes.back() - costs_.resident_bytes[j] +
                              (costs_.stash.back() - costs_.stash[j]).total(held_later).value;
      }
      place.after = place.upto;
      for (std::size_t j = states_ - 1; j > 0; --j) {
        place.after[j - 1] = std::min(place.after[j - 1], place.after[j]);
      }
    }
  }

  // The values of a node, all infinite as long as no state of it has one.
  double* row_of(int node) {
    double* const row = value_.get() + static_cast<std::size_t>(node) * states_;
    if (reached_[node].last < 0) {
      std::fill_n(row, states_, kInfinity);
    }
    return row;
  }

  // Drops the states of a node that another one with the same last device and fewer stages does as well, where any
  // number of stages will do: what follows may as well follow that one, in a pipeline that is found before. No
  // difference counts below what every pipeline takes.
  void drop_longer(int node) {
    std::vector<double>& least = least_on_[choices_.nodes[node].device];
    least.resize(states_, kInfinity);
    double* const here = value_.get() + static_cast<std::size_t>(node) * states_;
    for (int state = reached_[node].first; state <= reached_[node].last; ++state) {
      const bool as_well = least[state] <= std::max(here[state], longest_operator_);
      (as_well ? here : least.data())[state] = as_well ? kInfinity : here[state];
    }
  }

  // The first state after which the devices left can do the work that is left, in a chain of states.
  int first_state(double best, double slack) const {
    const auto at = std::partition_point(left_.begin(), left_.end(), [&](double left) { return left > best * slack; });
    return is_chain_ ? static_cast<int>(at - left_.begin()) : 0;
  }

  void relax(int node, const DeviceChoices::Next& next, bool may_end) {
    const DeviceChoices::Node& to = choices_.nodes[next.node];
    const int type = request_.problem.type_index(to.device);
    const auto& seconds = costs_.seconds[type];
    const auto& least_after = least_after_[type];
    const double* here = value_.get() + static_cast<std::size_t>(node) * states_;
    const double slack = speed_left(choices_.nodes[node]);
    const double next_slack = speed_left(to);
    const double limit = memory_of(to.device).value * (1 + kTie);
    const double limit_left = to.memory_left.value * (1 + kTie);
    const int last = static_cast<int>(states_) - 1;
    const bool must_end = total_ > 0 && to.stages == total_; // the last stage takes all that is left
    const Place& place = places_[total_ > 0 ? to.stages - 1 : 0];
    const auto& lacking = costs_.lacking[type];
    const double* there = row_of(next.node);
    const int first_target = must_end ? last : first_state(best_, next_slack);
    const int last_k = std::min(reached_[node].last, last - 1);
    const auto base_of = [&](int k) {
      return k > 0 ? std::max(here[k], 2 * next.path.time(Bytes{costs_.cut_bytes[k]}).value) : here[k];
    };
    for (int k = std::max(reached_[node].first, first_state(best_, slack)); k <= last_k; ++k) {
      if (here[k] >= best_ || left_[k] > best_ * slack) {
        continue;
      }
      const double base = base_of(k);
      const double next_base = k < last_k && is_replaced(place, type, memory_of(to.device), k) ? base_of(k + 1) : best_;
      const double enough = next_base < best_ ? next_base * kClearly : kInfinity;
      const auto& above = costs_.above[k];
      for (auto at = std::lower_bound(above.begin(), above.end(), first_target); at != above.end(); ++at) {
        const std::int32_t j = *at;
        if (base >= best_ || least_after[j] - seconds[k] >= best_ || place.after[j] - place.upto[k] > limit ||
            (seconds[j] - seconds[k] > enough && j > k + 1)) {
          break;
        }
        const double value = std::max(base, seconds[j] - seconds[k]);
        if (value < best_ && value < there[j] && left_[j] <= best_ * next_slack && place.left_bytes[j] <= limit_left &&
            lacking[j] == lacking[k] && (j < last || may_end)) {
          improve(node, k, next.node, j, value);
        }
      }
    }
  }

  // Whether, in a chain, a stage that begins at the next state takes clearly less time than one that begins at `k`, and
  // fits wherever that one fits. What ties decide is far less.
  bool is_replaced(const Place& place, int type, Bytes memory, int k) const {
    constexpr double kClear = 1e-8;
    const auto& seconds = costs_.seconds[type];
    if (!is_chain_ || seconds[k + 1] - seconds[k] <= kClear * seconds.back()) {
      return false;
    }
    return total_ == 0 || std::isinf(memory.value) ||
           place.upto[k + 1] - place.upto[k] - most_more_[k] * place.border > kClear * memory.value;
  }

  // Takes a value that is less than the state's so far, if the stage fits.
  void improve(int node, int k, int next, int j, double value) {
    if (!fits(k, j, choices_.nodes[next].device, next)) {
      return;
    }
    Range& range = reached_[next];
    range = {std::min(range.first, j), std::max(range.last, j)};
    const std::size_t cell = static_cast<std::size_t>(next) * states_ + j;
    value_[cell] = value;
    from_[cell] = {node, k};
    const bool complete = j + 1 == static_cast<int>(states_);
    if (complete && (best_node_ < 0 || improves(value, best_))) {
      best_ = value;
      best_node_ = next;
    }
  }

  Bytes memory_of(DeviceId device) const { return request_.problem.platform.type_of(device).memory / request_.chunks; }

  bool fits(int k, int j, DeviceId device, int node) const {
    if (total_ == 0) {
      return true;
    }
    const int stage = choices_.nodes[node].stages - 1;
    const Problem& problem = request_.problem;
    const double parameters = costs_.parameters[j] - costs_.parameters[k];
    const Bytes resident{costs_.resident_bytes[j] - costs_.resident_bytes[k]};
    const Activations stash = costs_.stash[j] - costs_.stash[k];
    const auto needs = [&](Bytes incoming, Bytes outgoing) {
      return memory_of_stage(problem, {parameters, resident, stash, incoming, outgoing},
                             problem.training.recompute.what)
          .total(places_[stage].held, request_.versions);
    };
    const Bytes input{costs_.input_bytes[j] - costs_.input_bytes[k]};
    // Tensors that bypass the stage cross both cuts, but not the stage's border.
    return needs(Bytes{costs_.cut_bytes[k]} + input, Bytes{costs_.cut_bytes[j]}) <= memory_of(device) ||
           (needs(input, Bytes{0}) <= memory_of(device) && exact_need(k, j, needs) <= memory_of(device));
  }

  template <class Needs> Bytes exact_need(int k, int j, const Needs& needs) const {
    const Problem::Border border = borders_.of_stage(k, j);
    return needs(border.incoming, border.outgoing);
  }

  IdealPipeline trace() const {
    IdealPipeline found{{}, {}, best_};
    int node = best_node_;
    int state = static_cast<int>(states_) - 1;
    while (node > 0) {
      found.states.push_back(state);
      found.nodes.push_back(node);
      const From& from = from_[static_cast<std::size_t>(node) * states_ + state];
      node = from.node;
      state = from.state;
    }
    std::reverse(found.states.begin(), found.states.end());
    std::reverse(found.nodes.begin(), found.nodes.end());
    return found;
  }

  const PlanRequest& request_;
  const BitRows& ideals_;
  StageBorders borders_;
  const StateCosts& costs_;
  const DeviceChoices& choices_;
  std::size_t states_;
  int total_ = 0, most_stages_ = 0;
  double best_ = kInfinity;
  int best_node_ = -1;
  bool is_chain_ = false;       // every state holds the one before it, and leaves no more work
  double fastest_ = 0;          // device, in whole models per second
  double longest_operator_ = 0; // seconds on the device type that runs it fastest, at least
  std::vector<char> has_type_;
  std::vector<double> most_more_; // [state]: bytes that may come into a stage only because it begins at the next state
  std::vector<double> left_;
  std::vector<Place> places_; // [stage]
  std::vector<std::vector<double>> least_after_;
  std::vector<Range> reached_;      // [node]
  std::unique_ptr<double[]> value_; // [node * states + state], of nodes that were reached
  std::unique_ptr<From[]> from_;
  std::map<DeviceId, std::vector<double>> least_on_; // [last device][state]: over nodes with fewer stages
};

bool plan_fits(const PlanRequest& request, const Plan& plan) {
  return !memory_shortage(request.problem, plan, cost_memory(request.problem, plan), request.in_flight,
                          request.versions);
}

std::vector<DeviceId> node_devices(const DeviceChoices& choices, const IdealPipeline& pipeline) {
  std::vector<DeviceId> devices;
  for (const int node : pipeline.nodes) {
    devices.push_back(choices.nodes[node].device);
  }
  return devices;
}

} // namespace

namespace {

// Some of the states, each of which holds all operators of those before it. A pipeline over them bounds the search over
// all.
struct FewStates {
  AntichainStates states;
  StateCosts costs;
};

FewStates take_few(const ModelGraph& model, const AntichainStates& all, const StateCosts& costs, int stages) {
  std::vector<std::int32_t> nested = {0};
  while (!costs.above[nested.back()].empty()) {
    nested.push_back(costs.above[nested.back()].front());
  }
  const std::vector<std::int32_t> some = few_states(nested, costs.weighted, std::max(64, 2 * stages));
  const auto of_some = [&](const auto& values) {
    std::remove_cvref_t<decltype(values)> made;
    std::transform(some.begin(), some.end(), std::back_inserter(made), [&](std::int32_t at) { return values[at]; });
    return made;
  };
  FewStates few{{BitRows(static_cast<int>(some.size()), model.size())}, {}};
  for (std::size_t at = 0; at < some.size(); ++at) {
    const auto ideal = all.ideals.row(some[at]);
    std::copy(ideal.begin(), ideal.end(), few.states.ideals.row(static_cast<int>(at)).begin());
    few.costs.above.emplace_back(some.size() - at - 1);
    std::iota(few.costs.above.back().begin(), few.costs.above.back().end(), static_cast<std::int32_t>(at) + 1);
    few.costs.pairs += few.costs.above.back().size();
  }
  std::transform(costs.seconds.begin(), costs.seconds.end(), std::back_inserter(few.costs.seconds), of_some);
  std::transform(costs.lacking.begin(), costs.lacking.end(), std::back_inserter(few.costs.lacking), of_some);
  few.costs.parameters = of_some(costs.parameters);
  few.costs.resident_bytes = of_some(costs.resident_bytes);
  few.costs.cut_bytes = of_some(costs.cut_bytes);
  few.costs.stash = of_some(costs.stash);
  few.costs.input_bytes = of_some(costs.input_bytes);
  few.costs.weighted = of_some(costs.weighted);
  return few;
}

// The best pipeline whose stages fit in memory, over all numbers of stages.
std::optional<IdealPipeline> best_that_fits(IdealPipelineSearch& search, int most_stages, int exact_stages,
                                            double at_most) {
  std::optional<IdealPipeline> best;
  for (int total = most_stages; total > 0; --total) { // equal values with fewer stages replace what was found
    if (exact_stages == 0 || total == exact_stages) {
      const auto found = search.run(total, exact_stages, best ? best->bottleneck : at_most);
      best = found ? found : best;
    }
  }
  return best;
}

// The pipeline with the fewest stages that fit in memory and the bottleneck `least`, which no pipeline beats. It is the
// one that best_that_fits() ends with, found without those that have more stages.
std::optional<IdealPipeline> shortest_that_fits(IdealPipelineSearch& search, int most_stages, int exact_stages,
                                                double least) {
  std::optional<IdealPipeline> found;
  const int last = exact_stages > 0 ? exact_stages : most_stages;
  for (int total = std::max(1, exact_stages); total <= last && !found; ++total) {
    found = search.run(total, exact_stages, least);
  }
  return found && search.is_least(found->bottleneck) ? found : std::nullopt; // else as good but for rounding
}

// What a pipeline over few states leaves to search.
double bound_by(const std::optional<IdealPipeline>& few, double at_most) {
  return few ? std::min(at_most, few->bottleneck * kClearly) : at_most;
}

// The best pipeline without a limit of memory.
std::optional<IdealPipeline> best_unlimited(const PlanRequest& request, const AntichainStates& states,
                                            const StateCosts& costs, const DeviceChoices& choices, int exact_stages,
                                            double at_most) {
  const FewStates few = take_few(request.problem.model, states, costs, exact_stages);
  const auto bound = IdealPipelineSearch(request, few.states, few.costs, choices).run(0, exact_stages, at_most);
  IdealPipelineSearch search(request, states, costs, choices);
  const bool is_least = bound && search.is_least(bound->bottleneck);
  return search.run(0, exact_stages, bound_by(bound, at_most),
                    is_least ? static_cast<int>(bound->nodes.size()) : choices.most_stages);
}

// What tells choices of some devices from others: each node's device, and the nodes that may follow it.
std::vector<int> outline_of(const DeviceChoices& choices) {
  std::vector<int> outline;
  for (const DeviceChoices::Node& node : choices.nodes) {
    outline.push_back(node.device);
    for (const DeviceChoices::Next& next : node.next) {
      outline.push_back(next.node);
    }
    outline.push_back(-1);
  }
  return outline;
}

} // namespace

std::optional<IdealPipeline> best_ideal_pipeline(const PlanRequest& request, const AntichainStates& states,
                                                 const StateCosts& costs, const DeviceChoices& choices,
                                                 int exact_stages, double at_most, UnlimitedPipelines& unlimited) {
  const auto [slot, is_new] = unlimited.try_emplace({outline_of(choices), exact_stages, at_most});
  if (is_new) {
    slot->second = best_unlimited(request, states, costs, choices, exact_stages, at_most);
  }
  const std::optional<IdealPipeline>& least = slot->second;
  if (!least || plan_fits(request, make_ideal_plan(request, states, *least, node_devices(choices, *least)))) {
    return least;
  }
  IdealPipelineSearch search(request, states, costs, choices);
  auto best = search.is_least(least->bottleneck)
                  ? shortest_that_fits(search, choices.most_stages, exact_stages, least->bottleneck)
                  : std::nullopt;
  if (!best) {
    const FewStates few = take_few(request.problem.model, states, costs, exact_stages);
    IdealPipelineSearch first(request, few.states, few.costs, choices);
    const auto bound = best_that_fits(first, choices.most_stages, exact_stages, at_most);
    best = best_that_fits(search, choices.most_stages, exact_stages, bound_by(bound, at_most));
  }
  if (best) {
    best->memory_bound = true;
  }
  return best;
}

Infeasible why_no_pipeline(const PlanRequest& request, const AntichainStates& states, const StateCosts& costs,
                           const DeviceChoices& choices, int exact_stages) {
  const auto unlimited = IdealPipelineSearch(request, states, costs, choices).run(0, exact_stages, kInfinity);
  if (unlimited) {
    const Plan plan = make_ideal_plan(request, states, *unlimited, node_devices(choices, *unlimited));
    const auto shortage =
        memory_shortage(request.problem, plan, cost_memory(request.problem, plan), request.in_flight, request.versions);
    return {"no pipeline fits in memory; of the least bottleneck without that limit, " +
            (shortage ? to_text(*shortage, request.problem.platform) : "a chunk needs more than its share")};
  }
  if (const std::string lacks = able_devices(request).lacks; !lacks.empty()) {
    return {"no pipeline over these devices finds every kernel: " + lacks};
  }
  return {"the model has too few operators for " + std::to_string(exact_stages) + " stages"};
}

std::string too_many_devices(const PlanRequest& request) {
  const std::size_t stages = request.devices.size() * request.chunks;
  return stages <= kMostPipelineDevices
             ? ""
             : std::to_string(stages) +
                   " stages to choose from are too many for the dynamic program; allowed: at most " +
                   std::to_string(kMostPipelineDevices);
}

double work_of(const DeviceChoices& choices, const StateCosts& costs) {
  double edges = 0;
  for (const DeviceChoices::Node& node : choices.nodes) {
    edges += static_cast<double>(node.next.size());
  }
  return edges * static_cast<double>(costs.pairs);
}

TypeSpeeds type_speeds(const Problem& problem, const StateCosts& costs) {
  TypeSpeeds speeds;
  for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
    const double whole = costs.seconds[type].back();
    speeds.of_type.push_back(whole > 0 ? 1 / whole : 0);
  }
  return speeds;
}

Plan make_ideal_plan(const PlanRequest& request, const AntichainStates& states, const IdealPipeline& pipeline,
                     const std::vector<DeviceId>& devices) {
  Plan plan{.memory_bound = pipeline.memory_bound};
  int before = 0;
  for (std::size_t stage = 0; stage < pipeline.states.size(); ++stage) {
    Stage made;
    for (OperatorId op = 0; op < request.problem.model.size(); ++op) {
      if (has_bit(states.ideals.row(pipeline.states[stage]), op) && !has_bit(states.ideals.row(before), op)) {
        made.operators.push_back(op);
      }
    }
    made.devices = {devices[stage]};
    recompute_as_trained(request.problem, made);
    plan.stages.push_back(std::move(made));
    before = pipeline.states[stage];
  }
  return plan;
}

DeviceChoices ordered_choices(const Problem& problem, const TypeSpeeds& speeds, const std::vector<DeviceId>& devices,
                              bool all) {
  const int count = static_cast<int>(devices.size());
  const std::vector<int> class_of = all ? std::vector<int>() : device_classes(problem, devices).of;
  DeviceChoices choices;
  choices.most_stages = count;
  choices.in_order = !all;
  std::vector<double> speed(count + 1, 0.0); // speed of the devices from i on
  std::vector<Bytes> memory(count + 1);
  for (int i = count - 1; i >= 0; --i) {
    speed[i] = speed[i + 1] + speeds.of(problem, devices[i]);
    memory[i] = memory[i + 1] + problem.platform.type_of(devices[i]).memory;
  }
  choices.nodes.push_back({-1, 0, speed[0], memory[0], {}});
  // Node of "n stages, device i last": i runs over n-1 … count-1, or is n-1 if no device may be left out.
  std::vector<std::vector<int>> node(count + 1, std::vector<int>(count, -1));
  for (int n = 1; n <= count; ++n) {
    for (int i = n - 1; i < (all ? n : count); ++i) {
      node[n][i] = static_cast<int>(choices.nodes.size());
      choices.nodes.push_back({devices[i], n, speed[i + 1], memory[i + 1], {}});
    }
  }
  for (int i = -1; i < count; ++i) { // the device used last, or none
    for (int j = i + 1; j < count; ++j) {
      const bool left_out_before =
          !all && std::find(class_of.begin() + i + 1, class_of.begin() + j, class_of[j]) != class_of.begin() + j;
      if (left_out_before) {
        continue;
      }
      const PathCost path = i < 0 ? PathCost{} : problem.path(devices[i], devices[j]);
      for (int n = i < 0 ? 0 : 1; n <= i + 1; ++n) {
        const int from = n == 0 ? 0 : node[n][i];
        if (from >= 0 && node[n + 1][j] >= 0) {
          choices.nodes[from].next.push_back({node[n + 1][j], path});
        }
      }
    }
  }
  return choices;
}

std::vector<DeviceId> chunked_devices(const PlanRequest& request) {
  return place_stages(request.devices, request.chunks, request.stage_placement);
}

} // namespace stagecraft
