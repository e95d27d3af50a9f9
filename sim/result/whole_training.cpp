// SPDX-License-Identifier: Apache-2.0
#include "sim/result/whole_training.hpp"

#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

bool in_days(Seconds time) { return time.value > 2 * kSecondsOfDay; }

// In the unit of the whole training, without its name.
std::string number_of(Seconds time, bool days) {
  return with_commas(time.value / (days ? kSecondsOfDay : kSecondsOfHour));
}

// Three digits, thousands apart.
std::string rounded(Dollars money) {
  constexpr int kDigits = 3;
  constexpr double kCents = 100;
  return money.value < kCents ? to_text(money.value, 2) : with_commas(std::stod(to_digits(money.value, kDigits)));
}

} // namespace

std::optional<WholeTraining> whole_training(const Run& run) {
  if (!run.feasible || !(run.tokens > 0) || !(run.tokens_per_second > 0)) {
    return std::nullopt;
  }
  // tokens / (tokens/s); its samples cost what a million of them do
  WholeTraining whole{.tokens = run.tokens, .time = Seconds{run.tokens / run.tokens_per_second}};
  const double samples = whole.time.value * run.samples_per_second;
  whole.cost = run.cost_per_million_samples * (samples / 1e6);
  whole.assumed = run.metrics.assumed_cost.value > 0;
  if (run.expected) {
    whole.range = {run.expected->low / run.metrics.iteration, run.expected->high / run.metrics.iteration};
  } else if (run.confidence) {
    whole.range = {run.confidence->iteration.low / run.metrics.iteration,
                   run.confidence->iteration.high / run.metrics.iteration};
  }
  return whole;
}

std::string training_time_in_words(Seconds time) {
  const bool days = in_days(time);
  return three_digits(time.value / (days ? kSecondsOfDay : kSecondsOfHour)) + (days ? " days" : " hours");
}

std::string in_words(const WholeTraining& training) {
  const bool days = in_days(training.time), paid = training.cost.value > 0;
  const std::string unit = days ? " days" : " hours", mark = training.assumed ? kAssumedMark : "";
  std::string words = in_words(training.tokens) + " tokens take " + number_of(training.time, days) + unit +
                      (paid ? " and cost " + mark + rounded(training.cost) + " USD" : "");
  if (training.range) {
    const auto [low, high] = *training.range;
    words += " (" + number_of(training.time * low, days) + " to " + number_of(training.time * high, days) + unit +
             (paid ? ", " + mark + rounded(training.cost * low) + " to " + mark + rounded(training.cost * high) + " USD"
                   : "") +
             ")";
  }
  return words;
}

} // namespace stagecraft
