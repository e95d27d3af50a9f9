// What the tests of studies with configurations share: studies from text, their plans, and these written for
// frameworks. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan_format/plan_formats.hpp"
#include "sim/plan_format/uniform_plan.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "tests/config/configs.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {

inline const Folders kConfigFolders{kConfigs, kRoot};

inline Study study_with(const std::string& training, const std::string& compare = "{strategies: [mesh]}",
                        const std::string& model = "gpt2", const std::string& platform = "dgx-h100") {
  const std::string text =
      "model: " + model + "\nplatform: " + platform + "\ntraining: " + training + "\ncompare: " + compare + "\n";
  return load_study(yaml::parse(text, (kConfigs / "study.yaml").string()), kConfigFolders, {}, Purpose::comparison);
}

/// The study's split by `mesh` under a schedule, with all its micro-batches.
inline Plan mesh_plan(const Study& study, const std::string& schedule) {
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const Scenario scenario{.strategy = &find_by_name(strategies(), "mesh", "strategy", {}),
                          .schedule = &find_by_name(schedules(), schedule, "schedule", {}),
                          .micro_batches = study.training.micro_batches.front()};
  const PlanResult planned = plan_scenario(memo, scenario).result;
  const Infeasible* why = std::get_if<Infeasible>(&planned);
  INFO((why != nullptr ? why->reason : ""));
  REQUIRE(why == nullptr);
  return std::get<Plan>(planned);
}

inline WrittenConfig written(const std::string& format, const std::string& training, const std::string& schedule) {
  const Study study = study_with(training);
  const Plan plan = mesh_plan(study, schedule);
  return write_config(
      find_by_name(config_formats(), format, "format", {}),
      {plan, *study.model, study.platform, study.training, study.training.micro_batches.front(), schedule});
}

inline std::string text_of(const WrittenConfig& config) {
  const Infeasible* why = std::get_if<Infeasible>(&config);
  return why != nullptr ? "refused: " + why->reason : std::get<std::string>(config);
}

} // namespace stagecraft::test
