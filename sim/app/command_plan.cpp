// stagecraft plan, replay and check: one split of one model on one platform.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "sim/app/given_run.hpp"
#include "sim/base/clock.hpp"
#include "sim/base/file.hpp"
#include "sim/base/schema.hpp"
#include "sim/plan/estimate.hpp"
#include "sim/plan_format/plan_file.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/memory_report.hpp"
#include "sim/report/table.hpp"
#include "sim/study/compare.hpp"
#include "sim/study/plan_scenario.hpp"
#include "sim/study/run_defects.hpp"
#include "sim/workload/layer/kernel_list.hpp"

namespace stagecraft {
namespace {

// ", read as …" for one of another tool.
std::string in_dialect(const ScheduleFile& file) {
  const ScheduleDialect& dialect = find_by_name(schedule_dialects(), file.dialect, "dialect", {"dialect", 0, 0});
  return &dialect == schedule_dialects().data() ? "" : ", read as '" + file.dialect + "': " + std::string(dialect.help);
}

// The run's timeline, or one of as many iterations as asked for; figures stay those of the run.
Timeline timeline_to_show(const Options& options, const Study& study, const Prepared& run) {
  if (options.shown_iterations == 0 || options.shown_iterations == run.timeline.iterations) {
    return run.timeline;
  }
  const double tasks = static_cast<double>(run.graph->tasks()) * options.shown_iterations;
  constexpr double kMostTasks = 1e8; // some gigabytes
  if (tasks > kMostTasks) {
    throw InputError({"--iterations", 0, 0}, "tasks x iterations is too large; allowed: at most 100000000");
  }
  const ReplayRequest request{*run.graph, study.platform, options.shown_iterations};
  return std::move(study.engine->replay({&request, 1}).front());
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
  return to_text(table, use_color());
}

// An infeasible run is a result: JSON says it in `why_not`, other formats on stderr.
int report_infeasible(const Options& options, const Run& run, const RunOrigin& origin) {
  if (options.format == "json") {
    emit(options, to_json(run, origin, true));
  } else if (options.format == "csv") {
    emit(options, to_csv(Comparison{.runs = {run}}));
  } else {
    remark(run.strategy + " is infeasible: " + run.why_not +
           (run.would_fit.empty() ? "" : "; would fit with " + run.would_fit) + "\n");
  }
  return kNothingFeasible;
}

// The kernels of a model at each of the study's micro-batch sizes.
int export_shapes(const Options& options) {
  const Study study = study_from(options);
  std::string text = "# " + study.model->name + ", micro-batches of";
  std::string lines;
  std::set<std::string> seen;
  for (const int count : study.training.micro_batches) {
    const double samples = static_cast<double>(study.training.global_batch) / count;
    text += " " + to_text(samples, 0);
    for (const Kernel& kernel : kernels_of(*study.model, study.training.precision, samples)) {
      const std::string line = to_text(kernel) + "\n";
      lines += seen.insert(line).second ? line : "";
    }
  }
  if (lines.empty()) {
    remark("'" + study.model->name + "' says nothing of shapes: its costs are given by numbers\n");
    return kNothingFeasible;
  }
  emit(options, text + " samples\n" + lines);
  return kDone;
}

} // namespace

int command_plan(const Options& options) {
  const StrategyRow& strategy = find_by_name(strategies(), options.strategy, "strategy", {"--strategy", 0, 0});
  std::vector<std::string> inputs;
  const Study study = study_from(options, &inputs);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  Scenario scenario{.strategy = &strategy, .schedule = &given_schedule(options)};
  const int micro_batches = scenario.micro_batches = choose_micro_batches(memo, scenario);
  const Clock::time_point start = Clock::now();
  const PlanResult planned = plan_scenario(memo, scenario).result;
  const double taken = seconds_since(start);
  if (const Infeasible* reason = std::get_if<Infeasible>(&planned)) {
    Run run;
    run.strategy = options.strategy;
    run.schedule = given_schedule(options).name;
    run.engine = study.engine->name;
    run.micro_batches = micro_batches;
    run.why_not = reason->reason;
    run.planning_seconds = taken;
    return report_infeasible(options, run, {study.model->name, study.platform.name, std::move(inputs)});
  }
  const Plan& plan = std::get<Plan>(planned);
  const Problem& problem = memo.costs.problem(micro_batches);
  const PlanCost cost = cost_plan(problem, plan);
  const PlanFigures figures{bottleneck(problem, plan, cost), estimate_iteration(problem, plan, cost),
                            memo.costs.bound(study.training.step == StepMode::barrier), taken};
  if (options.format == "json") {
    emit(options, plan_to_json(plan, cost, figures, *study.model, study.platform, true));
    return kDone;
  }
  emit(options, plan_to_yaml(plan, *study.model, study.platform));
  if (!options.quiet) {
    remark(stage_table(plan, cost, study) + "bottleneck " + to_text(figures.bottleneck) +
           " per micro-batch, estimate " + to_text(figures.estimate) + " per iteration, no plan below " +
           to_text(figures.lower_bound) + "\n" + (plan.note.empty() ? "" : "note: " + plan.note + "\n"));
  }
  return kDone;
}

int command_replay(const Options& options) {
  std::vector<std::string> inputs;
  const Study study = study_from(options, &inputs);
  const Prepared one = replay_given(options, study);
  add_given_files(options, inputs);
  const RunOrigin origin{study.model->name, study.platform.name, std::move(inputs)};
  if (!one.run.feasible) {
    return report_infeasible(options, one.run, origin);
  }
  const Timeline shown = timeline_to_show(options, study, one);
  const std::string trace =
      options.timeline || !options.trace.empty() ? chrome_trace(*one.graph, shown, study.platform) : "";
  if (!options.trace.empty()) {
    write_file(options.trace, trace);
  }
  const MemoryReport memory = report_memory(*one.graph, shown, one.run.devices);
  if (!options.memory_series.empty()) {
    write_file(options.memory_series, memory_csv(memory));
  }
  Comparison comparison{study.model->name, study.platform.name, study.training.global_batch, {one.run}, {}};
  comparison.verdict = make_verdict(comparison);
  if (options.format == "json") {
    emit(options,
         to_json(one.run, origin, true,
                 {{"memory", memory_json(memory, options.timeline)}, {"timeline", options.timeline ? trace : ""}}));
  } else if (options.format == "csv") {
    emit(options, to_csv(comparison));
  } else {
    PictureOptions picture;
    picture.width = terminal_width() - 28;
    picture.color = use_color();
    picture.iterations = std::max(options.shown_iterations, 1);
    picture.iteration = shown.iterations - picture.iterations;
    std::string text;
    for (const std::string& sentence : comparison.verdict) {
      text += sentence + "\n";
    }
    text += memory_sentence(memory) + "\n";
    emit(options, text + "\n" + ascii_timeline(*one.graph, shown, one.run.devices, picture));
  }
  return kDone;
}

namespace {

std::vector<std::string> defects_of_plan(const Options& options) {
  const Study study = study_from(options);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const Plan plan = load_plan(options.file, options.plan_format, *study.model, study.platform);
  Scenario scenario{.plan = &plan, .schedule = &given_schedule(options)};
  scenario.micro_batches = choose_micro_batches(memo, scenario);
  return run_defects(memo, scenario);
}

} // namespace

int command_check(const Options& options) {
  const std::optional<ScheduleFile> orders = given_orders(options.file);
  if (orders && !options.model.empty()) {
    throw InputError(
        {"command line", 0, 0},
        "a schedule is checked by itself; to see whether a plan can run it: replay MODEL --schedule FILE.csv");
  }
  if (!orders && options.model.empty()) {
    throw InputError({"command line", 0, 0},
                     "a plan is checked against a model; allowed: check PLAN MODEL --platform P");
  }
  const std::vector<std::string> defects = orders ? schedule_defects(*orders) : defects_of_plan(options);
  if (options.format == "json") {
    nlohmann::ordered_json json = {
        {"schema", kSchema}, {"file", options.file}, {"valid", defects.empty()}, {"defects", defects}};
    if (orders) {
      json["dialect"] = orders->dialect;
    }
    emit(options, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    const std::string what = orders ? "a valid schedule" + in_dialect(*orders) : "a valid plan that fits";
    std::string text = defects.empty() ? options.file + ": " + what + "\n" : "";
    for (const std::string& defect : defects) {
      text += options.file + ": " + defect + "\n";
    }
    emit(options, text);
  }
  return defects.empty() ? kDone : kNothingFeasible;
}

int command_export(const Options& options) {
  if (options.what == "shapes") {
    return export_shapes(options);
  }
  if (options.what == "pipeline") {
    return command_export_pipeline(options);
  }
  const PlanFormat& format = find_by_name(plan_formats(), options.what, "plan format", {"export", 0, 0});
  const Study study = study_from(options);
  const GivenPlan given = given_plan(options, study);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  Scenario scenario{.schedule = &given_schedule(options)};
  given.put_into(scenario);
  scenario.micro_batches = choose_micro_batches(memo, scenario);
  const PlanResult planned = plan_scenario(memo, scenario).result;
  const std::string name = options.strategy.empty() ? options.plan : options.strategy;
  if (const Infeasible* reason = std::get_if<Infeasible>(&planned)) {
    remark(name + " is infeasible: " + reason->reason + "\n");
    return kNothingFeasible;
  }
  const WrittenPlan written = write_plan(
      format, {std::get<Plan>(planned), *study.model, study.platform, study.training, scenario.micro_batches});
  if (const Infeasible* reason = std::get_if<Infeasible>(&written)) {
    remark("'" + std::string(format.name) + "' cannot express the plan of " + name + ": " + reason->reason + "\n");
    return kNothingFeasible;
  }
  emit(options, std::get<std::string>(written));
  return kDone;
}

} // namespace stagecraft
