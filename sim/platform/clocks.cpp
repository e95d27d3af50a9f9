// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/clocks.hpp"

#include <algorithm>
#include <cmath>

#include "sim/platform/scale_device.hpp"

namespace stagecraft {
namespace {

constexpr double kLeastClock = 0.1;

// How far off a capped time is, by runs of models that the law was not fitted to.
constexpr double kSpread = 0.08;

std::string name_under(const DeviceType& type, Watts cap) {
  return type.name + "-" + std::to_string(std::lround(cap.value)) + "w";
}

// The part of its bandwidth that memory reaches at a clock.
double memory_at(const Clocks& clocks, double clock) { return std::min(1.0, clock / clocks.memory_clock); }

} // namespace

Watts Clocks::power(double clock) const {
  const double above = clock > knee ? (clock - knee) / (1 - knee) : 0;
  const double volts = voltage + (1 - voltage) * above;
  return fixed + (full - fixed) * (clock * volts * volts);
}

double Clocks::clock_under(Watts limit) const {
  if (limit >= full) {
    return 1;
  }
  if (limit <= fixed) {
    return 0;
  }
  const double below = (limit - fixed) / ((full - fixed) * (voltage * voltage));
  if (below <= knee) {
    return below;
  }
  double low = knee, high = 1; // power rises with the clock
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (power(middle) <= limit ? low : high) = middle;
  }
  return low;
}

Clocks usual_clocks(const DeviceType& type) {
  constexpr double kFixed = 0.2; // of the board's power
  return {.fixed = type.busy * kFixed, .full = type.busy};
}

Watts least_cap(const DeviceType& type) { return type.clocks.value_or(usual_clocks(type)).power(kLeastClock); }

DeviceType capped(DeviceType type, Watts cap) {
  if (cap >= type.busy) {
    return type;
  }
  const Clocks clocks = type.clocks.value_or(usual_clocks(type));
  const double before = clocks.clock_under(type.busy);
  const double after = std::max(kLeastClock, clocks.clock_under(cap));
  scale_kernels(type, {.flops = std::min(1.0, after / before),
                       .memory_bandwidth = std::min(1.0, memory_at(clocks, after) / memory_at(clocks, before)),
                       .error_floor = kSpread});
  type.name = name_under(type, cap);
  type.waiting = std::min(type.waiting_power(), cap);
  type.idle = std::min(type.idle, cap);
  type.busy = std::max(type.idle, std::min(cap, clocks.full));
  type.clocks.reset(); // they hold for the type without a cap
  return type;
}

} // namespace stagecraft
