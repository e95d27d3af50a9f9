// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/given_run.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "sim/app/common/output.hpp"
#include "sim/base/system/file.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/study/compare/prepare.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/planning/plan_scenario.hpp"

namespace stagecraft {

void add_plan_flags(Flags& flags, RunOptions& options) {
  flags.add("--strategy", &options.strategy, "the strategy that makes the plan, see `list strategies`");
  flags.add("--plan", &options.plan, "a plan file, in any form, instead of a strategy", {.name = "FILE"});
  add_plan_format_flag(flags, options.plan_format);
}

void add_plan_format_flag(Flags& flags, std::string& format) {
  flags.add("--plan-format", &format, "form of the plan file, where its content does not tell it", {.name = "NAME"});
}

void add_run_schedule_flag(Flags& flags, std::string& schedule) {
  flags.add("--schedule", &schedule,
            "a name, see `list schedules`, or a file: .csv (default: that of training.config, else 1f1b)");
}

void add_memory_schedule_flag(Flags& flags, std::string& schedule) {
  flags.add("--schedule", &schedule,
            "the schedule under which the plan must fit into memory, a name or a file: .csv (default: that of "
            "training.config, else 1f1b)");
}

void GivenPlan::put_into(Scenario& scenario) const {
  scenario.strategy = strategy;
  scenario.plan = strategy == nullptr ? &plan : nullptr;
}

yaml::Node plan_node(const std::string& file, const std::string& format) {
  const Where where{"--plan", 0, 0};
  yaml::Node path = yaml::text_node(std::filesystem::absolute(file).string(), where);
  if (format.empty()) {
    return path;
  }
  yaml::Node entry{.kind = yaml::Node::Kind::map, .where = where};
  entry.entries.push_back({"format", where, yaml::text_node(format, {"--plan-format", 0, 0})});
  entry.entries.push_back({"file", where, std::move(path)});
  return entry;
}

GivenPlan given_plan(const RunOptions& options, const Study& study) {
  if (options.strategy.empty() == options.plan.empty()) {
    throw InputError({"command line", 0, 0}, "give either --strategy or --plan");
  }
  if (options.strategy.empty()) {
    return {nullptr, load_plan(options.plan, options.plan_format, *study.model, study.platform)};
  }
  return {&find_by_name(strategies(), options.strategy, "strategy", {"--strategy", 0, 0}), {}};
}

std::optional<ScheduleFile> given_orders(const std::string& name) {
  if (!name.ends_with(".csv")) {
    return std::nullopt;
  }
  return read_schedule(read_file(name), name);
}

void remark_note(const std::string& note) {
  if (!note.empty()) {
    remark("note: " + note + "\n");
  }
}

namespace {

// The schedule that the configuration names, as take_config() has it; null where it names none.
const StudySchedule* schedule_of_config(const Study& study) {
  return !study.training.config.empty() && study.schedules.size() == 1 ? &study.schedules.front() : nullptr;
}

// A line where the study asks for pairs of a kind that this schedule lacks, unless all of the study lack them, which
// its own lines say.
void remark_delayed_weights(const ScheduleRow& row, const Study& study) {
  if (study.training.delayed_weights && !row.pairs_by_layers &&
      std::any_of(study.schedules.begin(), study.schedules.end(), std::mem_fn(&StudySchedule::pairs_by_layers))) {
    remark_note("training.delayed_weights changes nothing under " + std::string(row.name) +
                ", which has no pairs of forward and backward by layers, as combined-1f1b has");
  }
}

} // namespace

void GivenSchedule::put_into(Scenario& scenario) const {
  scenario.schedule = row;
  scenario.orders = row != nullptr ? nullptr : orders();
}

GivenSchedule given_schedule(const std::string& name, const Study& study) {
  GivenSchedule given;
  given.file = given_orders(name);
  if (given.file) {
    return given;
  }
  const StudySchedule* of_config = name.empty() ? schedule_of_config(study) : nullptr;
  given.of_config = of_config != nullptr ? of_config->own.get() : nullptr;
  if (given.of_config == nullptr) {
    given.row = of_config != nullptr
                    ? of_config->row
                    : &find_by_name(schedules(), name.empty() ? "1f1b" : name, "schedule", {"--schedule", 0, 0});
    remark_delayed_weights(*given.row, study);
  }
  return given;
}

GivenSchedule given_runnable_schedule(const std::string& name, const Study& study) {
  GivenSchedule given = given_schedule(name, study);
  if (given.file) {
    if (const auto defects = schedule_defects(*given.file); !defects.empty()) {
      throw InputError({name, 0, 0}, "the schedule cannot run: " + join(defects, "; "));
    }
  }
  return given;
}

void add_given_files(const RunOptions& options, std::vector<std::string>& inputs) {
  if (!options.plan.empty()) {
    inputs.push_back(options.plan);
  }
  if (options.schedule.ends_with(".csv")) {
    inputs.push_back(options.schedule);
  }
}

Prepared replay_given(const RunOptions& options, const Study& study) {
  const GivenSchedule schedule = given_schedule(options.schedule, study);
  const GivenPlan given = given_plan(options, study);
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  Scenario scenario;
  schedule.put_into(scenario);
  given.put_into(scenario);
  scenario.micro_batches = choose_micro_batches(memo, scenario);
  std::vector<Prepared> prepared = prepare(memo, {scenario});
  if (schedule.file && !schedule.file->defects.empty()) { // the simulator never sees the file's messages
    Prepared& broken = prepared.front();
    broken = {.run = broken.run};
    broken.run.why_not = "the schedule cannot run: " + join(schedule_defects(*schedule.file), "; ");
  }
  replay(memo.costs, prepared);
  return std::move(prepared.front());
}

} // namespace stagecraft
