// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/device_fits.hpp"

#include <algorithm>
#include <cmath>

#include "sim/app/common/program.hpp"
#include "sim/plan/stage_cost/stage_costs.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

// The model on one device without a limit of memory, whose times do not matter here.
Study lone_study(const std::string& model, const ModelReading& reading, const std::vector<Setting>& training) {
  ModelOptions options{.model = model, .devices = 1, .reading = reading};
  std::vector<Setting> settings = {{"cost_model", "constant"}};
  settings.insert(settings.end(), training.begin(), training.end());
  return study_of_model(options, settings).study;
}

// What the one stage of the whole model takes; nothing where the strategy finds no plan.
std::optional<Bytes> memory_of(const Study& study) {
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const Scenario scenario{.strategy = &find_by_name(strategies(), "single", "strategy", {}),
                          .schedule = &find_by_name(schedules(), "accumulate", "schedule", {})};
  const PlanResult planned = plan_scenario(memo, scenario).result;
  const Plan* plan = std::get_if<Plan>(&planned);
  if (plan == nullptr) {
    return std::nullopt;
  }
  const PlanCost cost = cost_plan(memo.costs.problem(1), *plan);
  return cost.stages.front().replicas.front().memory.total(1, 1);
}

std::optional<TrainingMemory> memory_to_train(const std::string& model, const ModelReading& reading) {
  const Study plain = lone_study(model, reading, {});
  if (!plain.model->devices.empty()) {
    return std::nullopt;
  }
  const bool measured = !plain.model->profiles.empty(); // of one way to train
  TrainingMemory needs{.precision = std::string(row_of(measured ? plain.training.precision : Precision::bf16).name),
                       .optimizer = "adam",
                       .whole = {},
                       .recomputed = {},
                       .recompute = layer_row_of(*plain.model).layers.empty() ? "full" : "blocks"};
  std::vector<Setting> training = {{"training.precision", needs.precision}, {"training.optimizer", needs.optimizer}};
  const std::optional<Bytes> whole = memory_of(lone_study(model, reading, training));
  if (!whole) {
    return std::nullopt;
  }
  needs.whole = *whole;
  training.push_back({"training.recompute", needs.recompute});
  const std::optional<Bytes> recomputed = memory_of(lone_study(model, reading, training));
  needs.recomputed = recomputed && *recomputed < *whole ? recomputed : std::nullopt;
  return needs;
}

} // namespace

std::optional<DeviceFits> device_fits(const std::string& model, const ModelReading& reading) {
  const std::optional<TrainingMemory> needs = memory_to_train(model, reading);
  if (!needs) {
    return std::nullopt;
  }
  const Folders folders{".", shipped_folder()};
  const DeviceTypeSource types = device_types_in(folders.shipped / "platforms" / "devices");
  DeviceFits fits{*needs, {}};
  for (const std::string& name : shipped_names(folders, "platforms/devices")) {
    const DeviceType type = load_device_type(types(name, {name, 0, 0}), types);
    fits.devices.push_back({.device = name,
                            .memory = type.memory,
                            .fits = needs->whole <= type.memory,
                            .fits_recomputed = needs->least() <= type.memory,
                            .devices = static_cast<int>(std::ceil(needs->least() / type.memory))});
  }
  std::stable_sort(fits.devices.begin(), fits.devices.end(),
                   [](const DeviceFit& one, const DeviceFit& other) { return one.memory < other.memory; });
  return fits;
}

} // namespace stagecraft
