// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/purchase.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/add_new.hpp"
#include "sim/base/improves.hpp"
#include "sim/base/large_count.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/report/error_of_ratio.hpp"
#include "sim/result/expected.hpp"
#include "sim/result/plan_line.hpp"

namespace stagecraft {
namespace {

constexpr std::array kGoals = {
    PurchaseGoal{"training-cost", "least money for the whole training", "cheapest", "dearer",
                 [](const Choice& choice) { return choice.price.is_known ? choice.whole.cost.value : kInfinity; }},
    PurchaseGoal{"training-time", "least time for the whole training", "fastest", "slower",
                 [](const Choice& choice) { return choice.whole.time.value; }},
    PurchaseGoal{"training-energy", "least energy for the whole training", "most frugal", "hungrier",
                 [](const Choice& choice) { return choice.kilowatt_hours > 0 ? choice.kilowatt_hours : kInfinity; }},
};

// Whether somebody says what it costs, be it nothing.
bool is_known(const Price& price) { return price.rate.value > 0 || price.source == kGivenHere; }

// 0: qualifies; 1: breaks a limit; 2: does not fit.
int block_of(const Choice& choice) { return choice.qualifies() ? 0 : choice.fits() ? 1 : 2; }

std::string answer_without_choice(const Purchase& purchase) {
  const Choice& best = purchase.choices.front();
  const std::string offers = std::to_string(purchase.choices.size()) + " offers";
  const bool alone = purchase.choices.size() == 1;
  if (!best.fits()) {
    return alone ? best.offer + " cannot train " + purchase.model + ": " + best.why_not + "."
                 : "None of " + offers + " can train " + purchase.model + "; " + best.offer + ": " + best.why_not + ".";
  }
  const std::string why = "training " + purchase.model + " on it " + best.why_not + ".";
  const bool ends = std::isfinite(purchase.terms.goal->of(best)); // else none is the cheapest
  const std::string rank = ends ? "The " + std::string(purchase.terms.goal->best) + " is " : "";
  return alone ? best.offer + " is out: " + why : "All " + offers + " are out. " + rank + best.offer + ": " + why;
}

// "the cheapest of the 2 of 5 offers that qualify"; "" for a single offer.
std::string distinction_of(const Purchase& purchase) {
  const std::size_t all = purchase.choices.size();
  const auto some = static_cast<std::size_t>(std::count_if(purchase.choices.begin(), purchase.choices.end(),
                                                           [](const Choice& choice) { return choice.qualifies(); }));
  if (all == 1) {
    return "";
  }
  const std::string offers = std::to_string(all) + " offers";
  if (some == 1) {
    return ", the only one of " + offers + " that qualifies";
  }
  const bool is_known = std::isfinite(purchase.terms.goal->of(purchase.choices.front()));
  return !is_known     ? ", one of " + offers
         : some == all ? ", the " + std::string(purchase.terms.goal->best) + " of " + offers
                       : ", the " + std::string(purchase.terms.goal->best) + " of the " + std::to_string(some) +
                             " of " + offers + " that qualify";
}

// What is asked for, where the days and dollars do not say it.
std::string energy_of(const Purchase& purchase) {
  const bool asked = purchase.terms.goal->name == "training-energy";
  return asked ? "; its machines draw " + three_digits(purchase.choices.front().kilowatt_hours) + " kWh" : "";
}

std::string answer_of(const Purchase& purchase) {
  return purchase.is_chosen()
             ? "Train " + purchase.model + " on " + purchase.choices.front().offer + distinction_of(purchase) + ": " +
                   in_words(purchase.choices.front().whole) + energy_of(purchase) + "."
             : answer_without_choice(purchase);
}

// An offer behind the best.
struct Behind {
  const Choice* choice;
  double lead; // by how much more it takes, as a part of the best; infinite beside an offer that costs nothing
};

std::vector<Behind> behind_best(const Purchase& purchase) {
  std::vector<Behind> behind;
  const Choice& best = purchase.choices.front();
  for (const Choice& choice : purchase.choices) {
    const double least = purchase.terms.goal->of(best), other = purchase.terms.goal->of(choice);
    if (&choice != &best && choice.qualifies() && std::isfinite(other)) {
      behind.push_back({&choice, other == least ? 0 : other / least - 1});
    }
  }
  return behind;
}

std::string in_words(const Behind& one, const Purchase& purchase) {
  constexpr double kSmall = 0.1, kNothing = 5e-4;
  const std::string worse(purchase.terms.goal->worse);
  return one.choice->offer + " (" +
         (one.lead < kNothing        ? "the same"
          : !std::isfinite(one.lead) ? worse // than what costs nothing
                                     : percent(one.lead, one.lead < kSmall ? 1 : 0) + " " + worse) +
         ")";
}

// How far off the ratio of two choices is, in the median: on one kind of machines as ratios are, on two as the worse
// known of them where that is more. Nothing where nobody knows it of one.
std::optional<double> error_between(const Choice& one, const Choice& other) {
  if (one.device_types == other.device_types) {
    return kErrorOfRatio;
  }
  return one.run.expected && other.run.expected
             ? std::optional(std::max({kErrorOfRatio, one.run.expected->median, other.run.expected->median}))
             : std::nullopt;
}

std::string in_words(const std::optional<double>& error) {
  return !error                    ? "nothing says how far off their ratio is"
         : *error <= kErrorOfRatio ? error_of_ratio_in_words()
                                   : "runs like one of them are " + percent(*error, 0) + " off in the median";
}

// What is as good as the best, or how far behind the next is, by how far off ratios of two predictions are.
std::string sure_of(const Purchase& purchase) {
  const std::vector<Behind> behind = behind_best(purchase);
  if (!purchase.is_chosen() || behind.empty()) {
    return "";
  }
  std::vector<std::string> close;
  const Choice& best = purchase.choices.front();
  const Choice* fastest = &best;
  std::optional<double> error = 0;
  for (const Behind& one : behind) {
    const std::optional<double> between = error_between(best, *one.choice);
    if (one.lead < between.value_or(kErrorOfRatio)) {
      close.push_back(in_words(one, purchase));
      fastest = one.choice->whole.time < fastest->whole.time ? one.choice : fastest;
      error = error && between ? std::optional(std::max(*error, *between)) : std::nullopt;
    }
  }
  if (close.empty()) {
    return "The next is " + in_words(behind.front(), purchase) + ": " +
           in_words(error_between(best, *behind.front().choice)) + ".";
  }
  const bool sooner = fastest->whole.time < best.whole.time * (1 - kErrorOfRatio);
  return "Too close to call against " + join(close) + ": " + in_words(error) + "." +
         (sooner
              ? " Of these " + fastest->offer + " is the fastest: " + training_time_in_words(fastest->whole.time) + "."
              : "");
}

std::string range_of(const Purchase& purchase) {
  const Run& best = purchase.choices.front().run;
  const std::string basis = basis_of_range(best);
  return !purchase.is_chosen() ? ""
         : best.expected       ? "Nine of ten measured runs would lie in that range: " + basis + "."
         : best.confidence     ? "That range is of " + basis + "."
                               : "No runs like this one were measured, so no range is known.";
}

// What was assumed for every offer, and of which keys each has a value of its own.
std::string assumed_of(const Purchase& purchase) {
  std::vector<std::string> shared, own;
  const auto is_everywhere = [&](const Setting& setting) {
    return std::all_of(purchase.choices.begin(), purchase.choices.end(), [&](const Choice& choice) {
      return std::any_of(choice.assumed.begin(), choice.assumed.end(), [&](const Setting& other) {
        return other.key == setting.key && other.value == setting.value;
      });
    });
  };
  for (const Choice& choice : purchase.choices) {
    for (const Setting& setting : choice.assumed) {
      is_everywhere(setting) ? add_new(shared, setting.key + "=" + setting.value) : add_new(own, setting.key);
    }
  }
  if (purchase.longest > 0) {
    shared.insert(shared.begin(), "sequence " + std::to_string(purchase.longest) +
                                      ", the longest that config.json allows (--seq changes it)");
  }
  if (shared.empty() && own.empty()) {
    return "";
  }
  return "Assumed, since nobody says otherwise: " + join(shared) +
         (own.empty() ? "" : (shared.empty() ? "" : "; ") + std::string("for each offer by itself ") + join(own)) +
         ". --set KEY=VALUE changes it.";
}

// Batches that differ change what is learnt, so the reader must know.
std::string batches_of(const Purchase& purchase) {
  int least = 0, most = 0;
  for (const Choice& choice : purchase.choices) {
    if (choice.fits()) {
      least = least == 0 ? choice.global_batch : std::min(least, choice.global_batch);
      most = std::max(most, choice.global_batch);
    }
  }
  return least == most ? ""
                       : "Batches differ, from " + std::to_string(least) + " to " + std::to_string(most) +
                             " samples, and with them what is learnt.";
}

std::string framework_of(const Purchase& purchase) {
  const bool ideal = std::any_of(purchase.choices.begin(), purchase.choices.end(),
                                 [](const Choice& choice) { return choice.fits() && choice.framework.empty(); });
  return ideal ? "No framework is named, so the machines are ideal and the times too short; --set "
                 "training.framework=NAME names one."
               : "";
}

std::string failures_of(const Choice& best) {
  return !std::isfinite(best.whole.time.value) ? ""
         : !best.goodput                       ? "Failures are not counted; buy.failures counts them."
                                               : "Of the time " + percent(*best.goodput, 1) +
                               " goes into iterations that last, the rest into checkpoints, restarts and what failures "
                               "undo.";
}

// What the answer rests on.
std::vector<std::string> notes_of(const Purchase& purchase) {
  const Choice& best = purchase.choices.front();
  std::vector<std::string> notes;
  if (best.fits()) {
    notes = {"The plan: " + plan_of(best) + ".", range_of(purchase),
             best.remark.empty() ? "" : "About " + best.offer + ": " + best.remark + ".", failures_of(best)};
  }
  for (std::string note : {assumed_of(purchase), batches_of(purchase), framework_of(purchase)}) {
    notes.push_back(std::move(note));
  }
  std::erase(notes, "");
  return notes;
}

std::string prices_of(const Purchase& purchase) {
  std::vector<NamedPrice> prices;
  for (const Choice& choice : purchase.choices) {
    if (choice.fits()) {
      add_prices(prices, choice.price.prices);
    }
  }
  return price_remark(prices);
}

} // namespace

OfferPrice price_of(const Platform& platform) {
  OfferPrice offer{.is_known = true};
  for (const Device& device : platform.devices) {
    const DeviceType& type = platform.types[static_cast<std::size_t>(device.type)];
    offer.rate += type.price.rate;
    offer.is_known = offer.is_known && is_known(type.price);
    add_prices(offer.prices, std::array{NamedPrice{type.name, type.price}});
  }
  for (const Node& node : platform.nodes) {
    offer.rate += node.host.price.rate;
    if (node.host.price.rate.value > 0) {
      add_prices(offer.prices, std::array{NamedPrice{"host", node.host.price}});
    }
  }
  if (!offer.is_known) {
    offer.prices.clear();
  }
  return offer;
}

std::string plan_of(const Choice& choice) {
  const std::string line = plan_line(choice.run);
  return choice.fits() ? choice.run.strategy + ", " + choice.run.schedule + (line.empty() ? "" : ", " + line) : "";
}

std::span<const PurchaseGoal> purchase_goals() { return kGoals; }

std::vector<std::string> Purchase::verdict() const {
  std::vector<std::string> sentences = {answer, sure};
  sentences.insert(sentences.end(), notes.begin(), notes.end());
  sentences.push_back(prices);
  std::erase(sentences, "");
  return sentences;
}

void decide(Purchase& purchase) {
  if (purchase.choices.empty()) {
    return;
  }
  std::stable_sort(purchase.choices.begin(), purchase.choices.end(), [&](const Choice& one, const Choice& other) {
    const auto rank = [&](const Choice& choice) {
      return std::tuple{block_of(choice), choice.fits() ? purchase.terms.goal->of(choice) : 0.0,
                        choice.whole.time.value};
    };
    return rank(one) < rank(other);
  });
  purchase.answer = answer_of(purchase);
  purchase.sure = sure_of(purchase);
  purchase.prices = prices_of(purchase);
  purchase.notes = notes_of(purchase);
}

} // namespace stagecraft
