// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/speeds.hpp"

#include <algorithm>
#include <limits>

namespace stagecraft {

Speeds::Speeds(const TaskGraph& graph, std::span<const SpeedChange> changes) {
  if (changes.empty()) {
    return;
  }
  steps_.resize(graph.devices.size());
  for (const SpeedChange& change : changes) {
    const auto device = std::find(graph.devices.begin(), graph.devices.end(), change.device);
    if (device != graph.devices.end()) {
      steps_[device - graph.devices.begin()].push_back({change.at.value, change.speed});
    }
  }
  for (std::vector<Step>& steps : steps_) {
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
  }
}

double Speeds::finish(std::size_t device, double start, double seconds) const {
  const std::vector<Step>& steps = steps_[device];
  double speed = 1;
  double now = start;
  for (const Step& step : steps) {
    if (step.at > now) {
      const double done = (step.at - now) * speed;
      if (done >= seconds) {
        break;
      }
      seconds -= done;
      now = step.at;
    }
    speed = step.speed;
  }
  return now + seconds / speed;
}

double Speeds::done(std::size_t device, double from, double to) const {
  double speed = 1, done = 0;
  for (const Step& step : steps_[device]) {
    if (step.at >= to) {
      break;
    }
    if (step.at > from) {
      done += (step.at - from) * speed;
      from = step.at;
    }
    speed = step.speed;
  }
  return done + (to - from) * speed;
}

} // namespace stagecraft
