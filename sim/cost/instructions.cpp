// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/instructions.hpp"

namespace stagecraft {

// The rate of floating point counts two operations for a multiply-add. Where integers have units of their own, as from
// Volta on, as many instructions again are issued beside them: together as many as the rate says. Where they have not,
// as on Pascal, or where the floating point units are twice as many, as on Ampere's boards for graphics and on Hopper,
// half as many.
std::optional<double> instructions_issued(const DeviceType& type) {
  constexpr double kOfPeak = 0.65;     // of what could be issued: loads are waited for
  constexpr double kDoubled = 300e9;   // FLOP/s of a multiprocessor
  constexpr double kTensorCores = 2.5; // times as fast in 16 bits
  const auto rate = type.rate(KernelKind::elementwise, Precision::fp32);
  const auto half = type.rate(KernelKind::matmul, Precision::fp16);
  const auto single = type.rate(KernelKind::matmul, Precision::fp32);
  if (!rate) {
    return std::nullopt;
  }
  const bool integers = half && single && half->value > kTensorCores * single->value;
  const bool doubled = type.processors > 0 && rate->value / type.processors > kDoubled;
  return kOfPeak * rate->value * (integers && !doubled ? 1.0 : 0.5);
}

Seconds instruction_time(double instructions, const DeviceType& type) {
  const bool is_gpu = type.vendor == "nvidia" || type.vendor == "amd";
  const std::optional<double> rate = instructions > 0 && is_gpu ? instructions_issued(type) : std::nullopt;
  return Seconds{rate ? instructions / *rate : 0};
}

} // namespace stagecraft
