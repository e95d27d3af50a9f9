// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/purchase.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/large_count.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/report/error_of_ratio.hpp"
#include "sim/result/expected.hpp"
#include "sim/result/plan_line.hpp"

namespace stagecraft {
namespace {

double or_never(double value) { return value > 0 ? value : std::numeric_limits<double>::infinity(); }

constexpr std::array kGoals = {
    PurchaseGoal{"training-cost", "least money for the whole training", "cheapest", "dearer",
                 [](const Choice& choice) { return or_never(choice.whole.cost.value); }},
    PurchaseGoal{"training-time", "least time for the whole training", "fastest", "slower",
                 [](const Choice& choice) { return or_never(choice.whole.time.value); }},
    PurchaseGoal{"training-energy", "least energy for the whole training", "most frugal", "hungrier",
                 [](const Choice& choice) { return or_never(choice.kilowatt_hours); }},
};

// 0: may be chosen; 1: breaks a limit; 2: does not fit.
int block_of(const Choice& choice) { return choice.why_not.empty() ? 0 : choice.fits() ? 1 : 2; }

std::string answer_of(const Purchase& purchase) {
  const Choice& best = purchase.choices.front();
  const std::size_t count = purchase.choices.size();
  const std::string offers = std::to_string(count) + " offers";
  if (!best.fits()) {
    return purchase.model + (count == 1 ? " does not fit on " + best.offer : " fits on none of " + offers) + ".";
  }
  if (!purchase.chosen()) {
    return count == 1 ? best.offer + " breaks the limits: training " + purchase.model + " on it " + best.why_not + "."
                      : "None of " + offers + " keeps to the limits. The nearest is " + best.offer + ", which " +
                            best.why_not + ".";
  }
  const bool known = std::isfinite(purchase.goal->of(best));
  return "Train " + purchase.model + " on " + best.offer +
         (count > 1 && known ? ", the " + std::string(purchase.goal->best) + " of " + offers : "") +
         ": " + in_words(best.whole) + ".";
}

// An offer behind the best.
struct Behind {
  const Choice* choice;
  double lead;
};

std::vector<Behind> behind_best(const Purchase& purchase) {
  std::vector<Behind> behind;
  const Choice& best = purchase.choices.front();
  for (const Choice& choice : purchase.choices) {
    const double lead = purchase.goal->of(choice) / purchase.goal->of(best) - 1;
    if (&choice != &best && choice.why_not.empty() && std::isfinite(lead)) {
      behind.push_back({&choice, lead});
    }
  }
  return behind;
}

std::string in_words(const Behind& one, const Purchase& purchase) {
  constexpr double kSmall = 0.1;
  return one.choice->offer + " (" + percent(one.lead, one.lead < kSmall ? 1 : 0) + " " +
         std::string(purchase.goal->worse) + ")";
}

// What is as good as the best, or how far behind the next is, by how far off ratios of two predictions are.
std::string sure_of(const Purchase& purchase) {
  const std::vector<Behind> behind = behind_best(purchase);
  if (behind.empty()) {
    return "";
  }
  std::vector<std::string> close;
  const WholeTraining& best = purchase.choices.front().whole;
  const Choice* fastest = &purchase.choices.front();
  for (const Behind& one : behind) {
    if (one.lead < kErrorOfRatio) {
      close.push_back(in_words(one, purchase));
      fastest = one.choice->whole.time < fastest->whole.time ? one.choice : fastest;
    }
  }
  if (close.empty()) {
    return "The next is " + in_words(behind.front(), purchase) + "; " + error_of_ratio_in_words() + ".";
  }
  const bool sooner = fastest->whole.time < best.time * (1 - kErrorOfRatio);
  return "Too close to call against " + join(close) + ": " + error_of_ratio_in_words() + "." +
         (sooner ? " Of these " + fastest->offer + " is the fastest: " + training_time_in_words(fastest->whole.time) + "."
                 : "");
}

// Batches that differ change what is learnt, so the reader must know.
std::string batches_of(const Purchase& purchase) {
  const auto [least, most] =
      std::minmax_element(purchase.choices.begin(), purchase.choices.end(),
                          [](const Choice& one, const Choice& other) { return one.global_batch < other.global_batch; });
  return least->global_batch == most->global_batch
             ? ""
             : "Batches grow with the devices, from " + std::to_string(least->global_batch) + " to " +
                   std::to_string(most->global_batch) +
                   " samples, since nobody says otherwise; --set training.global_batch=N does.";
}

std::string plan_of(const Choice& best) {
  const std::string plan = plan_line(best.run);
  return "The plan: " + best.run.strategy + " under " + best.run.schedule + (plan.empty() ? "" : ", " + plan) + ".";
}

std::string range_of(const Choice& best) {
  const std::string basis = basis_of_range(best.run);
  return basis.empty() ? "No runs like this one were measured, so no range is known."
                       : "Nine of ten measured runs would lie in that range: " + basis + ".";
}

std::string failures_of(const Choice& best) {
  return best.goodput ? "Of the time " + percent(*best.goodput, 1) +
                            " goes into iterations that last, the rest into checkpoints, restarts and what failures undo."
                      : "Failures are not counted; buy.failures counts them.";
}

std::vector<NamedPrice> prices_of(const std::vector<Choice>& choices) {
  std::vector<NamedPrice> prices;
  for (const Choice& choice : choices) {
    if (choice.fits()) {
      add_prices(prices, choice.run.prices);
    }
  }
  return prices;
}

} // namespace

std::span<const PurchaseGoal> purchase_goals() { return kGoals; }

void decide(Purchase& purchase) {
  std::stable_sort(purchase.choices.begin(), purchase.choices.end(), [&](const Choice& one, const Choice& other) {
    const auto rank = [&](const Choice& choice) {
      return std::tuple{block_of(choice), choice.fits() ? purchase.goal->of(choice) : 0.0, choice.whole.time.value};
    };
    return rank(one) < rank(other);
  });
  purchase.verdict.clear();
  if (purchase.choices.empty()) {
    return;
  }
  const Choice& best = purchase.choices.front();
  purchase.verdict = {answer_of(purchase)};
  if (best.fits()) {
    for (std::string sentence : {purchase.chosen() ? sure_of(purchase) : "", plan_of(best), range_of(best),
                                 batches_of(purchase), best.remark.empty() ? "" : "About " + best.offer + ": " + best.remark + ".", failures_of(best),
                                 price_remark(prices_of(purchase.choices))}) {
      if (!sentence.empty()) {
        purchase.verdict.push_back(std::move(sentence));
      }
    }
  }
}

} // namespace stagecraft
