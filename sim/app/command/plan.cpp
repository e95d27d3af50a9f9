// stagecraft plan: one split of one model on one platform, as a plan file.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/run/given_run.hpp"
#include "sim/app/run/infeasible_run.hpp"
#include "sim/base/system/clock.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan_format/plan_file.hpp"
#include "sim/report/table.hpp"
#include "sim/schedule/pace.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {
namespace {

struct PlanCommand {
  ModelOptions model;
  OutputOptions output;
  SettingOptions settings;
  std::string strategy, schedule;
};

void add_flags(Flags& flags, PlanCommand& options) {
  add_model_flags(flags, options.model);
  add_result_flags(flags, options.output, {"table", "yaml", "json"});
  add_setting_flags(flags, options.settings);
  flags.add("--strategy", &options.strategy, "see `list strategies`", {.required = true});
  add_memory_schedule_flag(flags, options.schedule);
}

std::string stage_table(const Plan& plan, const PlanCost& cost, const Study& study) {
  Table table{{{"stage", Align::right},
               {"devices"},
               {"operators", Align::right},
               {"from"},
               {"to"},
               {"time", Align::right},
               {"memory (1 in flight)", Align::right}},
              {}};
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    std::vector<std::string> devices;
    for (const DeviceId device : stage.devices) {
      devices.push_back(study.platform.devices[device].name);
    }
    const ReplicaCost& replica = cost.stages[s].replicas.front();
    table.rows.push_back({{std::to_string(s)},
                          {join(devices)},
                          {std::to_string(stage.operators.size())},
                          {study.model->operators[stage.operators.front()].name},
                          {study.model->operators[stage.operators.back()].name},
                          {to_text(replica.busy())},
                          {to_text(replica.memory.total(1, 1))}});
  }
  return to_text(table, use_color()); // on stderr, beside the plan
}

ExitStatus run(const PlanCommand& options) {
  const StrategyRow& strategy = find_by_name(strategies(), options.strategy, "strategy", {"--strategy", 0, 0});
  GivenStudy given = study_of_model(options.model, settings_of(options.settings, options.model));
  const Study& study = given.study;
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const GivenSchedule schedule = given_runnable_schedule(options.schedule, study);
  Scenario scenario{.strategy = &strategy};
  schedule.put_into(scenario);
  const int micro_batches = scenario.micro_batches = choose_micro_batches(memo, scenario);
  const Clock::time_point start = Clock::now();
  const PlanResult planned = plan_scenario(memo, scenario).result;
  const double taken = seconds_since(start);
  if (const Infeasible* reason = std::get_if<Infeasible>(&planned)) {
    Run infeasible;
    infeasible.strategy = options.strategy;
    infeasible.schedule = schedule.name();
    infeasible.engine = study.engine->name;
    infeasible.micro_batches = micro_batches;
    infeasible.why_not = reason->reason;
    infeasible.planning_seconds = taken;
    return report_infeasible(options.output, infeasible,
                             {study.model->name, study.platform.name, std::move(given.inputs)});
  }
  const Plan& plan = std::get<Plan>(planned);
  const Problem& problem = memo.costs.problem(micro_batches);
  const PlanCost cost = cost_plan(problem, plan);
  const Pace pace = pace_of(scenario, static_cast<int>(plan.stages.size()));
  const PlanFigures figures{bottleneck(problem, plan, cost), estimate_period(problem, plan, cost, pace),
                            memo.costs.bound(study.training.step == StepMode::barrier), taken};
  if (options.output.format == "json") {
    emit(options.output, plan_to_json(plan, cost, figures, *study.model, study.platform, true));
    return kDone;
  }
  emit(options.output, plan_to_yaml(plan, *study.model, study.platform));
  if (!options.output.quiet) {
    remark(stage_table(plan, cost, study) + "bottleneck " + to_text(figures.bottleneck) +
           " per micro-batch, estimate " + to_text(figures.estimate) + " per iteration, no plan below " +
           to_text(figures.lower_bound) + "\n" + (plan.note.empty() ? "" : "note: " + plan.note + "\n"));
  }
  return kDone;
}

} // namespace

Job command_plan(Flags& flags) { return make_job<PlanCommand>(flags, add_flags, run); }

} // namespace stagecraft
