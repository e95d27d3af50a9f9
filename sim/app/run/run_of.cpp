// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/run_of.hpp"

#include <algorithm>
#include <cmath>

#include "sim/app/common/output.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/run/question.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/process/worker_pool.hpp"
#include "sim/strategy/strategy.hpp"
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

yaml::Node plans_of(const RunOptions& run) {
  yaml::Node plans = list_of("", "--plan");
  if (!run.plan.empty()) {
    plans.items.push_back(plan_node(run.plan, run.plan_format));
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

GivenRun winner_of(GivenStudy given, bool quiet) {
  GivenRun winner{std::move(given), {}};
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

GivenRun winner_of_study(const ModelOptions& model, std::vector<Setting> settings, const RunOptions& run, bool quiet) {
  const std::vector<Setting> narrowed = narrowed_to(run);
  settings.insert(settings.end(), narrowed.begin(), narrowed.end());
  return winner_of(compared_study(model, settings), quiet);
}

// A file that a result was made from may have changed since.
void compare_with_result(const std::string& file, const Question& question, const Run& run) {
  constexpr double kSame = 1e-9;
  const Seconds now = run.feasible ? run.metrics.iteration : Seconds{0};
  if (std::abs((now - question.iteration).value) > kSame * question.iteration.value) {
    const auto taking = [](Seconds time) { return time.value > 0 ? to_text(time) : std::string("no run that fits"); };
    remark("note: asked again, this takes " + taking(now) + " an iteration, in '" + file + "' " +
           taking(question.iteration) + "; the program or a file that it read has changed\n");
  }
}

// What leaves the best run of a comparison: its row. A plan's file is among those that the study lists.
std::vector<Setting> narrowed_to_best(const Question& question) {
  const std::vector<std::string> known = names_of(strategies());
  RunOptions best = question.run;
  std::vector<Setting> settings{{"training.micro_batches", std::to_string(question.micro_batches)}};
  if (std::find(known.begin(), known.end(), best.strategy) == known.end()) {
    best.strategy.clear();
    settings.push_back({"compare.strategies", "[]"});
  }
  const std::vector<Setting> narrowed = narrowed_to(best);
  settings.insert(settings.end(), narrowed.begin(), narrowed.end());
  return settings;
}

GivenRun run_of_result(const ModelOptions& model, const std::vector<Setting>& settings, const RunOptions& run,
                       bool quiet) {
  refuse_model_flags(model);
  const Question question = question_of(model.model);
  const bool as_it_was = (run.strategy + run.plan + run.schedule).empty();
  std::vector<Setting> all = as_it_was && question.comparison ? narrowed_to_best(question) : std::vector<Setting>{};
  all.insert(all.end(), settings.begin(), settings.end());
  const std::vector<Setting> narrowed = narrowed_to(run);
  all.insert(all.end(), narrowed.begin(), narrowed.end());
  GivenStudy given = asked_again(model.model, question, all);
  GivenRun again;
  if (question.comparison) {
    again = winner_of(std::move(given), quiet);
  } else {
    again.given = std::move(given);
    RunOptions asked = question.run;
    if (!(run.strategy + run.plan).empty()) {
      asked = {run.strategy, run.plan, run.plan_format, asked.schedule};
    }
    asked.schedule = run.schedule.empty() ? asked.schedule : run.schedule;
    add_given_files(asked, again.given.inputs);
    again.prepared = replay_given(asked, again.given.study);
  }
  if (as_it_was && settings.empty() && !quiet) {
    compare_with_result(model.model, question, again.prepared.run);
  }
  return again;
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
  if (is_result(model.model)) {
    return run_of_result(model, all, run, quiet);
  }
  return is_study(model.model) ? winner_of_study(model, all, run, quiet) : run_of_model(model, all, run, quiet);
}

} // namespace stagecraft
