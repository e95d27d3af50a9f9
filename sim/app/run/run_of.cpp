// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/run_of.hpp"

#include <filesystem>

#include "sim/app/common/progress.hpp"
#include "sim/base/process/worker_pool.hpp"
#include "sim/study/compare/compare.hpp"

namespace stagecraft {
namespace {

// The value of a flag as a list; an empty one where the flag is not given.
yaml::Node list_of(const std::string& value, const char* flag) {
  const Where where{flag, 0, 0};
  yaml::Node list{.kind = yaml::Node::Kind::sequence, .where = where};
  if (!value.empty()) {
    list.items.push_back(yaml::text_node(value, where));
  }
  return list;
}

// A plan's file, in the form that is given, as a study lists it; its path is from where the program is called.
yaml::Node plans_of(const RunOptions& run) {
  yaml::Node plans = list_of(run.plan.empty() ? "" : std::filesystem::absolute(run.plan).string(), "--plan");
  if (!run.plan_format.empty()) {
    yaml::Node& file = plans.items.front();
    yaml::Node entry{.kind = yaml::Node::Kind::map, .where = file.where};
    entry.entries.push_back({"format", file.where, yaml::text_node(run.plan_format, {"--plan-format", 0, 0})});
    entry.entries.push_back({"file", file.where, std::move(file)});
    file = std::move(entry);
  }
  return plans;
}

// The keys of a study that leave of its comparison what the flags name.
std::vector<Setting> narrowed_to(const RunOptions& run) {
  if (!run.strategy.empty() && !run.plan.empty()) {
    throw InputError({"--plan", 0, 0}, "given beside --strategy; allowed: one of them");
  }
  if (run.plan.empty() && !run.plan_format.empty()) {
    throw InputError({"--plan-format", 0, 0}, "given without --plan; allowed: beside a plan's file");
  }
  std::vector<Setting> settings;
  if (!(run.strategy + run.plan).empty()) {
    settings.push_back({"compare.strategies", "", list_of(run.strategy, "--strategy")});
    settings.push_back({"compare.plans", "", plans_of(run)});
  }
  if (!run.schedule.empty()) {
    settings.push_back({"compare.schedules", "", list_of(run.schedule, "--schedule")});
  }
  return settings;
}

GivenRun winner_of_study(const ModelOptions& model, std::vector<Setting> settings, const RunOptions& run, bool quiet) {
  const std::vector<Setting> narrowed = narrowed_to(run);
  settings.insert(settings.end(), narrowed.begin(), narrowed.end());
  GivenRun winner{compared_study(model, settings), {}};
  ScheduleCounts counts;
  StudyMemo memo(winner.given.study, counts);
  Progress progress(quiet);
  ComparisonResult result =
      compare(memo, {.progress = [&](std::size_t done, std::size_t of) { progress.show(done, of); },
                     .workers = cores(),
                     .changes = 0});
  winner.prepared = std::move(result.prepared[result.of_run.front()]);
  winner.prepared.run = std::move(result.comparison.runs.front());
  return winner;
}

GivenRun run_of_model(const ModelOptions& model, const std::vector<Setting>& settings, const RunOptions& run,
                      bool quiet) {
  GivenRun asked{study_of_model(model, settings), {}};
  add_given_files(run, asked.given.inputs);
  asked.prepared = replay_given(run, asked.given.study);
  if (!quiet) {
    remark_note(plain_training_note(asked.given.study, settings));
    remark_note(gradient_note(asked.given.study, settings, asked.prepared.plan));
  }
  return asked;
}

} // namespace

GivenRun run_of(const ModelOptions& model, const SettingOptions& settings, const RunOptions& run, bool quiet) {
  const std::vector<Setting> all = settings_of(settings, model);
  return is_study(model.model) ? winner_of_study(model, all, run, quiet) : run_of_model(model, all, run, quiet);
}

} // namespace stagecraft
