// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/run_defects.hpp"

#include <algorithm>

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/measure/measure_graph.hpp"

namespace stagecraft {

std::vector<std::string> run_defects(StudyMemo& memo, const Scenario& scenario) {
  const Study& study = memo.costs.study();
  const Plan& plan = *scenario.plan;
  std::vector<std::string> defects = plan_defects(plan, *study.model, study.platform);
  if (!defects.empty()) {
    return defects;
  }
  const Problem& problem = memo.costs.problem(scenario.micro_batches, scenario.recompute);
  for (const Stage& stage : plan.stages) { // each kind of device once
    std::vector<int> types;
    for (const DeviceId device : stage.devices) {
      const int type = study.platform.devices[device].type;
      if (std::find(types.begin(), types.end(), type) == types.end()) {
        types.push_back(type);
        std::string lacks = missing_kernel(problem, type, stage.operators);
        if (!lacks.empty() && std::find(defects.begin(), defects.end(), lacks) == defects.end()) {
          defects.push_back(std::move(lacks));
        }
      }
    }
  }
  if (defects.empty()) { // the replay knows the true peak of memory
    const Prepared one = run_scenario(memo, scenario);
    if (one.graph) {
      defects = overflows_of_stages(study.platform, plan, *one.graph, one.run.metrics);
    }
    if (defects.empty() && !one.run.feasible) {
      defects.push_back(one.run.why_not);
    }
  }
  return defects;
}

} // namespace stagecraft
