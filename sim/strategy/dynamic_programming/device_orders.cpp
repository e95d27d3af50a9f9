// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/device_orders.hpp"

#include <algorithm>
#include <map>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/problem_memo.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostNodes = 200'000;

// The combinations of devices used per class: a class is opened after its twin, so a twin's number multiplies by what
// the classes after it may have.
double combinations(const DeviceClasses& classes) {
  std::vector<double> of_class(classes.members.size(), 1.0); // of the classes that follow it
  double all = 1;
  for (std::size_t c = classes.members.size(); c-- > 0;) { // twins come first
    const double here = 1 + static_cast<double>(classes.members[c].size()) * of_class[c];
    (classes.twin[c] >= 0 ? of_class[classes.twin[c]] : all) *= here;
  }
  return all;
}

// One node for each combination of devices used per class and class used last, breadth first by stages. Of two twin
// classes the earlier is opened first. Empty if there are too many nodes.
DeviceChoices class_choices(const Problem& problem, const TypeSpeeds& speeds, const DeviceClasses& device_classes) {
  const auto& classes = device_classes.members;
  DeviceChoices choices;
  if (combinations(device_classes) > kMostNodes) {
    return choices;
  }
  // Sums up anew what is left: memory may be unlimited, and subtracting from that would leave it unlimited.
  const auto make_node = [&](DeviceId last, int stages, const std::vector<int>& used) {
    DeviceChoices::Node node{.device = last, .stages = stages};
    for (std::size_t c = 0; c < classes.size(); ++c) {
      for (std::size_t left = used[c]; left < classes[c].size(); ++left) {
        node.speed_left += speeds.of(problem, classes[c].front());
        node.memory_left += problem.platform.type_of(classes[c].front()).memory;
      }
    }
    return node;
  };
  choices.nodes.push_back(make_node(-1, 0, std::vector<int>(classes.size(), 0)));
  std::vector<int> class_of_node = {-1};
  std::vector<std::vector<int>> counts = {std::vector<int>(classes.size(), 0)};
  std::map<std::pair<std::vector<int>, int>, int> known;
  for (std::size_t at = 0; at < choices.nodes.size(); ++at) {
    for (int next = 0; next < static_cast<int>(classes.size()); ++next) {
      std::vector<int> used = counts[at];
      const int twin = device_classes.twin[next];
      const bool opens_before_twin = twin >= 0 && used[next] == 0 && used[twin] == 0; // the same with names swapped
      if (used[next] == static_cast<int>(classes[next].size()) || opens_before_twin) {
        continue;
      }
      const int last = class_of_node[at];
      const DeviceId device = classes[next][used[next]];
      const PathCost path = last < 0 ? PathCost{} : problem.path(classes[last][used[last] - 1], device);
      ++used[next];
      const auto [slot, is_new] = known.try_emplace({used, next}, static_cast<int>(choices.nodes.size()));
      if (is_new) {
        choices.nodes.push_back(make_node(device, choices.nodes[at].stages + 1, used));
        counts.push_back(used);
        class_of_node.push_back(next);
      }
      choices.nodes[at].next.push_back({slot->second, path});
      choices.most_stages = std::max(choices.most_stages, choices.nodes[at].stages + 1);
    }
    if (choices.nodes.size() > kMostNodes) {
      return {};
    }
  }
  return choices;
}

// The plan of a pipeline that was found, with its bottleneck as objective.
Plan plan_of(const PlanRequest& request, const AntichainStates& states, const DeviceChoices& choices,
             const IdealPipeline& found) {
  std::vector<DeviceId> used;
  for (const int node : found.nodes) {
    used.push_back(choices.nodes[node].device);
  }
  Plan plan = make_ideal_plan(request, states, found, used);
  plan.objective = Objective{"bottleneck", Seconds{found.bottleneck}};
  plan.note = note_of(states, request.state_cap);
  return plan;
}

} // namespace

std::vector<DeviceId> fastest_first(const Problem& problem, std::vector<DeviceId> devices) {
  std::stable_sort(devices.begin(), devices.end(), [&](DeviceId a, DeviceId b) {
    return problem.prefix.seconds[problem.type_index(a)].back() < problem.prefix.seconds[problem.type_index(b)].back();
  });
  return devices;
}

namespace {

// The best of two orders of devices bounds the search over all of them.
double bottleneck_in_order(const PlanRequest& request, CostedStates& costed, const TypeSpeeds& speeds) {
  double best = kInfinity;
  std::vector<std::vector<DeviceId>> orders = {request.devices};
  if (const auto sorted = fastest_first(request.problem, request.devices); sorted != request.devices) {
    orders.push_back(sorted);
  }
  for (const auto& order : orders) {
    const auto found =
        best_ideal_pipeline(request, costed.states, costed.costs,
                            ordered_choices(request.problem, speeds, order, false), 0, best, costed.pipelines);
    best = found ? std::min(best, found->bottleneck) : best;
  }
  return best;
}

} // namespace

PlanResult best_in_order(const PlanRequest& request, CostedStates& costed, const std::vector<DeviceId>& devices,
                         bool all) {
  auto& [states, costs, pipelines] = costed;
  const DeviceChoices choices = ordered_choices(request.problem, type_speeds(request.problem, costs), devices, all);
  if (work_of(choices, costs) > kMostPipelineWork) {
    return Infeasible{
        std::to_string(devices.size()) + " stages and " + std::to_string(states.count()) +
        " antichain states are too many for the dynamic program; allowed: fewer devices, or a coarser model"};
  }
  const int exact_stages = all ? static_cast<int>(devices.size()) : 0;
  const auto found = best_ideal_pipeline(request, states, costs, choices, exact_stages, kInfinity, pipelines);
  if (!found) {
    return why_no_pipeline(request, states, costs, choices, exact_stages);
  }
  return plan_of(request, states, choices, *found);
}

std::shared_ptr<CostedStates> costed_states(const PlanRequest& request) {
  return kept_for<CostedStates>(request, [&] {
    CostedStates made{antichain_states(request.problem.model, request.state_cap), {}, {}};
    made.costs = cost_states(request.problem, made.states);
    return made;
  });
}

PlanResult best_over_orders(const PlanRequest& request) {
  if (const std::string reason = too_many_devices(request); !reason.empty()) {
    return Infeasible{reason};
  }
  const Problem& problem = request.problem;
  const auto costed = costed_states(request);
  auto& [states, costs, pipelines] = *costed;
  const TypeSpeeds speeds = type_speeds(problem, costs);
  DeviceChoices choices = class_choices(problem, speeds, device_classes(problem, request.devices));
  std::string note = note_of(states, request.state_cap);
  if (choices.nodes.empty() || work_of(choices, costs) > kMostPipelineWork) {
    choices = ordered_choices(problem, speeds, fastest_first(problem, request.devices), false);
    note +=
        std::string(note.empty() ? "" : "; ") + "too many classes of devices: only the order fastest first was tried";
  }
  const double known = bottleneck_in_order(request, *costed, speeds);
  const auto found = best_ideal_pipeline(request, states, costs, choices, 0, known, pipelines);
  if (!found) {
    return why_no_pipeline(request, states, costs, choices, 0);
  }
  Plan plan = plan_of(request, states, choices, *found);
  plan.note = note;
  return plan;
}

} // namespace stagecraft
