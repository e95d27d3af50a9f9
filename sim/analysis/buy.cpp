// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/buy.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"
#include "sim/report/error_of_ratio.hpp"

namespace stagecraft {
namespace {

constexpr double kJoulesOfKilowattHour = 3.6e6;

void add_clause(std::string& text, const std::string& clause) {
  text += (text.empty() || clause.empty() ? "" : "; ") + clause;
}

// What the training takes with what failures undo, in place of what it would take without.
void count_failures(const Failures& failures, Choice& choice) {
  const Seconds iteration = choice.run.metrics.iteration;
  const int devices = static_cast<int>(choice.run.devices.size());
  choice.goodput = iteration / mean_with_failures(iteration, devices, failures);
  choice.whole.time = choice.whole.time / *choice.goodput;
  choice.kilowatt_hours /= *choice.goodput;
}

// Says where the choice breaks a limit by its own figure, or may break it by the upper end of its range.
template <class Q>
void apply_limit(const std::optional<PurchaseLimit<Q>>& limit, Q figure, const std::string& does,
                 const std::string& may, Choice& choice) {
  if (!limit) {
    return;
  }
  const double high = choice.whole.range ? choice.whole.range->second : 1;
  if (!(figure <= limit->most)) {
    add_clause(choice.why_not, does + ", more than " + limit->text);
  } else if (!(figure * high <= limit->most)) {
    add_clause(choice.remark, may + " more than " + limit->text);
  }
}

void apply_limits(const PurchaseTerms& terms, Choice& choice) {
  const WholeTraining& whole = choice.whole;
  apply_limit(terms.time, whole.time, "takes " + training_time_in_words(whole.time), "may take", choice);
  if (choice.price.is_known) {
    apply_limit(terms.budget, whole.cost, "costs " + three_digits(whole.cost.value) + " USD", "may cost", choice);
  } else if (terms.budget) {
    add_clause(choice.why_not, "costs what nobody says");
  }
}

// Whether memory may be short, or surely is not, by how far off predictions of others were.
bool may_not_fit(const Run& run) {
  return run.expected_memory && run.expected_memory->high > run.expected_memory->have;
}
bool surely_fits(const Run& run) {
  return run.expected_memory && run.expected_memory->high <= run.expected_memory->have;
}

// By what part of the best a choice takes more; of its time where nobody knows what is asked for.
double behind(const PurchaseTerms& terms, const Choice& choice, const Choice& best) {
  const double asked = terms.goal->of(choice) / terms.goal->of(best) - 1;
  return std::isfinite(asked) ? asked : choice.whole.time / best.whole.time - 1;
}

// What the figures of a run that fits do not show.
void add_remarks(Choice& choice) {
  const Run& run = choice.run;
  if (!choice.price.is_known) {
    add_clause(choice.remark, "nobody says what it costs");
  }
  if (may_not_fit(run)) {
    add_clause(choice.remark, "may not fit: measured, it may need " + to_text(run.expected_memory->high) + " of " +
                                  to_text(run.expected_memory->have));
  }
  if (const std::size_t unused = run.unused_devices.size(); unused > 0) {
    add_clause(choice.remark, std::to_string(unused) + " of " + std::to_string(choice.devices) + " devices " +
                                  (unused == 1 ? "has" : "have") + " no work");
  }
  for (const std::string& remark : remarks_of(run)) {
    add_clause(choice.remark, remark);
  }
}

// What is the same for all runs on an offer.
Choice choice_on(const Offer& offer, const Study& study) {
  Choice choice{.offer = offer.name,
                .platform = study.platform.name,
                .devices = static_cast<int>(study.platform.devices.size()),
                .global_batch = study.training.global_batch,
                .framework = study.training.framework,
                .price = price_of(study.platform)};
  for (const DeviceType& type : study.platform.types) {
    choice.device_types.push_back(type.name);
  }
  return choice;
}

Choice choice_of_run(const PurchaseTerms& terms, Choice choice, const Run& run) {
  choice.run = run;
  choice.whole = whole_training(run).value_or(WholeTraining{});
  choice.kilowatt_hours =
      choice.whole.time.value * run.samples_per_second * run.energy_per_sample.value / kJoulesOfKilowattHour;
  if (terms.failures) {
    count_failures(*terms.failures, choice);
  }
  constexpr double kNextToNothing = 0.01;
  if (choice.goodput && !(*choice.goodput >= kNextToNothing)) {
    choice.why_not = "never ends, since its devices fail more often than they reach a checkpoint";
    choice.whole.time = Seconds{kInfinity};
    choice.whole.cost = Dollars{kInfinity};
    choice.kilowatt_hours = kInfinity;
    choice.goodput = 0;
    return choice;
  }
  choice.whole.cost = choice.price.rate * choice.whole.time;
  choice.whole.assumed = std::any_of(choice.price.prices.begin(), choice.price.prices.end(),
                                     [](const NamedPrice& one) { return one.price.assumed; });
  apply_limits(terms, choice);
  add_remarks(choice);
  return choice;
}

// The first run that would fit with a change, else the first.
Choice choice_that_does_not_fit(Choice choice, const std::vector<Run>& runs) {
  if (runs.empty()) {
    choice.why_not = "there is nothing to run";
    return choice;
  }
  const auto mendable = std::find_if(runs.begin(), runs.end(), [](const Run& run) { return !run.would_fit.empty(); });
  choice.run = mendable == runs.end() ? runs.front() : *mendable;
  choice.why_not = choice.run.why_not;
  add_clause(choice.why_not, choice.run.would_fit.empty() ? "" : "would fit with " + choice.run.would_fit);
  return choice;
}

} // namespace

std::vector<Setting> settings_for(const Offer& offer, const Platform& platform, const std::vector<Setting>& settings) {
  std::vector<Setting> all;
  if (offer.platform) {
    all.push_back({"platform", "", *offer.platform}); // in front of what changes it
  }
  constexpr std::string_view kPrice = "price";
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(all), [&](const Setting& setting) {
    return !is_below(setting.key, kPrice) ||
           std::any_of(platform.types.begin(), platform.types.end(),
                       [&](const DeviceType& type) { return type.name == setting.key.substr(kPrice.size() + 1); });
  });
  if (offer.price) {
    std::erase_if(all, [&](const Setting& setting) { return is_of(setting, kPrice); });
    all.push_back({std::string(kPrice), "", *offer.price});
  }
  return all;
}

Choice choice_of(const PurchaseTerms& terms, const Offer& offer, const Study& study, const Comparison& comparison) {
  const Choice on_offer = choice_on(offer, study);
  std::vector<Choice> choices;
  for (const Run& run : comparison.runs) {
    if (run.feasible && comparison.competes(run)) {
      choices.push_back(choice_of_run(terms, on_offer, run));
    }
  }
  if (choices.empty()) {
    return choice_that_does_not_fit(on_offer, comparison.runs);
  }
  const auto rank = [&](const Choice& choice) {
    return std::tuple{!choice.qualifies(), terms.goal->of(choice), choice.whole.time.value};
  };
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const Choice& one, const Choice& other) { return rank(one) < rank(other); });
  const Choice& best = choices.front();
  const auto safe = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
    return surely_fits(choice.run) && choice.qualifies() == best.qualifies() &&
           behind(terms, choice, best) <= kErrorOfRatio;
  });
  if (safe == choices.end() || safe == choices.begin()) {
    return best;
  }
  add_clause(safe->remark, "a plan that is " + percent(behind(terms, *safe, best), 1) + " better may not fit");
  return *safe;
}

} // namespace stagecraft
