// stagecraft export: a split in the form of another tool, a model's kernels, or a run to carry out elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/run/prepare_real_run.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/plan_format/uniform_plan.hpp"
#include "sim/study/compare/plan_notes.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "sim/workload/layer/kernel_list.hpp"

namespace stagecraft {
namespace {

struct ExportCommand {
  std::string format; ///< the argument FORMAT, not --format
  ModelOptions model;
  OutputOptions output;
  SettingOptions settings;
  RunOptions run;
  RealRunOptions real;
};

void add_flags(Flags& flags, ExportCommand& options) {
  flags.add("FORMAT", &options.format, "see `list plan-formats` and `list configs`; or shapes; or pipeline",
            {.required = true});
  add_model_flags(flags, options.model);
  add_output_flags(flags, options.output, {"table"});
  add_setting_flags(flags, options.settings);
  add_plan_flags(flags, options.run);
  flags.add("--schedule", &options.run.schedule,
            "the schedule of the pipeline, or under which the plan must fit into memory, a name or a file: .csv "
            "(default: that of training.config, else 1f1b)");
  add_pipeline_flags(flags, options.real);
}

Study study_from(const ExportCommand& options) {
  return study_of_model(options.model, settings_of(options.settings, options.model)).study;
}

// Exports the kernels of a model at each of the study's micro-batch sizes.
ExitStatus export_shapes(const ExportCommand& options) {
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
  emit(options.output, text + " samples\n" + lines);
  return kDone;
}

// Exports the run that backend gpu of `execute` would carry out.
ExitStatus export_pipeline(const ExportCommand& options) {
  const pipeline::BackendRow& row = find_by_name(pipeline::backends(), "gpu", "backend", {"export", 0, 0});
  const PreparedRealRun ready =
      prepare_real_run(row, study_from(options), options.run, options.real, options.output.quiet);
  if (!ready.run().feasible) {
    remark("infeasible: " + ready.run().why_not + "\n");
    return kNothingFeasible;
  }
  emit(options.output, gpu::to_text(RealRun(options.real, row, ready.study, ready.prepared.front()).pipeline()));
  return kDone;
}

// The configuration of that name that plans are written as, or null.
const ConfigFormat* config_called(std::string_view name) {
  for (const ConfigFormat& format : config_formats()) {
    if (format.name == name && format.write != nullptr) {
      return &format;
    }
  }
  return nullptr;
}

// Names what of the training the written configuration does not carry.
void remark_lost(const std::string& text, const ExportCommand& options, const PlanToWrite& what) {
  if (options.output.quiet) {
    return;
  }
  for (const std::string& lost : lost_in(text, options.format, what)) {
    remark("note: " + options.format + " does not carry " + lost + "\n");
  }
}

// Forms of plans, configurations that are written, and what else may be exported.
const PlanFormat& plan_format_called(const std::string& name) {
  for (const PlanFormat& format : plan_formats()) {
    if (format.name == name) {
      return format;
    }
  }
  std::vector<std::string> known = names_of(plan_formats());
  for (const ConfigFormat& format : config_formats()) {
    if (format.write != nullptr) {
      known.emplace_back(format.name);
    }
  }
  known.insert(known.end(), {"shapes", "pipeline"});
  throw InputError({"export", 0, 0}, unknown_name("format", name, known));
}

ExitStatus run(const ExportCommand& options) {
  if (options.format == "shapes") {
    return export_shapes(options);
  }
  if (options.format == "pipeline") {
    return export_pipeline(options);
  }
  const ConfigFormat* config = config_called(options.format);
  const PlanFormat* format = config != nullptr ? nullptr : &plan_format_called(options.format);
  const Study study = study_from(options);
  const GivenPlan given = given_plan(options.run, study);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const GivenSchedule schedule = given_runnable_schedule(options.run.schedule, study);
  Scenario scenario;
  schedule.put_into(scenario);
  given.put_into(scenario);
  scenario.micro_batches = choose_micro_batches(memo, scenario);
  const PlanResult planned = plan_scenario(memo, scenario).result;
  const std::string name = options.run.strategy.empty() ? options.run.plan : options.run.strategy;
  if (const Infeasible* reason = std::get_if<Infeasible>(&planned)) {
    remark(name + " is infeasible: " + reason->reason + "\n");
    return kNothingFeasible;
  }
  if (given.strategy == nullptr) {
    remark_note(plan_notes(given.plan, *study.model, study.training));
  }
  const PlanToWrite to_write{std::get<Plan>(planned), *study.model,           study.platform,
                             study.training,          scenario.micro_batches, std::string(schedule.name())};
  const WrittenPlan written = config != nullptr ? write_config(*config, to_write) : write_plan(*format, to_write);
  if (const Infeasible* reason = std::get_if<Infeasible>(&written)) {
    remark("'" + options.format + "' cannot express the plan of " + name + ": " + reason->reason + "\n");
    return kNothingFeasible;
  }
  emit(options.output, std::get<std::string>(written));
  if (config != nullptr || options.format == "megatron") {
    remark_lost(std::get<std::string>(written), options, to_write);
  }
  return kDone;
}

} // namespace

Job command_export(Flags& flags) { return make_job<ExportCommand>(flags, add_flags, run); }

} // namespace stagecraft
