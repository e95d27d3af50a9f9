// What sweeps found, in words.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/units.hpp"
#include "sim/report/error_of_ratio.hpp"
#include "sim/report/page/finding.hpp"
#include "sim/report/page/run_values.hpp"
#include "sim/report/page/sweep/sweep_scale.hpp"
#include "sim/report/page/sweep/sweep_view.hpp"

namespace stagecraft {
namespace {

// A number for a sentence; large ones without an exponent.
std::string written(double value) {
  constexpr double kLarge = 1e4;
  return std::abs(value) < kLarge ? rounded(value) : to_text(value, 0);
}

// The least and the most of the best that an axis's values reach, as points; -1: there are none.
struct Ends {
  std::int64_t low = -1, high = -1;
  double factor = 1;
};

Ends ends_of(const SweepView& view, std::size_t axis) {
  const ChartGoal& goal = *view.goals().front();
  const std::vector<double>& column = view.results().*goal.column;
  const auto best = view.best_of(view.results().axes[axis].values.size(), goal, [&](std::size_t point) -> std::size_t {
    return view.has(point, axis) ? view.value(point, axis) : SweepView::kNowhere;
  });
  Ends ends;
  for (const std::int64_t point : best) {
    ends.high = point >= 0 && (ends.high < 0 || column[point] > column[ends.high]) ? point : ends.high;
    ends.low = point >= 0 && (ends.low < 0 || column[point] < column[ends.low]) ? point : ends.low;
  }
  ends.factor = ends.high >= 0 && column[ends.low] > 0 ? column[ends.high] / column[ends.low] : 1;
  return ends;
}

// How much the best throughput changes along each axis.
std::vector<Finding> influence(const SweepView& view) {
  std::vector<Finding> found;
  for (const std::size_t axis : view.goals().empty() ? std::vector<std::size_t>{} : view.varied()) {
    constexpr double kSame = 1.005;
    const Ends ends = view.drawn(axis) ? Ends{} : ends_of(view, axis);
    if (ends.factor > kSame) {
      found.push_back({ends.factor, "By " + name_of(view.results().axes[axis]) + " the best " +
                                        std::string(view.goals().front()->axis) + " differ by a factor of " +
                                        rounded(ends.factor) + ": " + shortened(view.text(ends.high, axis)) +
                                        " best, " + shortened(view.text(ends.low, axis)) + " worst."});
    }
  }
  return found;
}

// A point by what decides: the axes that change the best throughput, the most important first; all of them where none
// can be told from the others.
std::string deciding(const SweepView& view, std::int64_t point) {
  std::vector<Finding> parts;
  for (const std::size_t axis : view.goals().empty() ? std::vector<std::size_t>{} : view.varied()) {
    constexpr double kSame = 1.005;
    const auto at = static_cast<std::size_t>(point);
    const double factor = view.drawn(axis) ? 2 : ends_of(view, axis).factor;
    if (factor > kSame && view.has(at, axis)) {
      parts.push_back({factor, value_in_words(view.results().axes[axis], view.text(at, axis))});
    }
  }
  const std::vector<std::string> names = ranked_sentences(std::move(parts));
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? view.label(static_cast<std::size_t>(point)) : text;
}

// The point that is best for a goal; -1 where there is none.
std::int64_t best_for(const SweepView& view, const ChartGoal& goal) {
  return view.best_of(1, goal, [](std::size_t) { return 0; }).front();
}

std::string value_of(const SweepView& view, const ChartGoal& goal, std::int64_t point) {
  const bool assumed = goal.column == &SweepResults::dollars_per_million &&
                       view.results().cost_is_assumed(static_cast<std::size_t>(point));
  return (assumed ? kAssumedMark : "") + written((view.results().*goal.column)[static_cast<std::size_t>(point)]) + " " +
         std::string(goal.axis);
}

// The point that the sweep was made for: the best by its objective, or else by throughput.
std::int64_t answering_point(const SweepView& view) {
  const std::vector<SweepAnswer>& answers = view.results().answers;
  if (!answers.empty() && !answers.front().best.empty()) {
    return static_cast<std::int64_t>(answers.front().best.front().point);
  }
  return view.goals().empty() ? -1 : best_for(view, *view.goals().front());
}

// What is best by the other goals, where that is another point.
std::vector<Finding> other_goals(const SweepView& view) {
  std::vector<Finding> found;
  const std::int64_t chosen = answering_point(view);
  for (const ChartGoal* goal : view.goals()) {
    const std::int64_t best = best_for(view, *goal);
    if (best < 0 || best == chosen) {
      continue;
    }
    const std::vector<double>& column = view.results().*goal->column;
    const double ratio = chosen >= 0 ? column[best] / column[chosen] : 1;
    const double factor = ratio > 1 ? ratio : 1 / ratio;
    found.push_back({std::isfinite(factor) ? factor : 1, std::string(goal->title) + ": the best is " +
                                                             value_of(view, *goal, best) + ", by " +
                                                             view.label(static_cast<std::size_t>(best)) + "."});
  }
  return found;
}

std::string constraints_kept(const SweepView& view) {
  const std::string constraints = " the constraints (" + view.results().constraints + ")";
  if (view.outside() == 0 || view.outside() == view.results().points()) {
    return (view.outside() == 0 ? "All feasible points keep to" : "No feasible point keeps to") + constraints + ".";
  }
  return std::to_string(view.results().points() - view.outside()) + " feasible points keep to" + constraints +
         "; charts and findings are of these, " + std::to_string(view.outside()) +
         " others count only where charts show all.";
}

// Which points count, in sentences.
std::string what_counts(const SweepView& view) {
  std::string text = view.results().training;
  const auto add = [&](const std::string& sentence) { text += (text.empty() ? "" : " ") + sentence; };
  if (view.results().constraints_differ) {
    add("The sweeps of this file have different constraints: charts and findings heed none of them" +
        std::string(view.results().constraints.empty() ? "." : " but the one below."));
  }
  if (!view.results().constraints.empty()) {
    add(constraints_kept(view));
  }
  return text;
}

std::string counts_of(const SweepResults& results) {
  return std::to_string(results.points()) + " feasible, " + std::to_string(results.infeasible) + " not, " +
         std::to_string(results.failed) + " failed" +
         (results.screened > 0 ? "; " + std::to_string(results.screened) + " known from the first pass alone" : "");
}

// "4.834 USD" of "4.834 USD per million samples", and the rest.
std::pair<std::string, std::string> in_two(const std::string& value) {
  const std::size_t per = value.find(" per ");
  const std::size_t cut = per == std::string::npos      ? value.find(' ')
                          : value.find("samples") < per ? value.find(' ')
                                                        : per;
  return {value.substr(0, cut), cut == std::string::npos ? "" : value.substr(cut + 1)};
}

std::vector<AnswerFigure> figures_of(const SweepView& view, std::int64_t point) {
  const SweepResults& results = view.results();
  const auto at = static_cast<std::size_t>(point);
  std::vector<AnswerFigure> figures = {{"Time per step", to_text(Seconds{results.iteration[at]})}};
  for (const ChartGoal* goal : view.goals()) {
    if (!std::isfinite((results.*goal->column)[at])) {
      continue;
    }
    const std::int64_t best = best_for(view, *goal);
    const auto [value, unit] = in_two(value_of(view, *goal, point));
    const bool elsewhere =
        best >= 0 && (results.*goal->column)[static_cast<std::size_t>(best)] != (results.*goal->column)[at];
    figures.push_back({goal->title, value,
                       unit + (elsewhere ? "; the best elsewhere: " + in_two(value_of(view, *goal, best)).first : "")});
  }
  if (std::isfinite(results.peak_memory[at])) {
    figures.push_back({"Peak memory", to_text(Bytes{results.peak_memory[at]}), "of the fullest device"});
  }
  const std::uint64_t tried = results.points() + results.infeasible + results.failed;
  figures.push_back({"Feasible", std::to_string(results.points()), "of " + std::to_string(tried) + " combinations"});
  return figures;
}

// What decides most, and whether the second best is much worse.
std::string how_sure(const SweepView& view) {
  std::string text = what_counts(view);
  const std::vector<SweepAnswer>& answers = view.results().answers;
  if (!answers.empty() && answers.front().best.size() > 1) {
    const SweepAnswer::Point &first = answers.front().best[0], &second = answers.front().best[1];
    const double gap = std::abs(second.score / first.score - 1);
    constexpr double kEqual = 1e-3;
    const std::string next = view.label(second.point);
    text += (text.empty() ? "" : " ") + (gap < kEqual ? "As good is " + next + ": choose between them by other reasons."
                                         : gap < kErrorOfRatio
                                             ? "Too close to call against the next best, " + next + ", which is " +
                                                   percent(gap, 1) + " behind: " + error_of_ratio_in_words() + "."
                                             : "The next best, " + next + ", is " + percent(gap, 1) + " behind.");
  }
  return text;
}

} // namespace

std::string asked_by(const SweepView& view, const SweepAnswer& answer) {
  const std::vector<SweepAnswer>& all = view.results().answers;
  return all.size() < 2 ? ""
                        : " by sweep " + std::to_string(&answer - all.data() + 1) +
                              (answer.sweep.empty() ? "" : ", " + answer.sweep);
}

Answer sweep_answer(const SweepView& view) {
  const SweepResults& results = view.results();
  Answer answer;
  const std::int64_t point = results.points() > 0 ? answering_point(view) : -1;
  const std::vector<SweepAnswer>& asked = results.answers;
  if (point < 0) {
    answer.sentence = "No combination that was tried is known to be feasible: " + counts_of(results) + ".";
  } else if (!asked.empty() && !asked.front().best.empty()) {
    answer.sentence = "Of " + std::to_string(results.points() + results.infeasible + results.failed) +
                      " combinations, the one with the " + asked.front().words + " is " + deciding(view, point) + ": " +
                      asked.front().best.front().text + ".";
  } else {
    answer.sentence = "Of " + std::to_string(results.points() + results.infeasible + results.failed) +
                      " combinations, the fastest is " + deciding(view, point) + ": " +
                      value_of(view, *view.goals().front(), point) + ".";
  }
  if (point >= 0) {
    answer.figures = figures_of(view, point);
  }
  answer.sure = how_sure(view);
  answer.basis = results.basis;
  answer.basis.push_back({"Points", counts_of(results)});
  if (!results.prices.empty()) {
    answer.basis.push_back({"Prices", results.prices.substr(results.prices.starts_with("Prices: ") ? 8 : 0)});
  }
  return answer;
}

std::vector<std::string> sweep_findings(const SweepView& view) {
  std::vector<std::string> sentences;
  const std::vector<SweepAnswer>& answers = view.results().answers;
  for (std::size_t at = 0; at < answers.size(); ++at) { // the card has the first
    const SweepAnswer& answer = answers[at];
    if (at > 0 || answer.best.empty()) {
      sentences.push_back("Asked for" + asked_by(view, answer) + ": " + answer.words + ". " +
                          (answer.best.empty() ? "No point that is known to be feasible has it."
                                               : "The best point comes to " + answer.best.front().text + " (" +
                                                     view.label(answer.best.front().point) + ")."));
    }
  }
  std::vector<Finding> findings = influence(view);
  for (Finding& finding : other_goals(view)) {
    findings.push_back(std::move(finding));
  }
  for (std::string& sentence : ranked_sentences(std::move(findings))) {
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

} // namespace stagecraft
