// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/fit_cast.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "sim/base/kernel/kernel_kind.hpp"

namespace stagecraft::fit {
namespace {

constexpr std::size_t kFewestPairs = 8;
// Pairs of which one operand is much larger than the other, and so large that its cast is no matter of launches.
constexpr double kMuchLarger = 8, kLarge = 1 << 25, kDeep = 2048;

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

} // namespace

double fit_cast(const KernelSamples& samples) {
  constexpr double kSixteenBits = 2;
  if (samples.empty() || samples.front().kernel.op != KernelOp::gemm ||
      row_of(samples.front().kernel.precision).bytes >= kSixteenBits) {
    return 0;
  }
  std::map<KernelShape, double> times;
  for (const KernelSample& sample : samples) {
    times[sample.kernel.shape] = sample.time.value;
  }
  std::vector<double> casts;
  for (const auto& [shape, time] : times) {
    const double m = shape[1], n = shape[2], k = shape[3];
    KernelShape turned = shape;
    std::swap(turned[1], turned[2]);
    const auto other = times.find(turned);
    if (m >= kMuchLarger * n && k >= kDeep && m * k >= kLarge && other != times.end()) {
      casts.push_back((time - other->second) / ((m - n) * k));
    }
  }
  return casts.size() < kFewestPairs ? 0 : std::max(0.0, middle(std::move(casts)));
}

} // namespace stagecraft::fit
