// stagecraft compare: strategies x schedules, replayed and ranked.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/app/options.hpp"
#include "sim/app/progress.hpp"
#include "sim/base/file.hpp"
#include "sim/report/ascii_timeline.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/table.hpp"
#include "sim/study/compare.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kShownRows = 20;

Table table_of(const Comparison& comparison, bool all) {
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
               {"remarks"}},
              {}};
  std::size_t feasible_shown = 0;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const Run& run = comparison.runs[i];
    const Style style = i == 0 && run.feasible ? Style::good : run.feasible ? Style::plain : Style::dim;
    const std::string order = run.feasible && run.order != run.schedule ? " (list order)" : "";
    std::vector<Cell> row = {{i == 0 && run.feasible ? "*" : std::to_string(i + 1), style},
                             {run.strategy, style},
                             {run.schedule + order, style},
                             {std::to_string(run.micro_batches), style}};
    if (run.feasible) {
      if (++feasible_shown > kShownRows && !all) {
        continue;
      }
      const Bytes peak = *std::max_element(run.metrics.peak_memory.begin(), run.metrics.peak_memory.end());
      const double over = run.lower_bound.value > 0 ? run.metrics.iteration / run.lower_bound - 1 : 0;
      for (std::string text :
           {to_text(run.metrics.iteration), to_text(run.estimate), to_text(run.samples_per_second, 1),
            to_text(run.speedup, 2), "+" + to_text(100 * over, 0) + " %",
            to_text(100 * run.metrics.bubble_fraction, 1) + " %", to_text(peak), run.note}) {
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

// Infeasible rows beyond the first few say little that is new.
void shorten(Table& table, std::size_t feasible, bool all) {
  const std::size_t shown = std::min(feasible, kShownRows);
  if (!all && table.rows.size() > shown + kShownRows / 2) {
    table.rows.resize(shown + kShownRows / 2);
  }
}

std::string picture(const ComparisonResult& result, std::size_t run, double until) {
  const Prepared& prepared = result.prepared[result.of_run[run]];
  PictureOptions options;
  options.width = terminal_width() - 28;
  options.color = use_color();
  options.iteration = prepared.timeline.iterations - 1;
  options.until = until;
  return ascii_timeline(*prepared.graph, prepared.timeline, result.comparison.runs[run].devices, options);
}

std::string pictures(const ComparisonResult& result) {
  const Comparison& comparison = result.comparison;
  const int naive = naive_run(comparison);
  if (naive < 0) {
    return "";
  }
  const double until = comparison.runs[naive].metrics.iteration.value;
  std::string text = "\n" + comparison.verdict[0] + "\n" + picture(result, 0, until);
  if (naive > 0) {
    text += "\n" + comparison.verdict[1] + "\n" + picture(result, naive, until);
  }
  return text;
}

std::string to_text(const ComparisonResult& result, const Options& options) {
  const Comparison& comparison = result.comparison;
  std::string text = comparison.model + " on " + comparison.platform + "\n\n";
  for (const std::string& sentence : comparison.verdict) {
    text += sentence + "\n";
  }
  const auto feasible = static_cast<std::size_t>(
      std::count_if(comparison.runs.begin(), comparison.runs.end(), [](const Run& run) { return run.feasible; }));
  Table table = table_of(comparison, options.all_rows);
  shorten(table, feasible, options.all_rows);
  text += "\n" + to_text(table, use_color());
  if (table.rows.size() < comparison.runs.size()) {
    text += "… and " + std::to_string(comparison.runs.size() - table.rows.size()) + " more rows; --all prints them\n";
  }
  return options.pictures ? text + pictures(result) : text;
}

} // namespace

int command_compare(const Options& options) {
  const Study study = study_from(options);
  Simulator simulator(study);
  const ComparisonResult result = [&] {
    Progress progress(options.quiet);
    return compare(study, simulator, [&](std::size_t done, std::size_t all) { progress.show(done, all); });
  }();
  const bool feasible = !result.comparison.runs.empty() && result.comparison.runs.front().feasible;
  if (!options.trace.empty() && feasible) {
    const Prepared& winner = result.prepared[result.of_run.front()];
    write_file(options.trace, chrome_trace(*winner.graph, winner.timeline, study.platform));
  }
  const std::string json = options.format == "json" || !options.output.empty() ? to_json(result.comparison, true) : "";
  if (!options.output.empty()) { // the file holds the full result; the terminal still shows the table
    write_file(options.output, options.format == "csv" ? to_csv(result.comparison) : json);
  }
  if (options.format == "table") {
    print(to_text(result, options));
  } else if (options.output.empty()) {
    print(options.format == "csv" ? to_csv(result.comparison) : json);
  }
  return feasible ? kDone : kNothingFeasible;
}

} // namespace stagecraft
