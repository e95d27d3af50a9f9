// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/buy.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

constexpr double kJoulesOfKilowattHour = 3.6e6;

// What the training takes with what failures undo, in place of what it would take without.
void count_failures(const Failures& failures, Choice& choice) {
  const Seconds iteration = choice.run.metrics.iteration;
  const int devices = static_cast<int>(choice.run.devices.size());
  choice.goodput = iteration / mean_with_failures(iteration, devices, failures);
  choice.whole.time = choice.whole.time / *choice.goodput;
  choice.whole.cost = choice.whole.cost / *choice.goodput; // machines are paid by the hour
  choice.kilowatt_hours /= *choice.goodput;
}

// Which limit the choice breaks by its own figures, or may break by the upper end of its range.
struct BrokenLimit {
  std::string breaks, may_break;
};

template <class Q>
BrokenLimit broken(const std::optional<PurchaseLimit<Q>>& limit, Q figure, double high, const std::string& words,
                   const std::string& may) {
  if (!limit) {
    return {};
  }
  if (!(figure <= limit->most)) {
    return {words + ", more than " + limit->text, ""};
  }
  return {"", figure * high <= limit->most ? "" : may + " more than " + limit->text};
}

void apply_limits(const BuyQuestion& question, Choice& choice) {
  const WholeTraining& whole = choice.whole;
  const double high = whole.range ? whole.range->second : 1;
  for (const BrokenLimit& one :
       {broken(question.time, whole.time, high,
               "takes " + training_time_in_words(whole.time), "may take"),
        broken(question.budget, whole.cost, high, "costs " + with_commas(whole.cost.value) + " USD", "may cost")}) {
    choice.why_not += (one.breaks.empty() || choice.why_not.empty() ? "" : "; ") + one.breaks;
    choice.remark += (one.may_break.empty() || choice.remark.empty() ? "" : "; ") + one.may_break;
  }
}

void add_remark(Choice& choice, const std::string& remark) {
  choice.remark += (choice.remark.empty() ? "" : "; ") + remark;
}

// What the figures of a run that fits do not show.
void add_remarks(const BuyQuestion& question, const Study& study, Choice& choice) {
  if (study.training.framework.empty()) {
    add_remark(choice, "an ideal machine, since no framework is named, so it is too fast");
  }
  if (!(choice.whole.cost.value > 0)) {
    add_remark(choice, "nobody says what it costs");
    if (question.budget) {
      choice.why_not += std::string(choice.why_not.empty() ? "" : "; ") + "nobody says what it costs";
    }
  }
  if (const auto& memory = choice.run.expected_memory; memory && memory->high > memory->have) {
    add_remark(choice, "may not fit: needs " + to_text(memory->peak) + " of " + to_text(memory->have));
  }
  if (const std::size_t unused = choice.run.unused_devices.size(); unused > 0) {
    add_remark(choice, std::to_string(unused) + " of its devices have no work and are not paid for");
  }
}

Choice named(const Offer& offer, const Study& study) {
  Choice choice{.offer = offer.name,
                .platform = study.platform.name,
                .devices = static_cast<int>(study.platform.devices.size()),
                .global_batch = study.training.global_batch};
  for (const DeviceType& type : study.platform.types) {
    choice.device_types.push_back(type.name);
  }
  return choice;
}

Choice choice_of_run(const BuyQuestion& question, const Offer& offer, const Study& study, const Run& run) {
  Choice choice = named(offer, study);
  choice.run = run;
  choice.whole = whole_training(run).value_or(WholeTraining{});
  choice.kilowatt_hours =
      choice.whole.time.value * run.samples_per_second * run.energy_per_sample.value / kJoulesOfKilowattHour;
  if (question.failures) {
    count_failures(*question.failures, choice);
  }
  if (!std::isfinite(choice.whole.time.value)) {
    choice.why_not = "its devices fail more often than they reach a checkpoint";
    return choice;
  }
  apply_limits(question, choice);
  add_remarks(question, study, choice);
  return choice;
}

// The first run that would fit with a change, else the first.
Choice choice_that_does_not_fit(const Offer& offer, const Study& study, const std::vector<Run>& runs) {
  Choice choice = named(offer, study);
  if (runs.empty()) {
    choice.why_not = "there is nothing to run";
    return choice;
  }
  const auto mendable =
      std::find_if(runs.begin(), runs.end(), [](const Run& run) { return !run.would_fit.empty(); });
  choice.run = mendable == runs.end() ? runs.front() : *mendable;
  choice.why_not =
      choice.run.why_not + (choice.run.would_fit.empty() ? "" : "; would fit with " + choice.run.would_fit);
  return choice;
}

} // namespace

Choice choice_of(const BuyQuestion& question, const Offer& offer, const Study& study, const Comparison& comparison) {
  std::optional<Choice> best;
  const auto is_better = [&](const Choice& one, const Choice& other) {
    return one.why_not.empty() != other.why_not.empty() ? one.why_not.empty()
                                                        : question.goal->of(one) < question.goal->of(other);
  };
  for (const Run& run : comparison.runs) {
    if (run.feasible && comparison.competes(run)) {
      Choice choice = choice_of_run(question, offer, study, run);
      if (!best || is_better(choice, *best)) {
        best = std::move(choice);
      }
    }
  }
  return best ? *best : choice_that_does_not_fit(offer, study, comparison.runs);
}

} // namespace stagecraft
