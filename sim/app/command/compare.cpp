// stagecraft compare: strategies x schedules, replayed and ranked.
// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare.hpp"

#include <algorithm>

#include "sim/analysis/explain.hpp"
#include "sim/app/common/given_run.hpp"
#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/common/workers.hpp"
#include "sim/base/file.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/table.hpp"
#include "sim/result/json_parts.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/result/setting_json.hpp"
#include "sim/study/replay_prepared.hpp"
#include "sim/timeline/device_names.hpp"

namespace stagecraft {
namespace {

struct CompareCommand {
  ModelOptions model; ///< MODEL may also be a study
  OutputOptions output;
  SettingOptions settings;
  bool pictures = false, all_rows = false;
  int workers = 0;   ///< 0: one per core
  int timelines = 0; ///< number of best runs whose timelines go into the JSON
  std::vector<std::string> plans;
  std::string plan_format, trace;
};

void add_flags(Flags& flags, CompareCommand& options) {
  constexpr int kMostTimelines = 100;
  add_model_flags(flags, options.model,
                  {.name = "STUDY", .help = "a study file; or a model, as for `replay`, with --platform"});
  add_output_flags(flags, options.output, {"table", "json", "csv"});
  add_setting_flags(flags, options.settings);
  add_confidence_flag(flags, options.settings);
  add_workers_flag(flags, options.workers);
  flags.add("--pictures", &options.pictures, "draw the timelines of the winner and of the naive split");
  flags.add(
      "--timeline", &options.timelines,
      "put the timelines of the best N runs, and what holds the best one back, into the JSON (3 where no N is given)",
      {.name = "N", .check = whole_number(0, kMostTimelines), .alone = "3"});
  flags.add("--all", &options.all_rows, "print every row of the table");
  flags.add("--plan", &options.plans, "a plan file to rank beside ours, in any form; may be repeated",
            {.name = "FILE"});
  add_plan_format_flag(flags, options.plan_format);
  flags.add("--trace", &options.trace, "write the winner's timeline as a Chrome/Perfetto trace", {.name = "FILE"});
}

constexpr std::size_t kShownFeasible = 20;
constexpr std::size_t kShownInfeasible = 10;

/// A row of the table: a run, the other schedules under which its strategy's split runs in the same order, and the
/// other strategies that made the same split.
struct ShownRun {
  std::size_t run;
  std::vector<std::string> schedules, strategies;

  void add(const Run& shown, const Run& equal) {
    const bool same_strategy = equal.strategy == shown.strategy;
    std::vector<std::string>& names = same_strategy ? schedules : strategies;
    const std::string& name = same_strategy ? equal.schedule : equal.strategy;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
};

// Whether a run is ranked after those of exact training, as throughput only.
bool is_apart(const Comparison& comparison, const Run& run) { return run.feasible && !comparison.competes(run); }

// Of the runs ranked apart, or of all others: the best ones, equal ones in one row, and a few infeasible ones; with
// `all`, every run in its own row.
std::vector<ShownRun> shown_runs(const ComparisonResult& result, bool apart, bool all) {
  const auto& runs = result.comparison.runs;
  std::vector<ShownRun> shown;
  std::size_t feasible = 0;
  std::size_t infeasible = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (apart != is_apart(result.comparison, runs[i])) {
      continue;
    }
    const auto same = std::find_if(shown.begin(), shown.end(), [&](const ShownRun& other) {
      return runs[i].feasible && result.of_run[other.run] == result.of_run[i];
    });
    if (!all && same != shown.end()) {
      same->add(runs[same->run], runs[i]);
    } else if (all || (runs[i].feasible ? feasible++ < kShownFeasible : infeasible++ < kShownInfeasible)) {
      shown.push_back({i, {}, {}});
    }
  }
  return shown;
}

std::string remarks_of(const Run& run, const ShownRun& shown, bool apart) {
  std::vector<std::string> remarks = remarks_of(run);
  if (apart) { // a column says it
    std::erase(remarks, staleness_remark(run.staleness));
  }
  if (run.perturbed) {
    remarks.push_back("perturbed: median " + to_text(run.perturbed->median) + ", 5 to 95 % " +
                      to_text(run.perturbed->low) + " to " + to_text(run.perturbed->high));
  }
  if (run.confidence) {
    const RunSpread& spread = run.confidence->iteration;
    remarks.push_back("5 to 95 %: " + to_text(spread.low) + " to " + to_text(spread.high) + ", best in " +
                      percent(run.confidence->best, 0));
  }
  if (!shown.schedules.empty()) {
    remarks.push_back("the same as under " + join(shown.schedules));
  }
  if (!shown.strategies.empty()) {
    remarks.push_back("the same split as " + join(shown.strategies));
  }
  return join(remarks, "; ");
}

// Whether runs are counted in tokens instead of samples.
bool counts_tokens(const ComparisonResult& result) {
  const auto& runs = result.comparison.runs;
  return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.tokens_per_second > 0; });
}

// Samples per second; or tokens per second, those of each device, and how much of the peak that is.
std::vector<std::string> rate_cells(const Run& run, bool tokens) {
  if (!tokens) {
    return {to_text(run.samples_per_second, 1)};
  }
  return {to_text(run.tokens_per_second, 0), to_text(value_of(metric("tokens_per_device_second"), run), 0),
          run.mfu > 0 ? percent(run.mfu, 1) : ""};
}

std::vector<std::string> feasible_cells(const Run& run, const ShownRun& shown, bool apart, bool tokens) {
  const Bytes peak = *std::max_element(run.metrics.peak_memory.begin(), run.metrics.peak_memory.end());
  std::vector<std::string> cells = {to_text(run.metrics.iteration), to_text(run.estimate)};
  for (std::string& rate : rate_cells(run, tokens)) {
    cells.push_back(std::move(rate));
  }
  cells.insert(cells.end(),
               {to_text(run.speedup, 2), "+" + percent(run.over_bound(), 0), percent(run.metrics.bubble_fraction, 1),
                to_text(peak), to_text(run.energy_per_sample), cost_of_million(run)});
  if (apart) {
    cells.push_back(to_text(*std::max_element(run.staleness.begin(), run.staleness.end()), 1));
  }
  cells.push_back(remarks_of(run, shown, apart));
  return cells;
}

// The runs ranked apart have a column more.
Table table_of(const ComparisonResult& result, bool apart, bool all) {
  Table table{{{"", Align::right},
               {"strategy"},
               {"schedule"},
               {"M", Align::right},
               {"iteration", Align::right},
               {"estimate", Align::right},
               {"samples/s", Align::right},
               {"speedup", Align::right},
               {"over bound", Align::right},
               {"bubble", Align::right},
               {"peak memory", Align::right},
               {"per sample", Align::right},
               {"per million", Align::right},
               {"remarks"}},
              {}};
  if (apart) {
    table.columns.insert(table.columns.end() - 1, {"staleness", Align::right});
  }
  const bool tokens = counts_tokens(result);
  if (tokens) {
    const auto samples = std::find_if(table.columns.begin(), table.columns.end(),
                                      [](const auto& column) { return column.title == "samples/s"; });
    samples->title = "tokens/s";
    table.columns.insert(samples + 1, {{"per device", Align::right}, {"MFU", Align::right}});
  }
  for (const ShownRun& shown : shown_runs(result, apart, all)) {
    const Run& run = result.comparison.runs[shown.run];
    const bool winner = shown.run == 0 && run.feasible;
    const Style style = winner ? Style::good : run.feasible ? Style::plain : Style::dim;
    const std::string order = run.feasible && run.order != run.schedule ? " (list order)" : "";
    std::vector<Cell> row = {{winner ? "*" : std::to_string(shown.run + 1), style},
                             {run.strategy, style},
                             {run.schedule + order, style},
                             {std::to_string(run.micro_batches), style}};
    if (run.feasible) {
      for (std::string& text : feasible_cells(run, shown, apart, tokens)) {
        row.push_back({std::move(text), style});
      }
    } else {
      row.push_back({"infeasible", Style::bad});
      row.resize(table.columns.size() - 1, {"", style});
      row.push_back({run.why_not + (run.would_fit.empty() ? "" : "; would fit with " + run.would_fit), style});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string picture(const Platform& platform, const ComparisonResult& result, std::size_t run, double until) {
  const Prepared& prepared = result.prepared[result.of_run[run]];
  PictureOptions options;
  options.width = terminal_width() - 28;
  options.color = use_color();
  options.iteration = prepared.timeline.iterations - 1;
  options.until = until;
  return ascii_timeline(*prepared.graph, prepared.timeline, device_names(*prepared.graph, platform), options);
}

std::string pictures(const Platform& platform, const ComparisonResult& result) {
  const Comparison& comparison = result.comparison;
  const int naive = naive_run(comparison);
  if (naive < 0) {
    return "";
  }
  const double until = comparison.runs[naive].metrics.iteration.value;
  std::string text = "\n" + comparison.verdict[0] + "\n" + picture(platform, result, 0, until);
  if (naive > 0) {
    text += "\n" + comparison.verdict[1] + "\n" + picture(platform, result, naive, until);
  }
  return text;
}

std::string text_of(const Platform& platform, const ComparisonResult& result, const CompareCommand& options) {
  const Comparison& comparison = result.comparison;
  std::string text = comparison.model + " on " + comparison.platform + "\n\n";
  for (const std::string& sentence : comparison.verdict) {
    text += sentence + "\n";
  }
  const Table table = table_of(result, false, options.all_rows);
  const Table apart = table_of(result, true, options.all_rows);
  text += "\n" + to_text(table, use_color());
  if (!apart.rows.empty()) {
    text +=
        "\nAsynchronous, so ranked apart as throughput only: these train with stale weights (staleness in optimiser "
        "steps) and wait for no barrier\n" +
        to_text(apart, use_color());
  }
  if (const std::size_t rows = table.rows.size() + apart.rows.size(); rows < comparison.runs.size()) {
    text += std::to_string(rows) + " of " + std::to_string(comparison.runs.size()) +
            " runs shown; --all prints every one\n";
  }
  return options.pictures ? text + pictures(platform, result) : text;
}

// The runs whose timelines a report shows: the best ones, equal ones only once, and the naive one.
std::vector<std::size_t> runs_to_show(const ComparisonResult& result, int most) {
  const std::vector<Run>& runs = result.comparison.runs;
  std::vector<std::size_t> shown;
  const auto add = [&](std::size_t run) {
    const bool seen = std::any_of(shown.begin(), shown.end(),
                                  [&](std::size_t other) { return result.of_run[other] == result.of_run[run]; });
    if (!seen && runs[run].feasible) {
      shown.push_back(run);
    }
  };
  for (std::size_t run = 0; run < runs.size() && shown.size() < static_cast<std::size_t>(most); ++run) {
    add(run);
  }
  if (const int naive = naive_run(result.comparison); naive >= 0 && most > 0) {
    add(static_cast<std::size_t>(naive));
  }
  return shown;
}

std::string json_with_timelines(StudyCosts& costs, const ComparisonResult& result, int most) {
  const Study& study = costs.study();
  std::map<std::size_t, std::vector<JsonPart>> parts;
  for (const std::size_t run : runs_to_show(result, most)) {
    const Prepared& one = result.prepared[result.of_run[run]];
    if (run == 0) {
      const WholeRun whole = whole_run(costs, one);
      parts[run].push_back(
          {"explanation", to_json(explain({whole.graph, whole.timeline, study.platform, study.engine->replay}))});
    }
    parts[run].push_back({"timeline", chrome_trace(*one.graph, one.timeline, study.platform)});
  }
  return with_parts(to_json(result.comparison, true, parts),
                    {{"setting", setting_json({*study.model, study.training, study.platform, study.engine->name,
                                               program_version()})}});
}

ExitStatus run(const CompareCommand& options) {
  GivenStudy given = compared_study(options.model, settings_of(options.settings, options.model));
  Study& study = given.study;
  for (const std::string& plan : options.plans) {
    add_plan(study, plan, options.plan_format);
  }
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  ComparisonResult result = [&] {
    Progress progress(options.output.quiet);
    const bool only_table = options.output.format == "table" && options.output.file.empty() && !options.all_rows;
    return compare(memo, {.progress = [&](std::size_t done, std::size_t all) { progress.show(done, all); },
                          .workers = workers_of(options.workers),
                          .changes = only_table ? kShownInfeasible : CompareOptions{}.changes});
  }();
  given.inputs.insert(given.inputs.end(), options.plans.begin(), options.plans.end());
  result.comparison.inputs = std::move(given.inputs);
  const bool feasible = !result.comparison.runs.empty() && result.comparison.runs.front().feasible;
  if (!options.trace.empty() && feasible) {
    const Prepared& winner = result.prepared[result.of_run.front()];
    write_file(options.trace, chrome_trace(*winner.graph, winner.timeline, study.platform));
    if (const std::string said = trace_remark(*winner.graph); !said.empty() && !options.output.quiet) {
      remark(said + "\n");
    }
  }
  emit(options.output, {.table = [&] { return text_of(study.platform, result, options); },
                        .json = [&] { return json_with_timelines(memo.costs, result, options.timelines); },
                        .csv = [&] { return to_csv(result.comparison); }});
  return feasible ? kDone : kNothingFeasible;
}

} // namespace

Job command_compare(Flags& flags) { return make_job<CompareCommand>(flags, add_flags, run); }

} // namespace stagecraft
