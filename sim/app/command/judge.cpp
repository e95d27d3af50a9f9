// stagecraft judge: planners x models x platforms.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/judge.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/run/given_study.hpp"
#include "sim/base/system/confinement.hpp"
#include "sim/report/table.hpp"
#include "sim/study/keys/input_files.hpp"

namespace stagecraft {
namespace {

struct JudgeCommand {
  std::string study;
  OutputOptions output;
  SettingOptions settings;
  bool all_rows = false;
  bool allow_commands = false;
};

void add_flags(Flags& flags, JudgeCommand& options) {
  flags.add("STUDY", &options.study, "a study file with the key 'judge'", {.required = true});
  add_result_flags(flags, options.output, {"table", "json", "csv", "html", "md"});
  add_table_flags(flags, options.output);
  add_setting_flags(flags, options.settings);
  flags.add("--all", &options.all_rows, "print every plan beside the scores");
  flags.add("--allow-commands", &options.allow_commands, "run the commands that the study names, without asking");
}

std::string signed_percent(double share) {
  return (share >= 0 ? "+" : "") + percent(share, std::abs(share) < 0.1 ? 1 : 0);
}

Table score_table(const Judgement& judgement) {
  Table table{{{"planner"},
               {"fits", Align::right},
               {"wins", Align::right},
               {"regret", Align::right},
               {"regret 95 %", Align::right},
               {"over bound", Align::right},
               {"over bound 95 %", Align::right},
               {"bias", Align::right},
               {"Spearman", Align::right},
               {"planning", Align::right},
               {"most", Align::right},
               {"by a person", Align::right}},
              {}};
  const bool has_remarks = std::any_of(judgement.planners.begin(), judgement.planners.end(),
                                       [](const PlannerScore& score) { return !score.why_not.empty(); });
  if (has_remarks) {
    table.columns.push_back({"remarks"});
  }
  for (const PlannerScore& score : judgement.planners) {
    const std::string fits = std::to_string(score.feasible) + " of " + std::to_string(score.cases);
    std::vector<Cell> row = {{score.planner}, {fits}, {std::to_string(score.wins)}};
    if (score.feasible > 0) {
      for (const double share : {score.median_regret, score.high_regret, score.median_over_bound, score.high_over_bound,
                                 score.median_bias}) {
        row.push_back({signed_percent(share)});
      }
    }
    row.resize(8);
    row.push_back({score.spearman ? to_text(*score.spearman, 2) : ""});
    row.push_back({to_text(Seconds{score.median_planning_seconds})});
    row.push_back({to_text(Seconds{score.most_planning_seconds})});
    row.push_back({score.median_manual_seconds ? to_text(*score.median_manual_seconds) : ""});
    if (has_remarks) {
      row.push_back({score.why_not});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table plan_table(const Judgement& judgement) {
  Table table{{{"model"},
               {"platform"},
               {"planner"},
               {"M", Align::right},
               {"iteration", Align::right},
               {"speedup", Align::right},
               {"imbalance", Align::right},
               {"regret", Align::right},
               {"over bound", Align::right},
               {"bias", Align::right},
               {"remarks"}},
              {}};
  for (const JudgedPlan& plan : judgement.plans) {
    const bool wins = plan.feasible && plan.regret <= 0;
    const Style style = wins ? Style::good : plan.feasible ? Style::plain : Style::dim;
    std::vector<Cell> row = {{plan.model, style}, {plan.platform, style}, {plan.planner, style}};
    if (plan.feasible) {
      row.push_back({std::to_string(plan.micro_batches), style});
      row.push_back({to_text(plan.iteration), style});
      row.push_back({to_text(plan.speedup, 2), style});
      row.push_back({signed_percent(plan.load_imbalance), style});
      for (const double share : {plan.regret, plan.over_bound, plan.bias}) {
        row.push_back({signed_percent(share), style});
      }
    } else {
      row.push_back({""});
      row.push_back({"infeasible", Style::bad});
    }
    row.resize(table.columns.size() - 1);
    std::string remark = plan.feasible ? plan.note : plan.why_not;
    if (plan.spread && plan.spread->feasible > 0) {
      const Spread& spread = *plan.spread;
      remark = std::to_string(spread.feasible) + " of " + std::to_string(spread.draws) + " draws fit: best " +
               to_text(spread.best) + ", 5 to 95 % " + to_text(spread.low) + " to " + to_text(spread.high);
    }
    if (!plan.staleness.empty()) {
      remark += (remark.empty() ? "" : "; ") + staleness_remark(plan.staleness);
    }
    row.push_back({remark, style});
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Sums up the table: one sentence for each question that it answers.
std::string summary(const Judgement& judgement) {
  const PlannerScore& best = judgement.planners.front();
  if (best.feasible == 0) {
    return "No planner finds a plan that fits.\n";
  }
  std::string text = "Under " + judgement.schedule + ", " + best.planner +
                     " is the best planner: " + std::to_string(best.wins) + " wins in " + std::to_string(best.cases) +
                     " cases, a median regret of " + signed_percent(best.median_regret) + ", and " +
                     signed_percent(best.median_over_bound) + " over the bound that no plan beats.\n";
  const auto manual = std::find_if(judgement.planners.begin(), judgement.planners.end(),
                                   [](const PlannerScore& score) { return score.median_manual_seconds.has_value(); });
  if (manual == judgement.planners.end()) {
    return text;
  }
  const std::string& first = judgement.plans.front().planner; // the planner that the study asks about
  const auto asked = std::find_if(judgement.planners.begin(), judgement.planners.end(),
                                  [&](const PlannerScore& score) { return score.planner == first; });
  const double planning = std::max(asked->median_planning_seconds, 1e-9);
  text += "As modelled, a person takes " + to_text(*manual->median_manual_seconds) + " per split, " +
          to_text(manual->median_manual_seconds->value / planning, 0) + " times as long as " + first +
          "; to measure every operator takes " + to_text(*judgement.median_profile_seconds) + ".\n";
  return text;
}

// With the plans asked for, --columns and --sort are of these.
std::string text_of(const Judgement& judgement, const JudgeCommand& options) {
  const TableView plain = plain_view_of(options.output);
  const TableView view = view_of(options.output);
  return summary(judgement) + "\n" + to_text(score_table(judgement), options.all_rows ? plain : view) +
         (options.all_rows ? "\n" + to_text(plan_table(judgement), view) : "");
}

std::string markdown_of(const Judgement& judgement, const JudgeCommand& options) {
  return summary(judgement) + "\n" + to_markdown(score_table(judgement)) +
         (options.all_rows ? "\n" + to_markdown(plan_table(judgement)) : "") + how_to_repeat(options.output);
}

// Asks on the terminal; the answer has to be typed.
bool ask_to_run(const std::vector<const Planner*>& foreign) {
  std::set<std::string> lines;
  for (const Planner* planner : foreign) {
    lines.insert("  " + to_text(planner->command) + "\n");
  }
  std::string question = "The study runs programs in '" + foreign.front()->command.folder.string() + "':\n";
  for (const std::string& line : lines) {
    question += line;
  }
  remark(question + "They can read and write your files. Run them? [yes/no] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes" || answer == "y";
}

// A study may come from a stranger, so what it runs is the user's to allow.
void allow_commands(const JudgeStudy& study, const JudgeCommand& options) {
  std::vector<const Planner*> foreign;
  for (const Planner& planner : study.planners) {
    if (planner.strategy == nullptr) {
      foreign.push_back(&planner);
    }
  }
  if (foreign.empty()) {
    return;
  }
  const bool can_ask = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  if (!options.allow_commands && !(can_ask && ask_to_run(foreign))) {
    throw InputError(foreign.front()->where, "the study runs the program: " + to_text(foreign.front()->command) +
                                                 "; allowed: with --allow-commands, if you trust it");
  }
  const std::vector<std::string> gaps = confinement_gaps();
  if (!gaps.empty() && !options.output.quiet) {
    remark("here the commands of a study " + join(gaps, ", ") + "\n");
  }
}

ExitStatus run(const JudgeCommand& options) {
  InputFiles files;
  JudgeStudy study =
      load_judge_study(yaml::load(options.study), folders_of(options.study), settings_of(options.settings));
  check_columns(options.output, options.all_rows ? plan_table({}) : score_table({}));
  allow_commands(study, options);
  study.folders.files = &files;
  Judgement judgement = [&] {
    Progress progress(options.output.quiet);
    return judge(study, [&](std::size_t done, std::size_t all) { progress.show(done, all); });
  }();
  judgement.inputs = inputs_of(options.study, files);
  emit(options.output, {.table = [&] { return text_of(judgement, options); },
                        .json = [&] { return to_json(judgement, true); },
                        .csv = [&] { return to_csv(judgement); },
                        .md = [&] { return markdown_of(judgement, options); }});
  return judgement.planners.front().feasible > 0 ? kDone : kNothingFeasible;
}

} // namespace

Job command_judge(Flags& flags) { return make_job<JudgeCommand>(flags, add_flags, run); }

} // namespace stagecraft
