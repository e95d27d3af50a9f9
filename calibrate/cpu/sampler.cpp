// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/sampler.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace stagecraft::cpu {
namespace {

constexpr int kMostRuns = 1 << 20;
constexpr double kSlow = 0.05; // seconds; a run that takes longer is warmed up only once

// Warms up; returns how many runs make one sample.
int runs_of_sample(const TakeSample& take, const Sampling& sampling) {
  double once = take(1).cpu;
  if (once < kSlow) {
    once = std::min(once, take(1).cpu);
  }
  int runs = 1;
  while (once * runs < sampling.least_sample &&
         runs < kMostRuns) { // repeated, since the first estimates come from a cold start
    runs = std::min(kMostRuns, std::max(2 * runs, static_cast<int>(sampling.least_sample / std::max(once, 1e-9))));
    once = std::max(take(runs).cpu / runs, 1e-10);
  }
  return runs;
}

} // namespace

gpu::Timing sample(const TakeSample& take, const Sampling& sampling, const std::function<double()>& now) {
  const int runs = runs_of_sample(take, sampling);
  const gpu::StopRule& rule = sampling.rule;
  std::vector<double> clean, contaminated_ones;
  const double start = now();
  gpu::Timing timing;
  while (!gpu::enough(rule, clean, now() - start)) {
    const bool late = now() - start > sampling.patience * rule.seconds;
    if (late && static_cast<int>(clean.size() + contaminated_ones.size()) >= rule.least_slow) {
      break;
    }
    const Reading reading = take(runs);
    (contaminated(reading) ? contaminated_ones : clean).push_back(reading.cpu / runs);
  }
  timing.dropped = static_cast<int>(contaminated_ones.size());
  if (static_cast<int>(clean.size()) < rule.least_slow) {
    clean.insert(clean.end(), contaminated_ones.begin(), contaminated_ones.end());
    timing.dropped = 0;
    timing.variant = "shared core";
  }
  timing.seconds = gpu::summarize(clean);
  return timing;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace stagecraft::cpu
