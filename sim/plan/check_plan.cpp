// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/check_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

void check_devices(const Stage& stage, std::size_t s, const Platform& platform, std::vector<std::string>& defects) {
  if (stage.devices.empty()) {
    defects.push_back(stage_name(s) + " has no device");
  }
  for (std::size_t i = 0; i < stage.devices.size(); ++i) {
    const DeviceId device = stage.devices[i];
    if (device < 0 || device >= static_cast<int>(platform.devices.size())) {
      defects.push_back(stage_name(s) + " names device number " + std::to_string(device) + "; the platform has " +
                        std::to_string(platform.devices.size()));
    } else if (std::count(stage.devices.begin(), stage.devices.end(), device) > 1) {
      defects.push_back(stage_name(s) + " lists device '" + platform.devices[device].name + "' more than once");
      break;
    }
  }
  const double sum = std::accumulate(stage.shares.begin(), stage.shares.end(), 0.0);
  const bool positive = std::all_of(stage.shares.begin(), stage.shares.end(), [](double share) { return share > 0; });
  if (!stage.shares.empty() && (stage.shares.size() != stage.devices.size() || !positive || std::abs(sum - 1) > 1e-9)) {
    defects.push_back(stage_name(s) + ": shares must be positive, one per device, and add up to 1");
  }
  if (stage.tensor_parallel != 1) {
    defects.push_back(stage_name(s) + ": tensor_parallel " + std::to_string(stage.tensor_parallel) +
                      " is not supported; allowed: 1");
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
  check_direction(model, home, defects);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    check_devices(plan.stages[s], s, platform, defects);
  }
  if (std::string replicated = replicated_indivisible(plan, model); !replicated.empty()) {
    defects.push_back(std::move(replicated));
  }
  return defects;
}

} // namespace stagecraft
