// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/check_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/plan/program/stage_program.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"

namespace stagecraft {
namespace {

std::string stage_name(std::size_t stage) { return "stage " + std::to_string(stage); }

// Fills `home` with the stage of each operator.
void check_cover(const Plan& plan, const ModelGraph& model, std::vector<int>& home, std::vector<std::string>& defects) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].operators.empty()) {
      defects.push_back(stage_name(s) + " has no operator");
    }
    for (const OperatorId op : plan.stages[s].operators) {
      if (op < 0 || op >= model.size()) {
        defects.push_back(stage_name(s) + " names operator number " + std::to_string(op) + "; the model has " +
                          std::to_string(model.size()));
      } else if (home[op] >= 0) {
        defects.push_back("operator '" + model.operators[op].name + "' is in " + stage_name(home[op]) + " and in " +
                          stage_name(s));
      } else {
        home[op] = static_cast<int>(s);
      }
    }
  }
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (home[op] < 0) {
      defects.push_back("operator '" + model.operators[op].name + "' is in no stage");
    }
  }
}

void check_direction(const ModelGraph& model, const std::vector<int>& home, std::vector<std::string>& defects) {
  for (OperatorId op = 0; op < model.size(); ++op) {
    for (const OperatorId user : model.successors[op]) {
      if (home[op] > home[user] && home[user] >= 0) {
        defects.push_back("data flows back: operator '" + model.operators[user].name + "' in " +
                          stage_name(home[user]) + " needs '" + model.operators[op].name + "' in " +
                          stage_name(home[op]));
      }
    }
  }
}

// The operators of the shortest path on which data leaves stage `s` and comes back, ends included; empty if the stage
// is convex.
std::vector<OperatorId> path_out_and_back(const ModelGraph& model, const std::vector<int>& home, int s) {
  std::vector<OperatorId> from(model.size(), -1);
  std::vector<OperatorId> reached; // outside, breadth first
  const auto back = [&](OperatorId op, OperatorId end) {
    std::vector<OperatorId> path = {end, op};
    while (home[op] != s) {
      op = from[op];
      path.push_back(op);
    }
    std::reverse(path.begin(), path.end());
    return path;
  };
  const auto visit = [&](OperatorId op) {
    for (const OperatorId user : model.successors[op]) {
      if (home[user] != s && from[user] < 0) {
        from[user] = op;
        reached.push_back(user);
      }
    }
  };
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (home[op] == s) {
      visit(op);
    }
  }
  for (std::size_t next = 0; next < reached.size();) { // visit() adds to them
    const OperatorId op = reached[next++];
    for (const OperatorId user : model.successors[op]) {
      if (home[user] == s) {
        return back(op, user);
      }
    }
    visit(op);
  }
  return {};
}

// A stage that is not convex would wait for itself. Such a plan also has data that flows back to an earlier stage, so
// plans without that defect are not searched.
void check_convexity(const Plan& plan, const ModelGraph& model, const std::vector<int>& home,
                     std::vector<std::string>& defects) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<OperatorId> path = path_out_and_back(model, home, static_cast<int>(s));
    if (path.empty()) {
      continue;
    }
    std::vector<std::string> names;
    for (const OperatorId op : path) {
      names.push_back("'" + model.operators[op].name + "'");
    }
    constexpr std::size_t kMostNamed = 8;
    if (names.size() > kMostNamed) {
      names.erase(names.begin() + kMostNamed / 2, names.end() - kMostNamed / 2);
      names.insert(names.begin() + kMostNamed / 2, "…");
    }
    defects.push_back(stage_name(s) + " is not convex: data leaves it and comes back by " + join(names, " → "));
  }
}

// Devices that do not exist, the first ones by number, or that the stage lists twice.
void check_device_list(const Stage& stage, std::size_t s, const Platform& platform, std::vector<std::string>& defects) {
  std::vector<DeviceId> sorted = stage.devices;
  std::sort(sorted.begin(), sorted.end());
  const auto repeated = [&](DeviceId device) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), device);
    return last - first > 1;
  };
  constexpr std::size_t kMostNamed = 8;
  std::size_t unknown = 0;
  for (const DeviceId device : stage.devices) {
    if (device < 0 || device >= static_cast<int>(platform.devices.size())) {
      if (++unknown <= kMostNamed) {
        defects.push_back(stage_name(s) + " names device number " + std::to_string(device) + "; the platform has " +
                          std::to_string(platform.devices.size()));
      }
    } else if (repeated(device)) {
      defects.push_back(stage_name(s) + " lists device '" + platform.devices[device].name + "' more than once");
      break;
    }
  }
  if (unknown > kMostNamed) {
    defects.push_back(stage_name(s) + " names " + std::to_string(unknown - kMostNamed) +
                      " more devices that the platform does not have");
  }
}

// Replicas that share tokens have the same samples.
void check_context(const Stage& stage, std::size_t s, std::vector<std::string>& defects) {
  const auto ranks = static_cast<std::size_t>(std::max(1, stage.context.ranks));
  if (stage.context.ranks < 1 || stage.replicas() % ranks != 0) {
    defects.push_back(stage_name(s) + ": context_parallel " + std::to_string(stage.context.ranks) +
                      " does not divide its " + std::to_string(stage.replicas()) + " replicas");
    return;
  }
  for (std::size_t replica = 0; replica < stage.shares.size() && ranks > 1; ++replica) {
    if (stage.shares[replica] != stage.shares[replica / ranks * ranks]) {
      defects.push_back(stage_name(s) + ": replicas that share tokens must have equal shares");
      return;
    }
  }
}

// Whole groups of replicas share experts, and have equal shares of samples.
void check_experts(const Stage& stage, std::size_t s, std::vector<std::string>& defects) {
  const auto& [ranks, tensor] = stage.experts;
  if (ranks == 1) {
    return;
  }
  if (stage.devices.size() % (static_cast<std::size_t>(ranks) * tensor) != 0) {
    defects.push_back(stage_name(s) + ": expert_parallel " + std::to_string(ranks) + " does not divide its " +
                      std::to_string(stage.devices.size()) + " devices");
  } else if (!stage.shares.empty()) {
    defects.push_back(stage_name(s) + ": replicas that share experts must have equal shares");
  }
}

void check_devices(const Stage& stage, std::size_t s, const Platform& platform, std::vector<std::string>& defects) {
  if (stage.devices.empty()) {
    defects.push_back(stage_name(s) + " has no device");
  }
  check_device_list(stage, s, platform, defects);
  const int degree = stage.tensor_parallel;
  if (degree < 1 || stage.devices.size() % static_cast<std::size_t>(degree) != 0) {
    defects.push_back(stage_name(s) + ": tensor_parallel " + std::to_string(degree) + " does not divide its " +
                      std::to_string(stage.devices.size()) + " devices");
    return;
  }
  check_context(stage, s, defects);
  check_experts(stage, s, defects);
  const double sum = std::accumulate(stage.shares.begin(), stage.shares.end(), 0.0);
  const bool positive = std::all_of(stage.shares.begin(), stage.shares.end(), [](double share) { return share > 0; });
  if (!stage.shares.empty() && (stage.shares.size() != stage.replicas() || !positive || std::abs(sum - 1) > 1e-9)) {
    defects.push_back(stage_name(s) + ": shares must be positive, one per " +
                      (degree == 1 ? "device" : "group of " + std::to_string(degree) + " devices") +
                      ", and add up to 1");
  }
}

// Asked once everything else is in order.
void check_axes(const Plan& plan, const ModelGraph& model, std::vector<std::string>& defects) {
  KnownPrograms known;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.tensor_parallel == 1) {
      if (stage.sequence_parallel) {
        defects.push_back(stage_name(s) + " is sequence-parallel with a tensor_parallel of 1; allowed: from 2 on");
      }
      if (stage.tensor_rule != TensorRule::megatron) {
        defects.push_back(stage_name(s) + " has a tensor_rule with a tensor_parallel of 1; allowed: from 2 on");
      }
      if (stage.context.ranks * stage.experts.ranks == 1) {
        continue;
      }
    }
    if (stage.tensor_rule == TensorRule::search && stage.context.ranks * stage.experts.ranks == 1) {
      continue; // always finds letters: in the end none
    }
    const StepTimes no_time{.computation = [](int, const Shard&) { return Seconds{0}; },
                            .group = {stage.tensor_parallel, {}}}; // a search asks for it
    const auto program = known.make(model, stage.operators, stage.axes(), no_time);
    if (const Infeasible* reason = std::get_if<Infeasible>(&program)) {
      defects.push_back(stage_name(s) + ": " + reason->reason);
    }
  }
}

void check_recompute(const Stage& stage, std::size_t s, const ModelGraph& model, std::vector<std::string>& defects) {
  if (stage.recompute != Recompute::selective && !stage.recomputed.empty()) {
    defects.push_back(stage_name(s) + " lists operators to recompute; allowed: with 'recompute: selective' only");
  }
  for (const OperatorId op : stage.recomputed) {
    if (!std::binary_search(stage.operators.begin(), stage.operators.end(), op)) {
      const bool known = op >= 0 && op < model.size();
      defects.push_back(stage_name(s) + " recomputes operator " +
                        (known ? "'" + model.operators[op].name + "'" : "number " + std::to_string(op)) +
                        ", which is not in it");
    }
  }
}

} // namespace

std::string replicated_indivisible(const Plan& plan, const ModelGraph& model) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (const OperatorId op : plan.stages[s].operators) {
      if (plan.stages[s].devices.size() > 1 && op >= 0 && op < model.size() && !model.operators[op].divisible) {
        return stage_name(s) + " has operator '" + model.operators[op].name + "', which is not divisible, on " +
               std::to_string(plan.stages[s].devices.size()) + " devices; allowed: 1";
      }
    }
  }
  return "";
}

std::vector<std::string> plan_defects(const Plan& plan, const ModelGraph& model, const Platform& platform) {
  std::vector<std::string> defects;
  if (plan.stages.empty()) {
    defects.emplace_back("the plan has no stage");
  }
  std::vector<int> home(model.size(), -1);
  check_cover(plan, model, home, defects);
  const std::size_t before = defects.size();
  check_direction(model, home, defects);
  if (defects.size() > before) {
    check_convexity(plan, model, home, defects);
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    check_devices(plan.stages[s], s, platform, defects);
    check_recompute(plan.stages[s], s, model, defects);
  }
  if (std::string replicated = replicated_indivisible(plan, model); !replicated.empty()) {
    defects.push_back(std::move(replicated));
  }
  if (defects.empty()) {
    check_axes(plan, model, defects);
  }
  return defects;
}

std::string missing_kernel(const Problem& problem, const Plan& plan) {
  for (const Stage& stage : plan.stages) {
    for (const DeviceId device : stage.devices) {
      if (std::string lacks = missing_kernel(problem, problem.type_index(device), stage.operators); !lacks.empty()) {
        return lacks;
      }
    }
  }
  return "";
}

std::optional<MemoryShortage> plan_shortage(const Problem& problem, const Plan& plan, int chunks,
                                            const InFlight& in_flight, int versions, StagePlacement placement,
                                            KnownStages* known) {
  return plan_shortage(problem, plan, cost_memory(problem, plan, known), chunks, in_flight, versions, placement);
}

std::optional<MemoryShortage> plan_shortage(const Problem& problem, const Plan& plan, const PlanCost& memory,
                                            int chunks, const InFlight& in_flight, int versions,
                                            StagePlacement placement) {
  if (is_pipeline(plan, chunks, placement) || plan.stages.size() == 1) {
    return memory_shortage(problem, plan, memory, in_flight, versions);
  }
  const auto all_in_flight = [&](int, int) { return static_cast<double>(problem.micro_batches); };
  return memory_shortage(problem, plan, memory, all_in_flight, versions);
}

} // namespace stagecraft
