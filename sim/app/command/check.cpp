// stagecraft check: whether a plan or a schedule is valid; if not, why.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/run/question.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/plan_format/plan_file.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/study/compare/plan_notes.hpp"
#include "sim/study/compare/run_defects.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {
namespace {

struct CheckCommand {
  std::string file, plan_format;
  ModelOptions model;
  OutputOptions output;
  SettingOptions settings;
  std::string schedule;
};

void add_flags(Flags& flags, CheckCommand& options) {
  flags.add("FILE", &options.file, "a plan file, in any form, a schedule: .csv, or a result: the plan of its best run",
            {.required = true});
  add_plan_format_flag(flags, options.plan_format);
  add_model_flags(flags, options.model, {.required = false});
  add_result_flags(flags, options.output, {"table", "json"});
  add_setting_flags(flags, options.settings);
  add_memory_schedule_flag(flags, options.schedule);
}

// ", read as …" for a schedule in another tool's dialect.
std::string in_dialect(const ScheduleFile& file) {
  const ScheduleDialect& dialect = find_by_name(schedule_dialects(), file.dialect, "dialect", {"dialect", 0, 0});
  return &dialect == schedule_dialects().data() ? "" : ", read as '" + file.dialect + "': " + std::string(dialect.help);
}

// A line for each defect, with the line of the file where there is one.
std::string lines_of(const ScheduleFile& orders, const std::string& file) {
  std::string text;
  for (const ScheduleDefect& defect : find_defects(orders)) {
    text += to_text(place_of(defect, orders, file)) + ": " + defect.text + "\n";
  }
  return text;
}

std::string lines_of(const std::vector<std::string>& defects, const std::string& file) {
  std::string text;
  for (const std::string& defect : defects) {
    text += file + ": " + defect + "\n";
  }
  return text;
}

/// What is wrong, and what a reader must know of a plan that is right.
struct Findings {
  std::vector<std::string> defects;
  std::string note;
};

Findings findings_of(const Study& study, const Plan& plan, const std::string& schedule, int micro_batches) {
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  const GivenSchedule given = given_runnable_schedule(schedule, study);
  Scenario scenario{.plan = &plan};
  given.put_into(scenario);
  scenario.micro_batches = micro_batches > 0 ? micro_batches : choose_micro_batches(memo, scenario);
  return {run_defects(memo, scenario), plan_notes(plan, *study.model, study.training)};
}

Findings check_plan(const CheckCommand& options) {
  const Study study = study_of_model(options.model, settings_of(options.settings, options.model)).study;
  const Plan plan = load_plan(options.file, options.plan_format, *study.model, study.platform);
  return findings_of(study, plan, options.schedule, 0);
}

// The plan of a result's best run, for the model and platform of its question.
Findings check_result(const CheckCommand& options) {
  const Question question = question_of(options.file);
  const std::vector<Setting> settings = settings_of(options.settings, options.model);
  const Study study = asked_again(options.file, question, settings).study;
  const Plan plan = read_plan(yaml::parse(plan_of_result(options.file), options.file), *study.model, study.platform);
  const std::string& schedule = options.schedule.empty() ? question.run.schedule : options.schedule;
  return findings_of(study, plan, schedule, question.micro_batches);
}

ExitStatus run(const CheckCommand& options) {
  const std::optional<ScheduleFile> orders = given_orders(options.file);
  if (orders && !options.model.model.empty()) {
    throw InputError(
        {"command line", 0, 0},
        "a schedule is checked by itself; to see whether a plan can run it: replay MODEL --schedule FILE.csv");
  }
  const bool of_result = !orders && options.model.model.empty() && is_result(options.file);
  if (!orders && !of_result && options.model.model.empty()) {
    throw InputError({"command line", 0, 0},
                     "a plan is checked against a model; allowed: check PLAN MODEL --platform P");
  }
  const auto [defects, note] = orders      ? Findings{schedule_defects(*orders), ""}
                               : of_result ? check_result(options)
                                           : check_plan(options);
  if (options.output.format == "json") {
    nlohmann::ordered_json json = {
        {"schema", kSchema}, {"file", options.file}, {"valid", defects.empty()}, {"defects", defects}};
    if (orders) {
      json["dialect"] = orders->dialect;
    } else {
      json["note"] = note.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(note);
    }
    emit(options.output, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    const std::string what = orders ? "a valid schedule" + in_dialect(*orders) : "a valid plan that fits";
    std::string text = defects.empty() ? options.file + ": " + what + "\n" : "";
    text += orders ? lines_of(*orders, options.file) : lines_of(defects, options.file);
    text += note.empty() ? "" : options.file + ": note: " + note + "\n";
    emit(options.output, text);
  }
  return defects.empty() ? kDone : kNothingFeasible;
}

} // namespace

Job command_check(Flags& flags) { return make_job<CheckCommand>(flags, add_flags, run); }

} // namespace stagecraft
