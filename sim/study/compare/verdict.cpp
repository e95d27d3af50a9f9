// The comparison in words.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/result/expected.hpp"
#include "sim/result/plan_line.hpp"
#include "sim/result/whole_training.hpp"
#include "sim/study/compare/compare.hpp"

namespace stagecraft {
namespace {

std::string name_of(const Run& run) {
  return run.strategy + " under " + run.schedule + " with " + std::to_string(run.micro_batches) +
         (run.micro_batches == 1 ? " micro-batch" : " micro-batches");
}

// The same with what it recomputes, where a run beside it is called alike and recomputes something else.
std::string name_of(const Comparison& comparison, const Run& run) {
  const bool other = std::any_of(comparison.runs.begin(), comparison.runs.end(), [&](const Run& one) {
    return one.feasible && name_of(one) == name_of(run) && one.recompute.what != run.recompute.what;
  });
  return name_of(run) + (!other                         ? ""
                         : run.recompute.what == "none" ? ", without recomputation"
                                                        : ", with recomputation");
}

// One rank of a pipeline has nothing to put in order, whatever the schedule is called.
bool has_one_rank(const Run& run) { return run.feasible && pipeline_ranks(run) == 1; }

bool is_same_plan(const Run& one, const Run& other) { return has_one_rank(one) && plan_line(one) == plan_line(other); }

bool is_same_time(const Run& one, const Run& other) {
  constexpr double kRounding = 1e-9;
  return std::abs(one.metrics.iteration / other.metrics.iteration - 1) <= kRounding;
}

// ", 35635 tokens/s (MFU 41.2 %)", or "" for a model without tokens.
std::string token_rate(const Run& run) {
  if (run.tokens_per_second <= 0) {
    return "";
  }
  return ", " + to_text(run.tokens_per_second, 0) + " tokens/s" +
         (run.mfu > 0 ? " (MFU " + percent(run.mfu, 1) + ")" : std::string());
}

std::string what_won(const Comparison& comparison, const Run& best) {
  const bool by_any =
      has_one_rank(best) && std::any_of(comparison.runs.begin(), comparison.runs.end(), [&](const Run& run) {
        return run.feasible && run.schedule != best.schedule && is_same_plan(run, best);
      });
  return name_of(best) + (comparison.runs.size() > 1 ? " wins: " : " takes ") + to_text(best.metrics.iteration) +
         " per iteration of " + std::to_string(comparison.global_batch) + " samples, " +
         to_text(best.samples_per_second, 1) + " samples/s" + token_rate(best) +
         (best.devices.size() > 1
              ? ", " + to_text(best.speedup, 2) + " times the fastest single device. The plan: " + plan_line(best)
              : "") +
         "." + (by_any ? " It has no pipeline, so that other schedules do the same." : "");
}

std::string against_naive(const Comparison& comparison, const Run& naive) {
  const Run& best = comparison.runs.front();
  if (naive.strategy == best.strategy && naive.schedule == best.schedule && naive.micro_batches == best.micro_batches &&
      naive.recompute.what == best.recompute.what) {
    return "No naive choice is slower: it is the naive choice itself.";
  }
  const double gain = naive.metrics.iteration / best.metrics.iteration;
  constexpr double kAlike = 1.005; // reads 1.00
  return (gain < kAlike ? "Practically as fast is " : "That is " + to_text(gain, 2) + " times as fast as ") +
         name_of(comparison, naive) + " (" + to_text(naive.metrics.iteration) + ").";
}

// A winner whose gradients come late may need more iterations to learn as much.
std::string how_late(const Comparison& comparison) {
  const Run& best = comparison.runs.front();
  if (best.staleness.empty()) {
    return "";
  }
  const auto punctual = std::find_if(comparison.runs.begin(), comparison.runs.end(),
                                     [](const Run& run) { return run.feasible && run.is_exact(); });
  return "It is " + staleness_remark(best.staleness) +
         (punctual == comparison.runs.end() ? "; no run of exact training is feasible here"
                                            : "; the fastest that is not is " + name_of(*punctual) + " (" +
                                                  to_text(punctual->metrics.iteration) + ")") +
         ".";
}

// What the best asynchronous run would gain over a winner of exact training, and what remains of that when the winner
// pays no barrier either; "" where none is ranked apart.
std::string what_stale_weights_gain(const Comparison& comparison, std::optional<Seconds> without_barrier) {
  const int at = best_asynchronous(comparison);
  if (at < 0) {
    return "";
  }
  const Run& best = comparison.runs.front();
  const Run& late = comparison.runs[at];
  const Seconds lead = best.metrics.iteration - late.metrics.iteration;
  std::string text = "Ranked apart, as throughput only: " + name_of(late) + " takes " + to_text(late.metrics.iteration);
  if (lead.value <= 0) {
    return text + ", so no asynchronous run is faster.";
  }
  text += ", " + percent(lead / best.metrics.iteration, 1) + " less than the winner; it is " +
          staleness_remark(late.staleness);
  if (without_barrier) {
    const Seconds left = *without_barrier - late.metrics.iteration;
    text += ", and its steps wait for no barrier. Without one ('training.step: local') the winner takes " +
            to_text(*without_barrier) + ", which leaves " +
            (left.value > 0 ? percent(left / lead, 0) : std::string("nothing")) + " of that lead";
  }
  return text + ".";
}

std::string against_bound(const Comparison& comparison, const Run& best) {
  if (best.lower_bound.value <= 0) {
    return "No lower bound is known here.";
  }
  return "No plan " + comparison.bound_holds_for + " can take less than " + to_text(best.lower_bound) +
         "; this one is " + percent(best.over_bound(), 1) + " above that bound." +
         (best.expected && best.expected->low < best.lower_bound
              ? " The bound rests on the same costs as the prediction, so that a measured time may be below it."
              : "");
}

// Whether a lead of that part of the time may be none, and why.
std::string may_be_none(const Run& best, double lead) {
  constexpr double kTie = 0.03; // of pairs of measured runs, as docs/validation/what-ifs.md counts them
  if (!best.expected) {
    return lead < kTie ? "; measured, a lead of less than " + percent(kTie, 0) + " may turn round" : "";
  }
  return lead < least_sure_lead(best.expected->median)
             ? "; too close to call, since half of the predictions of such runs were more than " +
                   percent(best.expected->median, 0) + " off"
             : "";
}

// The fastest run that does something else than the winner, and by how much it is slower; "" where there is none.
std::string against_next(const Comparison& comparison, const Run& naive) {
  const Run& best = comparison.runs.front();
  const auto next = std::find_if(comparison.runs.begin() + 1, comparison.runs.end(), [&](const Run& run) {
    return !comparison.competes(run) || !(is_same_plan(best, run) || is_same_time(best, run));
  });
  if (next == comparison.runs.end() || !comparison.competes(*next) || &*next == &naive) { // which is told already
    return "";
  }
  const double slower = next->metrics.iteration / best.metrics.iteration - 1;
  return "The next, " + name_of(comparison, *next) + ", takes " + percent(slower, 1) + " more" +
         may_be_none(best, slower) + ".";
}

// The part of the cluster of which more speed would shorten the winner most; "" where none was looked for.
std::string what_would_help(const Run& best, const std::vector<Sensitivity>& sensitivities) {
  constexpr double kTold = 5e-4; // of an iteration
  const std::string by = to_digits(100 * (Sensitivity::kFaster - 1), 3) + " % faster";
  if (sensitivities.empty()) {
    return "";
  }
  const Sensitivity& first = sensitivities.front();
  const double gain = 1 - first.iteration / best.metrics.iteration;
  return gain < kTold ? "No single part of the cluster that is " + by + " would make it shorter. "
                      : "What would help most is a faster part '" + first.part + "': " + by + ", an iteration takes " +
                            percent(gain, 1) + " less. ";
}

std::string what_is_busy(const Run& best) {
  const auto busiest = std::max_element(best.metrics.busy.begin(), best.metrics.busy.end());
  const auto device = static_cast<std::size_t>(busiest - best.metrics.busy.begin());
  Seconds exposed;
  for (const Seconds one : best.metrics.exposed) {
    exposed = std::max(exposed, one);
  }
  return "The busiest device, '" + best.devices[device] + "', computes " +
         percent(*busiest / best.metrics.iteration, 1) + " of the time" +
         (best.busiest_link.empty() ? ""
                                    : ", the busiest link, '" + best.busiest_link + "', carries data " +
                                          percent(best.busiest_link_share, 1)) +
         "; bubbles take " + percent(best.metrics.bubble_fraction, 1) +
         " of all devices' time, and no device waits longer than " + to_text(exposed) + " for data that is being sent.";
}

// How sure the winner is under the cost model's errors; the rival is the other run of its block that is the fastest
// most often.
std::string how_sure(const Comparison& comparison) {
  constexpr double kSure = 0.9;
  const Run& best = comparison.runs.front();
  if (!best.confidence) {
    return "";
  }
  const RunSpread& spread = best.confidence->iteration;
  std::string text = "The cost model may err: in " + std::to_string(spread.samples) + " draws it takes " +
                     to_text(spread.low) + " to " + to_text(spread.high) + " (5 to 95 %) and is the fastest in " +
                     percent(best.confidence->best, 0);
  const Run* rival = nullptr;
  for (const Run& run : comparison.runs) {
    const bool same =
        run.metrics.iteration.value <= best.metrics.iteration.value * (1 + 1e-9) || is_same_plan(best, run);
    if (comparison.competes(run) && !same && (rival == nullptr || run.confidence->best > rival->confidence->best)) {
      rival = &run;
    }
  }
  if (rival != nullptr && best.confidence->best < kSure) {
    text += "; too close to call: " + name_of(*rival) + " is it in " + percent(rival->confidence->best, 0);
  }
  return text + ".";
}

// Time and money of a billion tokens, from which a whole training follows; "" where the model has none.
std::string what_tokens_take(const Run& best) {
  if (!(best.tokens_per_second > 0)) {
    return "";
  }
  if (const auto whole = whole_training(best)) {
    return in_words(*whole) + ".";
  }
  constexpr double kTokens = 1e9, kHour = 3600, kDay = 24 * kHour;
  const double seconds = kTokens / best.tokens_per_second;
  const bool days = seconds > 2 * kDay;
  const double samples = seconds * best.samples_per_second;
  const std::string mark = best.metrics.assumed_cost.value > 0 ? kAssumedMark : "";
  const std::string money = mark + to_text(best.cost_per_million_samples * (samples / 1e6));
  return "A billion tokens take " +
         (days ? to_text(seconds / kDay, 1) + " days" : to_text(seconds / kHour, 1) + " hours") +
         (best.cost_per_million_samples.value > 0 ? " and cost " + money : "") + ".";
}

// Energy and money of the winner, and the run of its block that takes the least of each where that is another one.
std::string what_it_takes(const Comparison& comparison) {
  const Run& best = comparison.runs.front();
  const auto least = [&](auto figure) {
    const Run* found = &best;
    for (const Run& run : comparison.runs) {
      found = comparison.competes(run) && figure(run) < figure(*found) * (1 - 1e-9) ? &run : found;
    }
    return found;
  };
  const auto other = [&](const Run& run, const std::string& does, const std::string& figure) {
    return &run == &best ? "" : "; " + name_of(run) + " " + does + " least, " + figure;
  };
  std::string text;
  if (best.energy_per_sample.value > 0) {
    const Run& frugal = *least([](const Run& run) { return run.energy_per_sample.value; });
    text = "It draws " + to_text(best.energy_per_sample) + " per sample, " +
           to_text(best.metrics.energy.total() / best.metrics.iteration) + " on average" +
           other(frugal, "draws", to_text(frugal.energy_per_sample)) + ".";
  }
  if (best.cost_per_million_samples.value > 0) {
    const Run& cheap = *least([](const Run& run) { return run.cost_per_million_samples.value; });
    text += (text.empty() ? "" : " ") + std::string("A million samples cost ") + cost_of_million(best) +
            other(cheap, "costs", cost_of_million(cheap)) + ".";
  }
  const std::string tokens = what_tokens_take(best);
  return text + (text.empty() || tokens.empty() ? "" : " ") + tokens;
}

// Where devices are timed by different means their order may be the means' own; "" where all are timed alike. A part
// below 1 % decides nothing.
std::string what_times_rest_on(const Comparison& comparison) {
  std::vector<const CostBasis*> types;
  for (const Run& run : comparison.runs) {
    for (const CostBasis& basis : run.cost_basis) {
      const bool known = std::any_of(types.begin(), types.end(), [&](auto* one) { return one->type == basis.type; });
      if (comparison.competes(run) && !known) {
        types.push_back(&basis);
      }
    }
  }
  if (std::all_of(types.begin(), types.end(), [&](auto* one) { return one->main() == types.front()->main(); })) {
    return "";
  }
  std::string text;
  for (const CostBasis* basis : types) {
    text += (text.empty() ? "" : ", ") + basis->type + " on " +
            std::string(kCostSources[static_cast<std::size_t>(basis->main())].words);
  }
  return "Times rest on different things: those of " + text +
         "; which device is the faster one is not known better "
         "than the worse of them.";
}

// The reason of all infeasible runs, or "" where they have several.
std::string one_reason(const Comparison& comparison) {
  const Run* first = nullptr;
  for (const Run& run : comparison.runs) {
    if (!run.feasible && first != nullptr && run.why_not != first->why_not) {
      return "";
    }
    first = run.feasible ? first : &run;
  }
  return first == nullptr ? "" : first->why_not;
}

// How many runs are infeasible, and, where few fit, the smallest change that makes the first of them fit, or why none
// does; "" where
// all are feasible.
std::string what_does_not_fit(const Comparison& comparison) {
  std::size_t count = 0;
  const Run* mended = nullptr;
  for (const Run& run : comparison.runs) {
    count += run.feasible ? 0 : 1;
    mended = mended == nullptr && !run.feasible && !run.would_fit.empty() ? &run : mended;
  }
  if (count == 0) {
    return "";
  }
  constexpr std::size_t kManyFit = 10; // then nobody needs a change
  std::string text = std::to_string(count) + " of " + std::to_string(comparison.runs.size()) + " runs are infeasible";
  if (comparison.runs.size() - count >= kManyFit) {
    return text + ".";
  }
  if (mended != nullptr) {
    text += "; the smallest change that makes " + name_of(*mended) + " fit is " + mended->would_fit;
  } else if (const std::string reason = one_reason(comparison); !reason.empty()) {
    text += (count > 1 ? ", all for one reason: " : ": ") + reason;
  }
  return text + ".";
}

} // namespace

int naive_run(const Comparison& comparison) {
  const auto& runs = comparison.runs;
  int last = -1;
  for (std::size_t i = 0; i < runs.size() && comparison.competes(runs[i]); ++i) {
    last = static_cast<int>(i);
    if (runs[i].strategy == "uniform") {
      return last;
    }
  }
  return last;
}

int best_asynchronous(const Comparison& comparison) {
  const auto& runs = comparison.runs;
  if (runs.empty() || block_of(runs.front(), comparison.rank) != 0) {
    return -1;
  }
  const auto late =
      std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return block_of(run, comparison.rank) == 1; });
  return late == runs.end() ? -1 : static_cast<int>(late - runs.begin());
}

std::vector<std::string> make_verdict(const Comparison& comparison, const std::vector<Sensitivity>& sensitivities,
                                      std::optional<Seconds> without_barrier) {
  const int naive = naive_run(comparison);
  std::vector<std::string> verdict;
  if (naive < 0) {
    verdict.emplace_back("Nothing is feasible here.");
  } else {
    const Run& best = comparison.runs.front();
    verdict.push_back(what_won(comparison, best));
    if (comparison.runs.size() > 1) {
      const std::string next = against_next(comparison, comparison.runs[naive]);
      verdict.push_back(against_naive(comparison, comparison.runs[naive]) + (next.empty() ? "" : " ") + next);
    }
    if (std::string late = how_late(comparison); !late.empty()) {
      verdict.push_back(std::move(late));
    }
    if (std::string gained = what_stale_weights_gain(comparison, without_barrier); !gained.empty()) {
      verdict.push_back(std::move(gained));
    }
    if (std::string expected = expected_in_words(best); !expected.empty()) {
      verdict.push_back(std::move(expected));
    }
    if (std::string sure = how_sure(comparison); !sure.empty()) {
      verdict.push_back(std::move(sure));
    }
    verdict.push_back(against_bound(comparison, best));
    verdict.push_back(what_would_help(best, sensitivities) + what_is_busy(best));
    if (std::string takes = what_it_takes(comparison); !takes.empty()) {
      verdict.push_back(std::move(takes));
    }
    if (std::string prices = price_remark(prices_of(comparison.runs)); !prices.empty()) {
      verdict.push_back(std::move(prices));
    }
    if (std::string basis = what_times_rest_on(comparison); !basis.empty()) {
      verdict.push_back(std::move(basis));
    }
  }
  if (std::string rest = what_does_not_fit(comparison); !rest.empty()) {
    verdict.push_back(std::move(rest));
  }
  return verdict;
}

} // namespace stagecraft
