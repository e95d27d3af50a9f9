// The page of a comparison: ranking, trade-offs, and maps of strategies and schedules.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "sim/base/units.hpp"
#include "sim/report/page/comparison_answer.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_answer.hpp"
#include "sim/report/page/run_values.hpp"
#include "sim/report/page/strategy_colors.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

constexpr std::size_t kRanked = 20;      // bars at most
constexpr std::size_t kMostShown = 2000; // points of a cloud at most
constexpr std::size_t kMostTableRows = 5000;
constexpr std::size_t kMostNamed = 7; // series with a name of their own at most; the others are shown as one

using Runs = std::vector<RunValues>;

constexpr std::string_view kIteration = metric("iteration_seconds").heading;

// An interval of runs that whiskers show, with the words for it.
struct Whiskers {
  const Metric *low, *high;
  const char* words;
};
// In order of preference. A bar is the predicted time, around which the cost model's errors lie; times in disturbed
// worlds may all lie beside it.
constexpr std::array kWhiskers = {
    Whiskers{&metric("confidence_p5_seconds"), &metric("confidence_p95_seconds"),
             "5 to 95 %, as far as the cost model's errors leave it open"},
    Whiskers{&metric("perturbed_p5_seconds"), &metric("perturbed_p95_seconds"), "5 to 95 % in perturbed worlds"},
};

// "+12 %" beside the time of a run that is not the first.
std::string against_first(const RunValues& run, const RunValues& first) {
  const double gap = run.iteration() / first.iteration() - 1;
  constexpr double kSame = 1e-6, kSmall = 0.1;
  return std::abs(gap) < kSame ? ""
                               : (gap > 0 ? ", +" : ", −") + percent(std::abs(gap), std::abs(gap) < kSmall ? 1 : 0);
}

Chart ranked(const std::string& name, const std::string& title, const Runs& runs) {
  Chart chart = bars_of(name, title, std::string(kIteration), {});
  if (const double bound = runs.empty() ? 0 : runs.front().of(metric("lower_bound_seconds")); bound > 0) {
    chart.lines.push_back({bound, "no plan is faster than " + to_text(Seconds{bound})});
  }
  const auto whiskers = std::find_if(kWhiskers.begin(), kWhiskers.end(), [&](const Whiskers& one) {
    return std::any_of(runs.begin(), runs.end(), [&](const RunValues& run) { return std::isfinite(run.of(*one.low)); });
  });
  if (whiskers != kWhiskers.end()) {
    chart.interval = whiskers->words;
    chart.note = "Whiskers: " + chart.interval + ".";
  }
  for (const RunValues& run : runs) {
    const bool known = whiskers != kWhiskers.end();
    chart.series[0].marks.push_back({.x = run.iteration(),
                                     .y = static_cast<double>(chart.y.names.size()),
                                     .text = run.label(),
                                     .low = known ? run.of(*whiskers->low) : Mark::kNone,
                                     .high = known ? run.of(*whiskers->high) : Mark::kNone,
                                     .label = to_text(Seconds{run.iteration()}) + against_first(run, runs.front()),
                                     .color = strategy_color(run.strategy)});
    chart.y.names.push_back(run.label());
  }
  return chart;
}

// The fastest run for each name, fastest first.
Runs best_by(const Runs& runs, const std::function<std::string(const RunValues&)>& name) {
  std::set<std::string> seen;
  Runs best;
  for (const RunValues& run : runs) { // in order of rank
    if (seen.insert(name(run)).second) {
      best.push_back(run);
    }
  }
  return best;
}

Runs first(Runs runs) {
  runs.resize(std::min(runs.size(), kRanked));
  return runs;
}

// Those with another order of bars than the ones before.
std::vector<Chart> ranked_charts(const Runs& feasible) {
  std::vector<Chart> charts = {ranked("ranked-strategies", "Time per step: the best run of each strategy",
                                      first(best_by(feasible, [](const RunValues& run) { return run.strategy; }))),
                               ranked("ranked-schedules", "The best run of each schedule",
                                      first(best_by(feasible, [](const RunValues& run) { return run.schedule; }))),
                               ranked("ranked-runs", "The fastest runs", first(feasible))};
  for (std::size_t at = 1; at < charts.size();) {
    const bool said = std::any_of(charts.begin(), charts.begin() + static_cast<std::ptrdiff_t>(at),
                                  [&](const Chart& one) { return one.y.names == charts[at].y.names; });
    if (said) {
      charts.erase(charts.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      ++at;
    }
  }
  return charts;
}

// Says how many runs a cloud leaves out, or "".
std::string fastest_note(const Runs& feasible) {
  return feasible.size() <= kMostShown ? ""
                                       : "The " + std::to_string(kMostShown) + " fastest of " +
                                             std::to_string(feasible.size()) + " runs are drawn.";
}

// Runs by strategy; only the best strategies have a name of their own.
std::vector<ChartSeries> by_strategy(const Runs& runs, Look look, const std::function<Mark(const RunValues&)>& mark) {
  std::vector<ChartSeries> all;
  for (const RunValues& run : runs) {
    auto found = std::find_if(all.begin(), all.end(), [&](const ChartSeries& one) { return one.name == run.strategy; });
    if (found == all.end()) {
      const bool named = all.size() < kMostNamed;
      found = named ? all.insert(all.end(), {run.strategy, look, {}, strategy_color(run.strategy)}) : all.end() - 1;
      if (!named) {
        found->name = "others";
        found->color = strategy_color("others");
      }
    }
    const Mark place = mark(run);
    if (std::isfinite(place.x) && std::isfinite(place.y)) {
      found->marks.push_back(place);
    }
  }
  all.erase(std::remove_if(all.begin(), all.end(), [](const ChartSeries& one) { return one.marks.empty(); }),
            all.end());
  return all;
}

struct Price {
  const char *name, *title;
  std::string_view unit;
  const Metric* metric;
};
constexpr std::array kPrices = {
    Price{"dollars", "Time against money", metric("usd_per_million_samples").heading,
          &metric("usd_per_million_samples")},
    Price{"joules", "Time against energy", metric("joules_per_sample").heading, &metric("joules_per_sample")},
    Price{"memory", "Time against memory", "largest peak memory of a device [GiB]", &metric("peak_memory_bytes")},
    Price{"devices", "Time against devices in use", metric("devices").heading, &metric("devices")},
};

std::vector<Chart> trade_offs(const Runs& feasible, const std::string& prices) {
  std::vector<Chart> charts;
  for (const Price& price : kPrices) {
    const auto mark = [&](const RunValues& run) {
      return Mark{.x = run.iteration(), .y = run.shown(*price.metric), .text = run.label()};
    };
    Runs shown = feasible; // the front is of all runs, the cloud only of the fastest
    shown.resize(std::min(shown.size(), kMostShown));
    Chart chart{.name = std::string("front-") + price.name,
                .title = price.title,
                .x = {.title = std::string(kIteration), .logarithmic = true},
                .y = {.title = std::string(price.unit), .logarithmic = true},
                .series = by_strategy(shown, Look::points, mark),
                .choice = "What speed costs",
                .note = fastest_note(feasible)};
    if (price.metric->name == metric("usd_per_million_samples").name && !prices.empty()) {
      chart.note += (chart.note.empty() ? "" : " ") + prices;
    }
    std::vector<Mark> all;
    for (const RunValues& run : feasible) {
      if (std::isfinite(run.shown(*price.metric))) {
        all.push_back(mark(run));
      }
    }
    std::set<double> values;
    for (const Mark& one : all) {
      values.insert(one.y);
    }
    const std::size_t least =
        price.metric->name == metric("devices").name ? 3 : 2; // of two counts a table says as much
    constexpr std::size_t kCloud = 3;                         // points; of two a table says as much
    if (values.size() >= least && all.size() >= kCloud) {
      chart.series.push_back({"none is better in both", Look::front, front_of(std::move(all))});
      charts.push_back(std::move(chart));
    }
  }
  return charts;
}

// A map of strategies and schedules, with the best run of each pair.
std::optional<Chart> heat_map(const Runs& feasible) {
  const Runs strategies = best_by(feasible, [](const RunValues& run) { return run.strategy; });
  const Runs schedules = best_by(feasible, [](const RunValues& run) { return run.schedule; });
  if (strategies.size() < 2 || schedules.size() < 2) {
    return {};
  }
  Chart chart{.name = "strategies-schedules",
              .title = "The best run of each strategy under each schedule",
              .x = {.title = "schedule"},
              .y = {.title = "strategy"},
              .value = std::string(kIteration),
              .least_is_best = metric("iteration_seconds").better == Better::less,
              .series = {{"", Look::cells, {}}}};
  for (std::size_t y = 0; y < strategies.size(); ++y) {
    chart.y.names.push_back(strategies[y].strategy);
    for (std::size_t x = 0; x < schedules.size(); ++x) {
      const auto best = std::find_if(feasible.begin(), feasible.end(), [&](const RunValues& run) {
        return run.strategy == strategies[y].strategy && run.schedule == schedules[x].schedule;
      });
      if (best != feasible.end()) {
        chart.series[0].marks.push_back({.x = static_cast<double>(x),
                                         .y = static_cast<double>(y),
                                         .text = best->label(),
                                         .value = best->iteration()});
      }
    }
  }
  for (const RunValues& run : schedules) {
    chart.x.names.push_back(run.schedule);
  }
  return chart;
}

std::optional<Chart> micro_batch_curve(const Runs& feasible) {
  const Runs best =
      best_by(feasible, [](const RunValues& run) { return run.strategy + " " + std::to_string(run.micro_batches); });
  const Runs counts = best_by(feasible, [](const RunValues& run) { return std::to_string(run.micro_batches); });
  if (counts.size() < 2) {
    return {};
  }
  Chart chart{.name = "micro-batches",
              .title = "Micro-batches, under the best schedule for each",
              .x = {.title = "micro-batches", .logarithmic = true},
              .y = {.title = std::string(kIteration), .from_zero = true},
              .series = by_strategy(best, Look::line,
                                    [](const RunValues& run) {
                                      return Mark{.x = static_cast<double>(run.micro_batches),
                                                  .y = run.iteration(),
                                                  .text = run.label(),
                                                  .besides = run.schedule};
                                    }),
              .besides = "schedule"};
  for (ChartSeries& series :
       chart.series) { // "others" may have several runs with the same number of micro-batches: keep the best
    std::stable_sort(series.marks.begin(), series.marks.end(), [](const Mark& a, const Mark& b) { return a.x < b.x; });
    const auto end =
        std::unique(series.marks.begin(), series.marks.end(), [](const Mark& a, const Mark& b) { return a.x == b.x; });
    series.marks.erase(end, series.marks.end());
  }
  return chart;
}

Chart closed_form(const Runs& feasible) {
  Runs shown = feasible;
  shown.resize(std::min(shown.size(), kMostShown));
  double low = INFINITY, high = 0;
  Chart chart{.name = "estimate",
              .title = "What the closed form estimates, and what the replay says",
              .x = {.title = "estimate [s]", .logarithmic = true},
              .y = {.title = "replay [s]", .logarithmic = true},
              .series = by_strategy(shown, Look::points, [&](const RunValues& run) {
                const double estimate = run.of(metric("estimate_seconds"));
                if (estimate > 0) {
                  low = std::min({low, estimate, run.iteration()});
                  high = std::max({high, estimate, run.iteration()});
                }
                return Mark{.x = estimate > 0 ? estimate : Mark::kNone, .y = run.iteration(), .text = run.label()};
              })};
  chart.note = fastest_note(feasible);
  if (high > 0) {
    chart.series.push_back({"equal", Look::guide, {{.x = low, .y = low}, {.x = high, .y = high}}});
  }
  return chart;
}

constexpr auto kColumns = metrics_by<&Metric::page>();

// Runs in order of rank, of which `before` have a better one. Those ranked apart have a column more.
PageTable table_of(const Runs& runs, const std::string& title, std::size_t before, bool apart) {
  PageTable table{.title = title, .columns = {"rank", "strategy", "schedule", "micro-batches", "recompute"}};
  table.main = {"strategy", "schedule", "micro-batches"};
  const bool tokens = std::any_of(runs.begin(), runs.end(),
                                  [](const RunValues& run) { return run.of(metric("tokens_per_second")) > 0; });
  for (const Metric* metric :
       {&metric("iteration_seconds"), tokens ? &metric("tokens_per_second") : &metric("samples_per_second"),
        &metric("over_bound"), &metric("bubble_fraction"), &metric("peak_memory_bytes")}) {
    table.main.emplace_back(metric->title());
  }
  table.main.insert(table.main.end(), {"staleness [steps]", "remarks"});
  for (const Metric& metric : kColumns) {
    table.columns.emplace_back(metric.title());
  }
  if (apart) {
    table.columns.emplace_back("staleness [steps]");
  }
  table.columns.emplace_back("remarks");
  for (const RunValues& run : runs) {
    if (table.rows.size() == kMostTableRows) {
      table.note = std::to_string(runs.size() - kMostTableRows) + " slower or infeasible runs are left out";
      break;
    }
    const auto rank = static_cast<double>(before + table.rows.size() + 1);
    std::vector<PageCell> row = {
        number_cell(rank),
        {run.strategy},
        {run.schedule + (run.order == "list" && run.schedule != "list" ? " (list order)" : "")},
        number_cell(run.micro_batches),
        {run.recompute}};
    for (const Metric& column : kColumns) {
      row.push_back(number_cell(run.shown(column)));
      const bool assumed =
          column.name == metric("usd_per_million_samples").name && run.of(metric("assumed_cost_share")) > 0;
      row.back().text.insert(0, assumed ? kAssumedMark : "");
    }
    if (apart) {
      row.push_back(number_cell(run.of(metric("staleness_steps"))));
    }
    row.push_back({run.remarks});
    table.rows.push_back(std::move(row));
  }
  return table;
}

PageSection charts_section(const Runs& feasible, const std::string& prices) {
  PageSection section{.title = "Which run wins, and at what price", .sentences = {}};
  for (Chart& chart : ranked_charts(feasible)) {
    section.charts.push_back(std::move(chart));
  }
  for (Chart& chart : trade_offs(feasible, prices)) {
    section.charts.push_back(std::move(chart));
  }
  for (std::optional<Chart> chart : {heat_map(feasible), micro_batch_curve(feasible)}) {
    if (chart) {
      section.charts.push_back(std::move(*chart));
    }
  }
  if (feasible.size() > 1) {
    section.charts.push_back(closed_form(feasible));
  }
  return section;
}

// The runs of asynchronous schedules, where they are ranked after those of exact training.
PageSection apart_section(const Runs& apart, std::size_t before) {
  return {
      .title = "Asynchronous schedules, as throughput only",
      .sentences = {"These runs train with stale weights and wait for no barrier, so they are ranked after those of "
                    "exact training, and no other chart or finding counts them as rivals of those."},
      .charts = {ranked("ranked-asynchronous", "The fastest asynchronous runs", first(apart))},
      .tables = {table_of(apart, "All asynchronous runs", before, true)}};
}

// All runs of a document. Labels name the recompute where runs differ in it.
Runs runs_of(const json& list) {
  Runs runs;
  std::set<std::string> recomputed;
  for (const json& run : list) {
    runs.push_back(run_values(run));
    recomputed.insert(recompute_of(run));
  }
  for (std::size_t at = 0; recomputed.size() > 1 && at < runs.size(); ++at) {
    runs[at].recompute = recompute_of(list[at]);
  }
  return runs;
}

} // namespace

DocumentPage comparison_page(const JsonDocument& document) {
  const json& json = document.json();
  const auto& list = list_at(json, "runs");
  const Runs runs = runs_of(list);
  // Documents without the key are older and ranked by time alone.
  const bool exact_first = text_at(json, "rank") == kRankings.front().name;
  Runs competing, apart, others; // others: all that are not ranked apart
  PageSection timelines{.title = "Timelines", .sentences = {}};
  for (std::size_t at = 0; at < runs.size(); ++at) {
    const RunValues& run = runs[at];
    const bool is_apart = run.feasible && exact_first && run.is_exact != runs.front().is_exact;
    (is_apart ? apart : others).push_back(run);
    if (run.feasible && !is_apart) {
      competing.push_back(run);
    }
    add_timeline(document, list[at], run.label() + ", " + to_text(Seconds{run.iteration()}), timelines.timelines);
  }
  const ComparedRuns compared{competing, apart, runs};
  DocumentPage page{text_at(json, "model") + " on " + text_at(json, "platform"),
                    {{.title = "Findings",
                      .sentences = comparison_findings(json, compared),
                      .fold = {"The verdict as the terminal prints it", texts_at(json, "verdict")}}},
                    {},
                    competing.empty() ? infeasible_answer(json, compared) : comparison_answer(json, compared)};
  if (const auto best = list.begin(); !competing.empty()) {
    page.sections.push_back(charts_section(competing, price_remark_of(list)));
    const Tracks* tracks = timelines.timelines.empty() ? nullptr : &timelines.timelines.front().tracks;
    if (std::optional<PagePlan> plan = plan_picture(json, *best, best->contains("timeline") ? tracks : nullptr)) {
      page.sections.push_back({.title = "The plan on the machines: " + competing.front().label(), .sentences = {}});
      page.sections.back().plans.push_back(std::move(*plan));
    }
    page.sections.push_back(devices_section(*best, "What devices do in the best run: " + competing.front().label()));
    if (best->contains("explanation")) {
      page.sections.push_back(explanation_section(best->at("explanation"), "What holds the best run back"));
    }
  }
  if (!apart.empty()) {
    page.sections.push_back(apart_section(apart, competing.size()));
  }
  if (!timelines.timelines.empty()) {
    page.sections.push_back(std::move(timelines));
  }
  page.sections.push_back(
      {.title = apart.empty() ? "Every run" : "Every other run",
       .sentences = {},
       .tables = {table_of(others, apart.empty() ? "All runs" : "All runs of exact training", 0, false)}});
  return page;
}

} // namespace stagecraft
