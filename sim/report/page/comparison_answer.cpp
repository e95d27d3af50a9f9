// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/comparison_answer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "sim/base/units.hpp"
#include "sim/report/page/finding.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_answer.hpp"
#include "sim/result/expected.hpp"
#include "sim/result/fit_change.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

std::string name_of(const RunValues& run) {
  return run.strategy + " under " + run.schedule + " with " + std::to_string(run.micro_batches) +
         (run.micro_batches == 1 ? " micro-batch" : " micro-batches");
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t at = 0; at < std::min(names.size(), kMost); ++at) {
    text += (at == 0                                                            ? ""
             : at + 1 == std::min(names.size(), kMost) && names.size() <= kMost ? " and "
                                                                                : ", ") +
            names[at];
  }
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " others" : text;
}

// Strategies of which no run fits into memory, in order of their names in the result.
std::vector<std::string> strategies_without_room(const ComparedRuns& runs) {
  std::set<std::string> feasible;
  for (const RunValues& run : runs.all) {
    if (run.feasible) {
      feasible.insert(run.strategy);
    }
  }
  std::vector<std::string> names;
  for (const RunValues& run : runs.all) {
    const bool memory = run.remarks.find(" more than its ") != std::string::npos;
    if (memory && !feasible.contains(run.strategy) &&
        std::find(names.begin(), names.end(), run.strategy) == names.end()) {
      names.push_back(run.strategy);
    }
  }
  return names;
}

// The fastest competing run that does something else than the winner.
const RunValues* runner_up(const ComparedRuns& runs) {
  constexpr double kSame = 1 + 1e-6;
  const auto other = std::find_if(runs.competing.begin(), runs.competing.end(), [&](const RunValues& run) {
    return run.iteration() > kSame * runs.competing.front().iteration() && !run.same_plan(runs.competing.front());
  });
  return other == runs.competing.end() ? nullptr : &*other;
}

// How far two runs must lie apart for their order to be known, as a part of the time; nothing where no error is known.
std::optional<double> doubt_of(const json& run, const RunValues& values) {
  if (const double median = number_at(object_at(run, "expected"), "median_error"); median > 0) {
    return least_sure_lead(median);
  }
  const auto range = range_of_run(run, values);
  return range ? std::optional((range->high - range->low) / 4 / values.iteration()) : std::nullopt;
}

// Whether the winner is one, against the next; with the reasons.
std::string against_next(const json& best, const ComparedRuns& runs) {
  const RunValues& first = runs.competing.front();
  const RunValues* next = runner_up(runs);
  if (next == nullptr) {
    return "";
  }
  const double gap = next->iteration() / first.iteration() - 1;
  const std::string behind = "The next, " + name_of(*next) + ", takes " + percent(gap, gap < 0.1 ? 1 : 0) + " longer";
  if (const double share = first.of(metric("confidence_best")); std::isfinite(share)) {
    constexpr double kSure = 0.9;
    return (share < kSure ? "Too close to call between " + name_of(first) + " and " + name_of(*next) +
                                ": with kernel times drawn anew the first is fastest in "
                          : behind + ": with kernel times drawn anew the winner stays the fastest in ") +
           percent(share, 0) + " of the draws.";
  }
  const std::optional<double> doubt = doubt_of(best, first);
  if (!doubt) {
    constexpr double kAsFast = 0.01;
    return gap < kAsFast ? name_of(*next) + " is practically as fast: it takes " + percent(gap, 1) + " longer."
                         : behind + ".";
  }
  return gap < *doubt ? "Too close to call between " + name_of(first) + " and " + name_of(*next) + ": they lie " +
                            percent(gap, 1) + " apart, less than predictions are off by."
                      : behind + ", more than what predictions of two plans on one machine differ by.";
}

// What is known of how far off the time may be.
std::string how_far_off(const json& best, const RunValues& values) {
  const json& expected = object_at(best, "expected");
  if (const double median = number_at(expected, "median_error"); std::isfinite(median)) {
    const int models = whole_at(expected, "models", 0);
    return "Half of the predictions for " + text_at(expected, "family") + " were within " + percent(median, 0) +
           " of what was measured" + (models > 0 ? ", over " + std::to_string(models) + " models." : ".");
  }
  if (range_of_run(best, values)) {
    return "";
  }
  return "How far off the time may be is not known: no errors were drawn (--confidence), and no recipe of a framework "
         "is "
         "named whose predictions were held against measured runs.";
}

// Where nine of ten measurements of the fullest device's memory would lie.
std::string memory_range(const json& best) {
  const json& expected = object_at(best, "expected_memory");
  const double low = number_at(expected, "low_bytes"), high = number_at(expected, "high_bytes");
  return std::isfinite(low) && std::isfinite(high)
             ? "Its fullest device would need " + to_text(Bytes{low}) + " to " + to_text(Bytes{high}) + " of " +
                   to_text(Bytes{number_at(expected, "have_bytes")}) + " nine times out of ten."
             : "";
}

std::string in_order(std::initializer_list<std::string> sentences) {
  std::string text;
  for (const std::string& sentence : sentences) {
    text += (text.empty() || sentence.empty() ? "" : " ") + sentence;
  }
  return text;
}

// "Train gpt2-xl on these 8 GPUs as a pipeline of 8 stages".
std::string advice(const json& document, const json& best) {
  const std::string device = device_word(document);
  const std::size_t count = list_at(best, "devices").size(), spare = list_at(best, "unused_devices").size();
  const bool alone = count == 1 && spare == 0; // there is nothing to divide
  return "Train " + text_at(document, "model") + " on " +
         (spare > 0    ? std::to_string(count) + " of the " + count_of_devices(count + spare, device)
          : count == 1 ? "this one " + device
                       : "these " + count_of_devices(count, device)) +
         (alone ? "" : " as " + plan_in_words(best, device));
}

std::optional<Finding> naive_finding(const ComparedRuns& runs) {
  const RunValues& best = runs.competing.front();
  const auto naive = std::find_if(runs.competing.begin(), runs.competing.end(),
                                  [](const RunValues& run) { return run.strategy == "uniform"; });
  if (naive == runs.competing.end() || naive == runs.competing.begin()) {
    return {};
  }
  const double factor = naive->iteration() / best.iteration();
  constexpr double kAlike = 1.005; // reads 1.00
  if (factor < kAlike) {
    return {};
  }
  return Finding{factor, "Planning pays: cut into equal parts (uniform under " + naive->schedule + ") a step takes " +
                             to_text(Seconds{naive->iteration()}) + ", " + to_text(factor, 2) + " times as long."};
}

std::optional<Finding> asynchronous_finding(const ComparedRuns& runs) {
  if (runs.apart.empty() || runs.competing.empty()) {
    return {};
  }
  const RunValues &best = runs.competing.front(), &late = runs.apart.front();
  const double gain = 1 - late.iteration() / best.iteration();
  if (gain <= 0) {
    return {};
  }
  return Finding{1 / (1 - gain), "Training with stale weights would be " + percent(gain, 1) + " faster (" +
                                     name_of(late) + ", " + to_text(Seconds{late.iteration()}) +
                                     "), but it changes what is learnt, so it is ranked apart."};
}

std::optional<Finding> help_finding(const json& best) {
  const json& helps = list_at(object_at(best, "explanation"), "sensitivities");
  if (helps.empty()) {
    return {};
  }
  const double gain = -number_at(helps.front(), "change");
  return Finding{1 + std::max(0.0, gain), "What would help most is a faster part: with " +
                                              text_at(helps.front(), "part") + " 10 % faster a step takes " +
                                              percent(gain, 1) + " less."};
}

// The run that is least by a figure other than time, where that is not the winner.
std::optional<Finding> least_finding(const ComparedRuns& runs, const Metric& metric, const std::string& what,
                                     const std::string& unit) {
  const RunValues& best = runs.competing.front();
  const auto least =
      std::min_element(runs.competing.begin(), runs.competing.end(), [&](const RunValues& a, const RunValues& b) {
        const double one = a.of(metric), other = b.of(metric);
        constexpr double kNever = std::numeric_limits<double>::infinity();
        return (one > 0 ? one : kNever) < (other > 0 ? other : kNever);
      });
  const double factor = best.of(metric) / least->of(metric);
  constexpr double kTold = 1.005;
  if (!(factor > kTold)) {
    return {};
  }
  return Finding{factor, what + " " + name_of(*least) + ": " + percent(1 - 1 / factor, 0) + " less than the fastest (" +
                             to_text(least->of(metric), 2) + unit + " against " + to_text(best.of(metric), 2) + unit +
                             "), at " + percent(least->iteration() / best.iteration() - 1, 1) + " more time."};
}

std::optional<Finding> bubble_finding(const RunValues& best) {
  const double bubble = best.of(metric("bubble_fraction"));
  if (!(bubble > 0)) {
    return {};
  }
  return Finding{1 / (1 - std::min(bubble, 0.99)), "Devices wait " + percent(bubble, 1) +
                                                       " of the time (bubbles): that much is left to win by a better " +
                                                       "order of the work."};
}

// The change that makes a run fit, as its remarks have it, or "".
std::string change_of(const RunValues& run) {
  constexpr std::string_view kLead = "would fit with ";
  const std::size_t at = run.remarks.find(kLead);
  return at == std::string::npos ? "" : run.remarks.substr(at + kLead.size());
}

std::optional<Finding> infeasible_finding(const ComparedRuns& runs) {
  const auto without =
      std::count_if(runs.all.begin(), runs.all.end(), [](const RunValues& run) { return !run.feasible; });
  const RunValues* helped = nullptr;
  for (const RunValues& run : runs.all) {
    const bool smaller = helped == nullptr || is_smaller_change(change_of(run), change_of(*helped));
    helped = !run.feasible && !change_of(run).empty() && smaller ? &run : helped;
  }
  if (without == 0) {
    return {};
  }
  std::string sentence =
      std::to_string(without) + " of " + std::to_string(runs.all.size()) + " runs do not fit or cannot run";
  if (helped != nullptr) {
    sentence += "; the least that makes one fit: " + helped->strategy + " under " + helped->schedule + ", with " +
                change_of(*helped);
  }
  return Finding{1, sentence + "."};
}

} // namespace

Answer comparison_answer(const json& document, const ComparedRuns& runs) {
  const json& list = list_at(document, "runs");
  const json& best = list.front();
  const RunValues& values = runs.competing.front();
  Answer answer{advice(document, best) + ": " + to_text(Seconds{values.iteration()}) + " per step"};
  if (const double speedup = values.of(metric("speedup")); speedup > 0 && list_at(best, "devices").size() > 1) {
    answer.sentence += ", " + to_text(speedup, 1) + " times the fastest single " + device_word(document);
  }
  if (const double over = values.of(metric("over_bound"));
      std::isfinite(over) && values.of(metric("lower_bound_seconds")) > 0) {
    answer.sentence += ", " + distance_in_words(over);
  }
  if (const std::vector<std::string> names = strategies_without_room(runs); !names.empty()) {
    answer.sentence += "; " + listed(names) + (names.size() == 1 ? " does" : " do") + " not fit into memory";
  }
  answer.sentence += ".";
  answer.figures = figures_of_run(document, best, values);
  answer.sure = in_order({against_next(best, runs), how_far_off(best, values), memory_range(best)});
  answer.basis = basis_of_run(document, best, price_remark_of(list));
  answer.basis.insert(answer.basis.begin(),
                      {"Plan", "split by " + values.strategy + ", schedule " + values.schedule + ", " +
                                   std::to_string(values.micro_batches) + " micro-batches"});
  return answer;
}

Answer infeasible_answer(const json& document, const ComparedRuns& runs) {
  const std::string what = text_at(document, "model") + " on " + text_at(document, "platform");
  const std::string first = runs.all.empty() ? "" : runs.all.front().remarks;
  const bool alike =
      std::all_of(runs.all.begin(), runs.all.end(), [&](const RunValues& run) { return run.remarks == first; });
  if (alike && !first.empty()) {
    return {.sentence = "Nothing that was tried trains " + what + ": " + first + ".",
            .basis = basis_of_run(document, list_at(document, "runs").front(), "")};
  }
  Answer answer{"Nothing that was tried trains " + what + ": none of " + std::to_string(runs.all.size()) +
                " runs is feasible."};
  if (!runs.all.empty()) {
    answer.sure = "The first, " + name_of(runs.all.front()) + ": " + first + ".";
    answer.basis = basis_of_run(document, list_at(document, "runs").front(), "");
  }
  return answer;
}

std::vector<std::string> comparison_findings(const json& document, const ComparedRuns& runs) {
  std::vector<Finding> findings;
  const auto add = [&](std::optional<Finding> finding) {
    if (finding) {
      findings.push_back(std::move(*finding));
    }
  };
  if (!runs.competing.empty()) {
    const json& best = list_at(document, "runs").front();
    add(naive_finding(runs));
    add(asynchronous_finding(runs));
    add(help_finding(best));
    add(least_finding(runs, metric("usd_per_million_samples"), "Cheapest is", " USD"));
    add(least_finding(runs, metric("joules_per_sample"), "Least energy needs", " J per sample"));
    add(bubble_finding(runs.competing.front()));
  }
  add(infeasible_finding(runs));
  return ranked_sentences(std::move(findings));
}

} // namespace stagecraft
