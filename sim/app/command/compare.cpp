// stagecraft compare: strategies x schedules, replayed and ranked.
// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/compare.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/analysis/explain.hpp"
#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/common/workers.hpp"
#include "sim/app/run/assumptions.hpp"
#include "sim/app/run/given_run.hpp"
#include "sim/app/run/question.hpp"
#include "sim/base/system/file.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/table.hpp"
#include "sim/result/json_parts.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/result/setting_json.hpp"
#include "sim/result/whole_training.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/timeline/device_names.hpp"
#include "sim/workload/model_flops.hpp"

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
  std::string plan_format, trace, save_study;
  std::vector<std::string> strategies, schedules; ///< none: as the study says
};

void add_flags(Flags& flags, CompareCommand& options) {
  constexpr int kMostTimelines = 100;
  add_model_flags(flags, options.model,
                  {.name = "STUDY",
                   .help = "a study file; or a model, by name or file, with --platform",
                   .several_micro_batches = true});
  flags.add("--strategies", &options.strategies, "the strategies to try, or all; see `list strategies`",
            {.name = "A,B,…", .commas = true});
  flags.add("--schedules", &options.schedules, "the schedules to try, or all; see `list schedules`",
            {.name = "A,B,…", .commas = true});
  flags.add("--save-study", &options.save_study, "write the study that is run into this file, to change and repeat it",
            {.name = "FILE"});
  add_result_flags(flags, options.output, {"table", "json", "csv", "html", "md"});
  add_table_flags(flags, options.output);
  add_setting_flags(flags, options.settings);
  add_money_flags(flags, options.settings);
  add_confidence_flag(flags, options.settings);
  add_workers_flag(flags, options.workers);
  flags.add("--pictures", &options.pictures, "draw the timelines of the winner and of the naive split");
  flags.add(
      "--timeline", &options.timelines,
      "put the timelines of the best N runs, and what holds the best one back, into the JSON (3 where no N is given)",
      {.name = "N", .check = whole_number(0, kMostTimelines), .alone = "3"});
  flags.add("--all", &options.all_rows, "print every row of the table, each run in one of its own");
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

// Of the runs ranked apart, or of all others: feasible runs that are equal in one row; with `all`, each in its own.
std::vector<ShownRun> shown_runs(const ComparisonResult& result, bool apart, bool all) {
  const auto& runs = result.comparison.runs;
  std::vector<ShownRun> shown;
  std::map<std::size_t, std::size_t> row_of;  // of an order of work
  std::map<std::string, std::size_t> why_not; // of what does not fit: strategy, micro-batches and the reason
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (apart != is_apart(result.comparison, runs[i])) {
      continue;
    }
    if (!all && !runs[i].feasible) {
      const std::string reason = runs[i].strategy + " " + std::to_string(runs[i].micro_batches) + " " +
                                 to_text(runs[i].recompute) + " " + runs[i].why_not;
      const auto [row, added] = why_not.emplace(reason, shown.size());
      added ? shown.push_back({i, {}, {}}) : shown[row->second].add(runs[shown[row->second].run], runs[i]);
      continue;
    }
    const auto [row, added] = row_of.emplace(result.of_run[i], shown.size());
    if (all || added) {
      shown.push_back({i, {}, {}});
    } else {
      shown[row->second].add(runs[shown[row->second].run], runs[i]);
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

// Why a run does not fit, what would make it fit, and which others do not for the same reason.
std::string why_not_of(const Run& run, const ShownRun& shown) {
  return (run.recompute.what == "none" ? "" : "recomputes: " + to_text(run.recompute) + "; ") + run.why_not +
         (run.would_fit.empty() ? "" : "; would fit with " + run.would_fit) +
         (shown.schedules.empty() ? "" : "; the same under " + join(shown.schedules));
}

// What a table of runs has beside what every one has.
struct Extras {
  bool tokens = false;    // rates are counted in tokens instead of samples
  bool staleness = false; // runs ranked apart have it; and any table, where columns are named
};

Extras extras_of(const Study& study, bool apart, const CompareCommand& options) {
  return {tokens_of(*study.model) > 0, apart || !options.output.columns.empty()};
}

// Samples per second; or tokens per second, those of each device, and how much of the peak that is.
std::vector<std::string> rate_cells(const Run& run, bool tokens) {
  if (!tokens) {
    return {to_text(run.samples_per_second, 1)};
  }
  return {to_text(run.tokens_per_second, 0), to_text(value_of(metric("tokens_per_device_second"), run), 0),
          run.mfu > 0 ? percent(run.mfu, 1) : ""};
}

std::vector<std::string> feasible_cells(const Run& run, const ShownRun& shown, bool apart, const Extras& extras) {
  const Bytes peak = *std::max_element(run.metrics.peak_memory.begin(), run.metrics.peak_memory.end());
  std::vector<std::string> cells = {to_text(run.metrics.iteration), to_text(run.estimate)};
  for (std::string& rate : rate_cells(run, extras.tokens)) {
    cells.push_back(std::move(rate));
  }
  cells.insert(cells.end(),
               {to_text(run.speedup, 2), "+" + percent(run.over_bound(), 0), percent(run.metrics.bubble_fraction, 1),
                to_text(peak), to_text(run.energy_per_sample), cost_of_million(run)});
  if (extras.staleness) {
    const bool stale = !run.staleness.empty();
    cells.push_back(stale ? to_text(*std::max_element(run.staleness.begin(), run.staleness.end()), 1) : "");
  }
  cells.push_back(remarks_of(run, shown, apart));
  return cells;
}

Table header_of(const Extras& extras) {
  Table table{{{"rank", Align::right},
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
  if (extras.staleness) {
    table.columns.insert(table.columns.end() - 1, {"staleness", Align::right});
  }
  if (extras.tokens) {
    const auto samples = std::find_if(table.columns.begin(), table.columns.end(),
                                      [](const auto& column) { return column.title == "samples/s"; });
    samples->title = "tokens/s";
    table.columns.insert(samples + 1, {{"per device", Align::right}, {"MFU", Align::right}});
  }
  return table;
}

// A row for each of the runs.
Table table_of(const ComparisonResult& result, const std::vector<ShownRun>& runs, bool apart, const Extras& extras) {
  Table table = header_of(extras);
  for (const ShownRun& shown : runs) {
    const Run& run = result.comparison.runs[shown.run];
    const bool winner = shown.run == 0 && run.feasible;
    const Style style = winner ? Style::good : run.feasible ? Style::plain : Style::dim;
    const std::string order = run.feasible && run.order != run.schedule ? " (list order)" : "";
    std::vector<Cell> row = {{winner ? "*" : std::to_string(shown.run + 1), style},
                             {run.strategy, style},
                             {run.schedule + order, style},
                             {std::to_string(run.micro_batches), style}};
    if (run.feasible) {
      for (std::string& text : feasible_cells(run, shown, apart, extras)) {
        row.push_back({std::move(text), style});
      }
    } else {
      row.push_back({"infeasible", Style::bad});
      row.resize(table.columns.size() - 1, {"", style});
      row.push_back({why_not_of(run, shown), style});
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

// How many rows of a kind are shown, and how many there are.
struct Shown {
  std::size_t most = 0, seen = 0;
  bool takes_one_more() { return seen++ < most; }
  std::size_t left_out() const { return seen > most ? seen - most : 0; }
};

// The rows in the order asked for; of those that fit and of those that do not, the first ones, and a line for the
// others.
Table cut(Table table, const ComparisonResult& result, const std::vector<ShownRun>& runs,
          const CompareCommand& options) {
  Table shown{table.columns, {}};
  Shown feasible{kShownFeasible}, infeasible{kShownInfeasible};
  std::size_t last_feasible = 0; // the row behind it
  for (const std::size_t row : sorted_rows(table, options.output.sort)) {
    const bool fits = result.comparison.runs[runs[row].run].feasible;
    Shown& kind = fits ? feasible : infeasible;
    if (kind.takes_one_more() || options.all_rows) {
      shown.rows.push_back(std::move(table.rows[row]));
      last_feasible = fits ? shown.rows.size() : last_feasible;
    }
  }
  for (const auto& [kind, at, what] : {std::tuple{&feasible, last_feasible, " more that fit"},
                                       std::tuple{&infeasible, shown.rows.size(), " more that do not fit"}}) {
    if (kind->left_out() > 0 && !options.all_rows) {
      shown.gaps.push_back({at, "… " + std::to_string(kind->left_out()) + what});
    }
  }
  return shown;
}

struct ShownTable {
  Table table;
  std::size_t runs = 0; ///< in all its rows, those left out too
};

ShownTable shown_table(const Study& study, const ComparisonResult& result, bool apart, const CompareCommand& options) {
  const std::vector<ShownRun> runs = shown_runs(result, apart, options.all_rows);
  return {cut(table_of(result, runs, apart, extras_of(study, apart, options)), result, runs, options), runs.size()};
}

constexpr char kUsualSequence[] = "4096";

// Where the length of a sequence is from, if nobody said it.
std::string about_sequence(const GivenStudy& given) {
  constexpr int kUsual = 8192;
  return given.longest <= kUsual
             ? ""
             : "sequence " + std::to_string(given.longest) + ", the longest that config.json allows (--seq " +
                   kUsualSequence + " changes it), ";
}

// Where nothing fits with the longest sequence: the call with a usual one.
std::string with_usual_sequence(const GivenStudy& given, const ComparisonResult& result,
                                const CompareCommand& options) {
  const std::vector<Run>& runs = result.comparison.runs;
  if (about_sequence(given).empty() || (!runs.empty() && runs.front().feasible)) {
    return "";
  }
  return "A sequence of " + std::to_string(given.longest) + " tokens may be why; a usual one: " + options.output.call +
         " --seq " + kUsualSequence + "\n";
}

std::string assumed_sentence(const GivenStudy& given, const CompareCommand& options) {
  const Assumptions& assumed = given.assumed;
  if (assumed.settings.empty()) {
    return "";
  }
  const std::string tried = in_words(assumed.tried);
  return "Assumed, since nobody says otherwise: " + about_sequence(given) + in_words(assumed.settings) +
         ". --set KEY=VALUE changes it" + (options.save_study.empty() ? ", --save-study FILE keeps the question" : "") +
         ".\n" + tried + (tried.empty() ? "" : "\n");
}

// How another price is asked for.
std::string how_to_price(const Platform& platform) {
  return " --price '" + (platform.types.size() > 1 ? platform.types.front().name + "=" : std::string()) +
         "2.49 USD/h' changes them.";
}

std::string text_of(const GivenStudy& given, const ComparisonResult& result, const CompareCommand& options) {
  const Comparison& comparison = result.comparison;
  std::string text = comparison.model + " on " + comparison.platform + "\n\n" + assumed_sentence(given, options) +
                     (given.assumed.settings.empty() ? "" : "\n");
  for (const std::string& sentence : comparison.verdict) {
    text += sentence + (sentence.starts_with("Prices: ") ? how_to_price(given.study.platform) : "") + "\n";
  }
  text += with_usual_sequence(given, result, options);
  TableView view = view_of(options.output);
  view.sort.clear(); // the rows are in that order
  const ShownTable exact = shown_table(given.study, result, false, options);
  const ShownTable apart = shown_table(given.study, result, true, options);
  text += "\n" + to_text(exact.table, view);
  if (apart.runs > 0) {
    text +=
        "\nAsynchronous, so ranked apart as throughput only: these train with stale weights (staleness in optimiser "
        "steps) and wait for no barrier\n" +
        to_text(apart.table, view);
  }
  if (!options.all_rows && exact.table.rows.size() + apart.table.rows.size() < comparison.runs.size()) {
    text += std::to_string(exact.table.rows.size() + apart.table.rows.size()) + " of " +
            std::to_string(comparison.runs.size()) + " runs have a row; --all gives each one\n";
  }
  return options.pictures ? text + pictures(given.study.platform, result) : text;
}

// For a pull request: the verdict in short, the best rows, and how to repeat them.
std::string markdown_of(const GivenStudy& given, const ComparisonResult& result, const CompareCommand& options) {
  constexpr std::size_t kRows = 5, kSentences = 2;
  const Comparison& comparison = result.comparison;
  std::string text = "### " + comparison.model + " on " + comparison.platform + "\n\n";
  for (std::size_t i = 0; i < std::min(kSentences, comparison.verdict.size()); ++i) {
    text += (i == 0 ? "**" + comparison.verdict[i] + "**" : comparison.verdict[i]) + "\n";
  }
  if (const auto whole = comparison.runs.empty() ? std::nullopt : whole_training(comparison.runs.front())) {
    text += in_words(*whole) + ".\n";
  }
  ShownTable shown = shown_table(given.study, result, false, options);
  const std::size_t rows = options.all_rows ? shown.table.rows.size() : std::min(kRows, shown.table.rows.size());
  shown.table.rows.resize(rows);
  shown.table.gaps.clear();
  if (rows < comparison.runs.size()) {
    shown.table.gaps.push_back({rows, "… of " + std::to_string(comparison.runs.size()) + " runs"});
  }
  const char* rate = extras_of(given.study, false, options).tokens ? "tokens/s" : "samples/s";
  const std::vector<std::string> columns = {"rank", "strategy", "schedule",   "M",           "iteration",
                                            rate,   "speedup",  "over bound", "peak memory", "per million"};
  return text + "\n" +
         to_markdown(shown.table, options.output.columns.empty() ? columns : view_of(options.output).columns) +
         (given.assumed.settings.empty() ? "" : "\n" + assumed_sentence(given, options)) +
         how_to_repeat(options.output);
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

std::string json_with_timelines(StudyCosts& costs, const GivenStudy& given, const ComparisonResult& result, int most,
                                const CompareCommand& options) {
  const Study& study = costs.study();
  std::map<std::size_t, std::vector<JsonPart>> parts;
  for (const std::size_t run : runs_to_show(result, most)) {
    const Prepared& one = result.prepared[result.of_run[run]];
    if (run == 0) {
      const WholeRun whole = whole_run(costs, one);
      parts[run].push_back(
          {"explanation",
           to_json(explain({whole.graph, whole.timeline, study.platform, study.engine->replay, folded_of(one, whole),
                            slowest_devices(study.platform, study.training.device_spread)}))});
    }
    parts[run].push_back({"timeline", chrome_trace(*one.graph, one.timeline, study.platform)});
  }
  return with_parts(
      to_json(result.comparison, true, parts),
      {{"setting", setting_json({*study.model, study.training, study.platform, study.engine->name, program_version()})},
       {"question", question_json(given, {}, options.output.file, options.plans, options.plan_format)}});
}

// What the flags change in the study.
std::vector<Setting> settings_of(const CompareCommand& options) {
  std::vector<Setting> settings = settings_of(options.settings, options.model);
  for (const auto& [key, names] :
       {std::pair{"compare.strategies", &options.strategies}, {"compare.schedules", &options.schedules}}) {
    if (!names->empty()) {
      settings.push_back({key, names->size() == 1 ? names->front() : "[" + join(*names) + "]"});
    }
  }
  return settings;
}

ExitStatus run(const CompareCommand& options) {
  GivenStudy given = compared_study(options.model, settings_of(options), options.save_study);
  Study& study = given.study;
  if (const std::string note = sequence_note(options.model); !note.empty() && !options.output.quiet) {
    remark("note: " + note + "\n");
  }
  for (const std::string& plan : options.plans) {
    add_plan(study, plan, options.plan_format);
  }
  check_columns(options.output, header_of(extras_of(study, true, options)));
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  ComparisonResult result = [&] {
    Progress progress(options.output.quiet);
    const bool only_table = options.output.format == "table" && options.output.file.empty() && !options.all_rows &&
                            options.output.sort.empty();
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
  constexpr int kTimelinesOfPage = 3;
  const int on_page = std::max(options.timelines, kTimelinesOfPage);
  emit(options.output,
       {.table = [&] { return text_of(given, result, options); },
        .json = [&] { return json_with_timelines(memo.costs, given, result, options.timelines, options); },
        .csv = [&] { return to_csv(result.comparison); },
        .html =
            [&] { return page_of(options.output, json_with_timelines(memo.costs, given, result, on_page, options)); },
        .md = [&] { return markdown_of(given, result, options); }});
  return feasible ? kDone : kNothingFeasible;
}

} // namespace

Job command_compare(Flags& flags) { return make_job<CompareCommand>(flags, add_flags, run); }

} // namespace stagecraft
