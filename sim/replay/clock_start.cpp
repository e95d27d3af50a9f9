// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/clock_start.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft {
namespace {

double power_of_two_beyond(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, exponent);
}

// What devices do in an iteration at most: seconds of computations, and events.
struct MostOfADevice {
  double seconds = 0;
  std::size_t events = 0;
};

MostOfADevice most_of_a_device(const TaskGraph& graph) {
  MostOfADevice most;
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    const auto program = graph.program_of(device);
    double seconds = 0;
    for (const TaskId task : program) {
      seconds += graph.works[graph.work[task]].seconds.value;
    }
    most.seconds = std::max(most.seconds, seconds);
    most.events = std::max(most.events, program.size());
  }
  return most;
}

// So that some 64 small graphs fit on one engine. Many devices work at the same time, so a graph of theirs takes a
// small part of the time of all tasks one after another, and a clock that starts early rounds its times less.
double start_for_many(const ReplayRequest& request) {
  double all = 0; // seconds, if one task ran after another
  for (const std::int32_t work : request.graph.work) {
    all += request.graph.works[work].seconds.value + request.graph.works[work].latency.value;
  }
  for (const double seconds : request.computing) { // may be up to all that is longer than works say
    all += seconds / request.iterations;
  }
  constexpr double kGraphs = 64, kFewDevices = 16;
  const double room =
      kGraphs / std::clamp(static_cast<double>(request.graph.devices.size()) / kFewDevices, 1.0, kGraphs);
  return power_of_two_beyond(room * all * request.iterations);
}

// Whether events, each rounded to the last place of a clock that starts there, could move a device's end by more than a
// small part of the time that computations take.
bool rounds_too_much(const MostOfADevice& most, double start) {
  constexpr double kSmall = 1e-10;
  const double last_place = start * std::numeric_limits<double>::epsilon() / 2;
  return static_cast<double>(most.events) * last_place > kSmall * most.seconds;
}

} // namespace

bool has_own_clock(const ReplayRequest& request) {
  return rounds_too_much(most_of_a_device(request.graph), start_for_many(request));
}

double clock_start(const ReplayRequest& request) {
  const double start = start_for_many(request);
  const MostOfADevice most = most_of_a_device(request.graph);
  constexpr double kRoom = 8; // an iteration rarely takes longer, to what the busiest device computes
  return rounds_too_much(most, start) ? std::min(start, power_of_two_beyond(kRoom * most.seconds * request.iterations))
                                      : start;
}

} // namespace stagecraft
