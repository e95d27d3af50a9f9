// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/sweep_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/sweep_scale.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostRows = 2000;
constexpr std::size_t kMostPoints = 2000; // of a cloud
constexpr std::size_t kMostPairs = 12;    // of axes, for maps
constexpr std::size_t kNamed = 8;         // series
constexpr const char* kWhoWins = "Who wins by throughput";

/// What is looked for.
struct Goal {
  const char *name, *title, *axis;
  std::vector<double> SweepResults::*column;
  bool largest;
};
constexpr std::array kGoals = {
    Goal{"throughput", "Throughput", "samples per second", &SweepResults::samples_per_second, true},
    Goal{"cost", "Cost", "USD per million samples", &SweepResults::dollars_per_million, false},
    Goal{"energy", "Energy", "J per sample", &SweepResults::joules_per_sample, false},
};

std::string in_brackets(const std::string& label) { return label.empty() ? "" : " (" + label + ")"; }

// Large ones without an exponent.
std::string written(double value) {
  constexpr double kLarge = 1e4;
  return std::abs(value) < kLarge ? rounded(value) : to_text(value, 0);
}

class SweepCharts {
public:
  /// Of the points that keep to the constraints, or of `all`.
  explicit SweepCharts(const SweepResults& results, bool all = false) : results_(results), all_(all) {
    outside_ = static_cast<std::size_t>(std::count(results.outside.begin(), results.outside.end(), 1));
    const bool told = std::any_of(results.axes.begin(), results.axes.end(),
                                  [](const SweptAxis& axis) { return axis.key == "training.micro_batches"; });
    for (std::size_t axis = 0; axis < results.axes.size(); ++axis) {
      const bool again = told && results.axes[axis].key == "micro_batches"; // the run's own word for it
      if (results.axes[axis].values.size() > 1 && !again) {
        varied_.push_back(axis);
      }
    }
    drawn_ = drawn_axes();
    for (const Goal& goal : kGoals) {
      const std::vector<double>& column = results.*goal.column;
      if (std::any_of(column.begin(), column.end(), [](double value) { return value > 0; })) {
        goals_.push_back(&goal);
      }
    }
  }

  DocumentPage page() const {
    DocumentPage page{results_.name.empty() ? "Sweep" : "Sweep: " + results_.name, {}, results_.inputs};
    page.sections.push_back({.title = "Findings", .sentences = sentences()});
    page.sections.push_back({.title = "What was asked for", .sentences = {}, .tables = answers()});
    if (results_.points() > 0) {
      const std::optional<SweepCharts> all = outside_ > 0 ? std::optional(SweepCharts(results_, true)) : std::nullopt;
      const auto add = [&](const char* title, std::vector<Chart> (SweepCharts::*charts)() const, const char* outside) {
        page.sections.push_back({.title = title, .sentences = {}, .charts = (this->*charts)()});
        if (all) {
          add_all((*all.*charts)(), page.sections.back().charts);
          page.sections.back().all = switch_to_all(outside);
        }
        std::erase_if(page.sections.back().charts, is_settled);
      };
      add("Along each axis", &SweepCharts::curves, "left out");
      add("Over two axes", &SweepCharts::maps, "left out");
      add("What no point beats", &SweepCharts::fronts, "drawn faint");
    }
    std::erase_if(page.sections, [](const PageSection& one) {
      return one.sentences.empty() && one.charts.empty() && one.tables.empty();
    });
    PageSection points{.title = "Points", .sentences = {}, .tables = {best_points()}};
    if (!results_.reasons.empty()) {
      points.tables.push_back(reasons());
    }
    page.sections.push_back(std::move(points));
    return page;
  }

private:
  bool counts(std::size_t point) const { return all_ || outside_ == 0 || results_.outside[point] == 0; }

  // Gives each chart the same of all points. Both are made alike, so that they stand in the same order.
  static void add_all(std::vector<Chart> all, std::vector<Chart>& charts) {
    for (std::size_t at = 0; at < charts.size(); ++at) {
      Chart& chart = charts[at];
      const bool empty = std::all_of(chart.series.begin(), chart.series.end(),
                                     [](const ChartSeries& one) { return one.marks.empty(); });
      chart.note = empty ? "No point keeps to the constraints." : chart.note;
      chart.all = {std::move(all[at])};
    }
  }

  PageSwitch switch_to_all(const std::string& outside) const {
    const std::string of_all = " of " + std::to_string(results_.points()) + " points";
    const std::string which = " not keep to the constraints (" + results_.constraints + ")";
    return {.label = "show all points",
            .off = std::to_string(outside_) + of_all + (outside_ == 1 ? " does" : " do") + which +
                   (outside_ == 1 ? " and is " : " and are ") + outside + ".",
            .on = "All " + std::to_string(results_.points()) + " points are shown, also the " +
                  std::to_string(outside_) + " that" + (outside_ == 1 ? " does" : " do") + which + "."};
  }

  // A chart of who wins that has one winner.
  static bool is_settled(const Chart& chart) {
    const auto one_winner = [](const Chart& one) { return one.series.size() < 2; };
    return chart.choice == kWhoWins && one_winner(chart) && std::all_of(chart.all.begin(), chart.all.end(), one_winner);
  }

  std::uint32_t value(std::size_t point, std::size_t axis) const {
    return results_.value[point * results_.axes.size() + axis];
  }
  const std::string& text(std::size_t point, std::size_t axis) const {
    return results_.axes[axis].values[value(point, axis)];
  }

  // Axes nearly each of whose values stands in one combination alone, as draws do: what differs between two values then
  // differs by all axes.
  std::vector<char> drawn_axes() const {
    std::vector<char> drawn(results_.axes.size(), 0);
    std::vector<std::size_t> settings;
    for (const std::size_t axis : varied_) {
      if (std::find(kRunAxes.begin(), kRunAxes.end(), results_.axes[axis].key) == kRunAxes.end()) {
        settings.push_back(axis);
      }
    }
    if (settings.size() < 2) {
      return drawn;
    }
    std::unordered_set<std::uint64_t> combinations; // their hashes: a few that meet do not matter
    for (std::size_t point = 0; point < results_.points(); ++point) {
      std::uint64_t hash = 0;
      for (const std::size_t axis : settings) {
        constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
        hash = (hash ^ value(point, axis)) * kOdd;
        hash ^= hash >> 32U;
      }
      combinations.insert(hash);
    }
    for (const std::size_t axis : settings) {
      drawn[axis] = combinations.size() < 2 * results_.axes[axis].values.size() ? 1 : 0;
    }
    return drawn;
  }

  std::string label(std::size_t point) const {
    std::string label;
    for (const std::size_t axis : varied_) {
      const std::string& key = results_.axes[axis].key;
      const bool speaks = key == "strategy" || key == "schedule";
      label += (label.empty() ? "" : ", ") + (speaks ? "" : short_name(key) + " ") + shortened(text(point, axis));
    }
    return label + (all_ && results_.outside[point] != 0 ? ", outside the constraints" : "");
  }

  static bool better(double a, double b, const Goal& goal) { return goal.largest ? a > b : a < b; }

  // The best point of each cell, by number of the cell; -1: none.
  template <class Cell> std::vector<std::int64_t> best_of(std::size_t cells, const Goal& goal, Cell cell) const {
    std::vector<std::int64_t> best(cells, -1);
    const std::vector<double>& column = results_.*goal.column;
    for (std::size_t point = 0; point < results_.points(); ++point) {
      std::int64_t& incumbent = best[cell(point)];
      if (counts(point) && std::isfinite(column[point]) &&
          (incumbent < 0 || better(column[point], column[incumbent], goal))) {
        incumbent = static_cast<std::int64_t>(point);
      }
    }
    return best;
  }

  std::vector<std::string> sentences() const {
    std::string counts = std::to_string(results_.points()) + " points are feasible, " +
                         std::to_string(results_.infeasible) + " are not, " + std::to_string(results_.failed) +
                         " failed";
    counts += results_.screened > 0 ? "; " + std::to_string(results_.screened) + " are known from the first pass alone."
                                    : ".";
    std::vector<std::string> all = {counts};
    if (results_.constraints_differ) {
      all.emplace_back("The sweeps of this file have different constraints: charts and findings heed none of them.");
    } else if (!results_.constraints.empty()) {
      all.push_back(constraints_kept());
    }
    for (const SweepAnswer& answer : results_.answers) {
      all.push_back("Asked for: " + answer.words + ". " +
                    (answer.best.empty() ? "No point that is known to be feasible has it."
                                         : "The best point comes to " + answer.best.front().text +
                                               in_brackets(label(answer.best.front().point)) + "."));
    }
    for (const Goal* goal : goals_) {
      const std::int64_t best = best_of(1, *goal, [](std::size_t) { return 0; }).front();
      if (best >= 0) {
        all.push_back(std::string(goal->title) + ": the best point comes to " +
                      written((results_.*goal->column)[best]) + " " + goal->axis + in_brackets(label(best)) + ".");
      }
    }
    for (std::string& sentence : influence()) {
      all.push_back(std::move(sentence));
    }
    return all;
  }

  std::string constraints_kept() const {
    const std::string constraints = " the constraints (" + results_.constraints + ")";
    if (outside_ == 0 || outside_ == results_.points()) {
      return (outside_ == 0 ? "All feasible points keep to" : "No feasible point keeps to") + constraints + ".";
    }
    return std::to_string(results_.points() - outside_) + " feasible points keep to" + constraints +
           "; charts and findings are of these, " + std::to_string(outside_) +
           " others count only where charts show all.";
  }

  // How much the best throughput changes along each axis, most first.
  std::vector<std::string> influence() const {
    std::vector<std::pair<double, std::string>> found;
    for (const std::size_t axis : goals_.empty() ? std::vector<std::size_t>{} : varied_) {
      if (drawn_[axis] != 0) {
        continue;
      }
      const Goal& goal = *goals_.front();
      const std::vector<double>& column = results_.*goal.column;
      const auto best =
          best_of(results_.axes[axis].values.size(), goal, [&](std::size_t point) { return value(point, axis); });
      std::int64_t high = -1, low = -1;
      for (const std::int64_t point : best) {
        high = point >= 0 && (high < 0 || column[point] > column[high]) ? point : high;
        low = point >= 0 && (low < 0 || column[point] < column[low]) ? point : low;
      }
      constexpr double kSame = 1.005;
      if (high >= 0 && column[low] > 0 && column[high] > kSame * column[low]) {
        const double factor = column[high] / column[low];
        found.emplace_back(factor, "By " + short_name(results_.axes[axis].key) + " the best " + goal.axis +
                                       " differ by a factor of " + rounded(factor) + ": " + text(high, axis) +
                                       " best, " + text(low, axis) + " worst.");
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> sentences;
    for (auto& [factor, sentence] : found) {
      sentences.push_back(std::move(sentence));
    }
    return sentences;
  }

  // Series told apart by strategy, or else by the schedule; -1: neither was varied.
  std::int64_t colour_axis(std::size_t besides) const {
    for (const char* key : {"strategy", "schedule"}) {
      for (const std::size_t axis : varied_) {
        if (axis != besides && results_.axes[axis].key == key) {
          return static_cast<std::int64_t>(axis);
        }
      }
    }
    return -1;
  }

  // The last of so many as have names stands for all further ones.
  std::string name_of_series(std::size_t colour, std::size_t number) const {
    const std::vector<std::string>& values = results_.axes[colour].values;
    return number + 1 == kNamed && values.size() > kNamed ? "others" : values[number];
  }

  Chart curve(std::size_t axis, const Goal& goal) const {
    const SweptAxis& along = results_.axes[axis];
    const Scale scale = scale_of(along);
    const std::int64_t colour = colour_axis(axis);
    const std::size_t names = colour < 0 ? 1 : std::min(kNamed, results_.axes[colour].values.size());
    Chart chart{.name = std::string(goal.name) + "-by-" + file_name_of(short_name(along.key)),
                .title = std::string(goal.title) + " by " + short_name(along.key) +
                         (drawn_[axis] != 0 ? ", each value in a draw of its own" : ", all else at its best"),
                .x = scale.axis,
                .y = {.title = goal.axis, .from_zero = true},
                .choice = goal.title};
    const auto best = best_of(along.values.size() * names, goal, [&](std::size_t point) {
      const std::size_t name = colour < 0 ? 0 : std::min<std::size_t>(names - 1, value(point, colour));
      return name * along.values.size() + value(point, axis);
    });
    for (std::size_t name = 0; name < names; ++name) {
      ChartSeries series{colour < 0 ? "" : name_of_series(static_cast<std::size_t>(colour), name),
                         drawn_[axis] != 0 ? Look::points : Look::line,
                         {},
                         static_cast<int>(name)};
      for (std::size_t at = 0; at < along.values.size(); ++at) {
        const std::int64_t point = best[name * along.values.size() + at];
        if (point >= 0) {
          series.marks.push_back({.x = scale.places[at], .y = (results_.*goal.column)[point], .text = label(point)});
        }
      }
      std::stable_sort(series.marks.begin(), series.marks.end(),
                       [](const Mark& a, const Mark& b) { return a.x < b.x; });
      if (!series.marks.empty()) {
        chart.series.push_back(std::move(series));
      }
    }
    return chart;
  }

  std::vector<Chart> curves() const {
    std::vector<Chart> charts;
    for (const Goal* goal : goals_) {
      for (const std::size_t axis : varied_) {
        charts.push_back(curve(axis, *goal));
      }
    }
    return charts;
  }

  // Two axes of a map; the one with more values lies across.
  struct Pair {
    std::size_t across, down;
    Places columns, rows;

    std::size_t cells() const { return columns.names.size() * rows.names.size(); }
  };

  // The pairs of axes whose maps have the most cells.
  std::vector<Pair> pairs() const {
    struct Candidate {
      std::size_t across, down;
      SharedPlaces shared;
    };
    std::vector<Candidate> candidates;
    const auto values = [&](std::size_t axis) { return results_.axes[axis].values.size(); };
    for (std::size_t a = 0; a < varied_.size(); ++a) {
      for (std::size_t b = a + 1; b < varied_.size(); ++b) {
        const bool swapped = values(varied_[a]) < values(varied_[b]);
        const std::size_t across = varied_[swapped ? b : a], down = varied_[swapped ? a : b];
        candidates.push_back({across, down, shared_places(values(across), values(down))});
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& one, const Candidate& other) {
      return one.shared.cells > other.shared.cells;
    });
    candidates.resize(std::min(candidates.size(), kMostPairs));
    std::map<std::size_t, std::vector<std::size_t>> orders; // of axes, each sorted once
    const auto places = [&](std::size_t axis, std::size_t shared) {
      std::vector<std::size_t>& order = orders[axis];
      if (order.empty()) {
        order = order_of(results_.axes[axis]);
      }
      return places_of(results_.axes[axis], order, shared);
    };
    std::vector<Pair> pairs;
    for (const auto& [across, down, shared] : candidates) {
      pairs.push_back({across, down, places(across, shared.across), places(down, shared.down)});
    }
    return pairs;
  }

  // A map without its cells.
  Chart empty_map(const Pair& pair, const std::string& what, const std::string& title) const {
    const std::string x = short_name(results_.axes[pair.across].key), y = short_name(results_.axes[pair.down].key);
    Chart chart{.name = what + "-over-" + file_name_of(x + "-" + y),
                .title = title + " over " + x + " and " + y,
                .x = {.title = x, .names = pair.columns.names},
                .y = {.title = y, .names = pair.rows.names}};
    const auto among = [](const Places& places, const char* where) {
      return places.shared > 1 ? std::to_string(places.shared) + " neighbouring values " + where : "";
    };
    const std::string across = among(pair.columns, "across"), down = among(pair.rows, "down");
    if (!across.empty() || !down.empty()) {
      chart.note = "A cell is the best of " + across + (across.empty() || down.empty() ? "" : " and ") + down + ".";
    }
    return chart;
  }

  Mark mark_of(const Pair& pair, std::size_t point) const {
    return {.x = static_cast<double>(pair.columns.of[value(point, pair.across)]),
            .y = static_cast<double>(pair.rows.of[value(point, pair.down)]),
            .text = label(point)};
  }

  // The points that are the best of a cell.
  std::vector<std::size_t> cells(const Pair& pair, const Goal& goal) const {
    const auto best = best_of(pair.cells(), goal, [&](std::size_t point) {
      return pair.rows.of[value(point, pair.down)] * pair.columns.names.size() +
             pair.columns.of[value(point, pair.across)];
    });
    std::vector<std::size_t> points;
    for (const std::int64_t point : best) {
      if (point >= 0) {
        points.push_back(static_cast<std::size_t>(point));
      }
    }
    return points;
  }

  Chart map(const Pair& pair, const Goal& goal) const {
    Chart chart = empty_map(pair, goal.name, goal.title);
    chart.value = goal.axis;
    chart.least_is_best = !goal.largest;
    chart.series = {{"", Look::cells, {}}};
    chart.choice = std::string(goal.title) + " at its best";
    for (const std::size_t point : cells(pair, goal)) {
      Mark& mark = chart.series[0].marks.emplace_back(mark_of(pair, point));
      mark.value = (results_.*goal.column)[point];
    }
    return chart;
  }

  // Which strategy, or schedule, wins where.
  Chart winners(const Pair& pair, std::size_t who) const {
    const std::string& key = results_.axes[who].key;
    Chart chart = empty_map(pair, key + "-that-wins", "The " + key + " that wins");
    chart.choice = kWhoWins;
    std::map<std::uint32_t, ChartSeries> series;
    for (const std::size_t point : cells(pair, kGoals.front())) {
      ChartSeries& one = series[value(point, who)];
      one.name = text(point, who);
      one.color = static_cast<int>(value(point, who));
      one.marks.push_back(mark_of(pair, point));
    }
    for (auto& [name, one] : series) {
      chart.series.push_back(std::move(one));
    }
    return chart;
  }

  std::vector<Chart> maps() const {
    std::vector<Chart> charts;
    const std::vector<Pair> all = pairs();
    for (const Goal* goal : goals_) {
      for (const Pair& pair : all) {
        charts.push_back(map(pair, *goal));
      }
    }
    for (const Pair& pair : all) {
      for (const std::size_t who : varied_) {
        const std::string& key = results_.axes[who].key;
        if ((key == "strategy" || key == "schedule") && who != pair.across && who != pair.down) {
          charts.push_back(winners(pair, who));
        }
      }
    }
    return charts;
  }

  Chart front(const std::string& name, const std::string& title, const char* unit, const std::vector<double>& column,
              double scale) const {
    Chart chart{.name = "front-" + name,
                .title = title,
                .x = {.title = "time per sample [ms]", .logarithmic = true},
                .y = {.title = unit, .logarithmic = true}};
    constexpr double kMilli = 1000;
    std::vector<Mark> inside, outside;
    for (std::size_t point = 0; point < results_.points(); ++point) {
      if (std::isfinite(column[point]) && results_.samples_per_second[point] > 0) {
        (counts(point) ? inside : outside)
            .push_back({.x = kMilli / results_.samples_per_second[point],
                        .y = column[point] * scale,
                        .value = static_cast<double>(point)});
      }
    }
    chart.series = cloud(inside);
    if (!outside.empty()) {
      chart.series.push_back({"outside the constraints", Look::faint, labelled(thinned(outside))});
    }
    if (!inside.empty()) {
      chart.series.push_back({"none is better in both", Look::front, labelled(front_of(std::move(inside)))});
    }
    return chart;
  }

  // At most so many of them as a cloud has, from all over it.
  static std::vector<Mark> thinned(const std::vector<Mark>& marks) {
    const std::size_t stride = std::max<std::size_t>(1, (marks.size() + kMostPoints - 1) / kMostPoints);
    std::vector<Mark> some;
    for (std::size_t at = 0; at < marks.size(); at += stride) {
      some.push_back(marks[at]);
    }
    return some;
  }

  // With labels for the points that were their values.
  std::vector<Mark> labelled(std::vector<Mark> marks) const {
    for (Mark& mark : marks) {
      mark.text = label(static_cast<std::size_t>(mark.value));
      mark.value = Mark::kNone;
    }
    return marks;
  }

  // Points, which are their values, by strategy or schedule.
  std::vector<ChartSeries> cloud(const std::vector<Mark>& points) const {
    const std::int64_t colour = colour_axis(results_.axes.size());
    std::map<std::uint32_t, ChartSeries> series;
    for (const Mark& mark : thinned(points)) {
      const auto point = static_cast<std::size_t>(mark.value);
      const std::uint32_t number = colour < 0 ? 0 : std::min<std::uint32_t>(kNamed - 1, value(point, colour));
      ChartSeries& one = series[number];
      one.name = colour < 0 ? "points" : name_of_series(static_cast<std::size_t>(colour), number);
      one.color = static_cast<int>(number);
      one.marks.push_back(mark);
    }
    std::vector<ChartSeries> all;
    for (auto& [number, one] : series) {
      one.marks = labelled(std::move(one.marks));
      all.push_back(std::move(one));
    }
    return all;
  }

  std::vector<Chart> fronts() const {
    constexpr double kGiga = 1e-9;
    std::vector<Chart> charts;
    const auto known = [](const std::vector<double>& column) {
      return std::any_of(column.begin(), column.end(), [](double value) { return value > 0; });
    };
    const auto add = [&](const char* name, const char* title, const char* unit, const std::vector<double>& column,
                         double scale) {
      if (known(column)) {
        charts.push_back(front(name, title, unit, column, scale));
      }
    };
    add("cost", "Time against money", "USD per million samples", results_.dollars_per_million, 1);
    add("energy", "Time against energy", "J per sample", results_.joules_per_sample, 1);
    add("memory", "Time against memory", "largest peak memory of a device [GB]", results_.peak_memory, kGiga);
    return charts;
  }

  PageTable empty_table(const std::string& title) const {
    PageTable table{.title = title, .columns = {}};
    for (const SweptAxis& axis : results_.axes) {
      table.columns.push_back(short_name(axis.key));
    }
    for (const char* column : {"iteration [s]", "samples/s", "USD per million", "J per sample", "peak memory [GB]"}) {
      table.columns.emplace_back(column);
    }
    if (outside_ > 0) {
      table.columns.emplace_back("constraints");
    }
    table.columns.emplace_back("key");
    return table;
  }

  PageTable best_points() const {
    PageTable table =
        empty_table(outside_ > 0 ? "The points with the highest throughput, first those within the constraints"
                                 : "The points with the highest throughput");
    std::vector<std::size_t> order(results_.points());
    std::iota(order.begin(), order.end(), 0);
    const std::size_t shown = std::min(order.size(), kMostRows);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                      [&](std::size_t a, std::size_t b) {
                        return std::tuple(!counts(a), -results_.samples_per_second[a], a) <
                               std::tuple(!counts(b), -results_.samples_per_second[b], b);
                      });
    for (std::size_t at = 0; at < shown; ++at) {
      table.rows.push_back(row_of(order[at]));
    }
    table.note = shown < order.size() ? std::to_string(order.size() - shown) + " further ones are left out; "
                                                                               "`stagecraft points` has all"
                                      : "";
    return table;
  }

  std::vector<PageCell> row_of(std::size_t point) const {
    constexpr double kGigabyte = 1e9;
    std::vector<PageCell> row;
    for (std::size_t axis = 0; axis < results_.axes.size(); ++axis) {
      const auto numbers = plain_numbers({text(point, axis)});
      row.push_back({text(point, axis), numbers ? std::optional(numbers->front()) : std::nullopt});
    }
    for (const double figure :
         {results_.iteration[point], results_.samples_per_second[point], results_.dollars_per_million[point],
          results_.joules_per_sample[point], results_.peak_memory[point] / kGigabyte}) {
      row.push_back(number_cell(figure));
    }
    if (outside_ > 0) {
      row.push_back({counts(point) ? "kept" : "not kept"});
    }
    row.push_back({results_.keys[point]});
    return row;
  }

  std::vector<PageTable> answers() const {
    std::vector<PageTable> tables;
    for (const SweepAnswer& answer : results_.answers) {
      PageTable table = empty_table("The best: " + answer.words);
      table.columns.insert(table.columns.begin(), "score");
      for (const SweepAnswer::Point& one : answer.best) {
        table.rows.push_back(row_of(one.point));
        table.rows.back().insert(table.rows.back().begin(), PageCell{one.text, one.score});
      }
      if (!table.rows.empty()) {
        tables.push_back(std::move(table));
      }
    }
    return tables;
  }

  PageTable reasons() const {
    PageTable table{.title = "Why points are not feasible", .columns = {"points", "reason"}};
    for (const auto& [reason, count] : results_.reasons) {
      table.rows.push_back({number_cell(static_cast<double>(count)), {reason}});
    }
    return table;
  }

  const SweepResults& results_;
  bool all_;
  std::size_t outside_ = 0;         // points that do not keep to the constraints
  std::vector<std::size_t> varied_; // axes with several values
  std::vector<char> drawn_;         // [axis]
  std::vector<const Goal*> goals_;  // of which there are figures
};

} // namespace

DocumentPage sweep_page(const SweepResults& results) { return SweepCharts(results).page(); }

} // namespace stagecraft
