// What the search for a bound rests on: ranges of features, and of the times of fits.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "sim/base/system/file.hpp"
#include "sim/platform/fits/kernel_features.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/fits/least_time.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

// Extents between which ranges of a test vary; image sizes, windows and the like stay as they are.
std::vector<std::size_t> varied(KernelOp op) {
  switch (op) {
  case KernelOp::gemm:
    return {0, 1, 2, 3};
  case KernelOp::convolution:
    return {0, 4};
  case KernelOp::attention:
    return {0, 2, 3};
  case KernelOp::launch:
    return {};
  default:
    return {0};
  }
}

// A whole number below `most`.
double drawn(std::mt19937& random, unsigned most) { return static_cast<double>(random() % most); }

double between(std::mt19937& random, double low, double high) {
  return low * std::pow(high / low, drawn(random, 10'001) / 10'000);
}

// A range of kernels around a random one, from a single kernel to a factor of 16 in each extent.
KernelRange random_range(const KernelOpRow& row, std::mt19937& random) {
  KernelRange kernels{.low = {.op = row.op, .precision = Precision::fp32}, .high = {}};
  const KernelShape image = {1, 64, 28, 30, 96, 3, 3, 1, 1, 1.0 + drawn(random, 2)};
  kernels.low.shape = row.op == KernelOp::convolution ? image : KernelShape{};
  for (std::size_t i = 0; i < row.rank() && row.op != KernelOp::convolution; ++i) {
    kernels.low.shape[i] = std::round(between(random, 1, 3000));
  }
  kernels.high = kernels.low;
  const double factor = random() % 3 == 0 ? 1 : between(random, 1.001, 16);
  for (const std::size_t i : varied(row.op)) {
    kernels.low.shape[i] = between(random, 0.1, 3000);
    kernels.high.shape[i] = kernels.low.shape[i] * factor;
  }
  return kernels;
}

// The low end, the high end, or anything between.
Kernel kernel_in(const KernelRange& kernels, std::mt19937& random) {
  Kernel kernel = kernels.low;
  for (const std::size_t i : varied(kernel.op)) {
    kernel.shape[i] = kernels.low.shape[i] + (kernels.high.shape[i] - kernels.low.shape[i]) * drawn(random, 9) / 8;
    kernel.shape[i] = random() % 2 == 0
                          ? std::clamp(std::round(kernel.shape[i]), kernels.low.shape[i], kernels.high.shape[i])
                          : kernel.shape[i];
  }
  return kernel;
}

TEST_CASE("every feature of a kernel in a range is in the feature's range, and a range of one kernel has its value",
          "[platform][fits]") {
  std::mt19937 random(3);
  for (const KernelFeature& feature : kernel_features()) {
    for (const KernelOpRow& row : kKernelOps) {
      for (int n = 0; n < 60; ++n) {
        const KernelRange kernels = random_range(row, random);
        const double processors = 1 + drawn(random, 132);
        const FeatureRange range = range_of(feature, kernels, processors);
        CAPTURE(feature.name, to_text(kernels.low), to_text(kernels.high), range.low, range.high);
        for (int i = 0; i < 8; ++i) {
          const double value = feature.value(kernel_in(kernels, random), processors);
          const double rounding = 1e-9 * std::abs(value) + 1e-12;
          if (value < range.low - rounding || value > range.high + rounding) {
            FAIL_CHECK(value);
          }
        }
        if (kernels.low == kernels.high) {
          CHECK(range.low == Approx(range.high).margin(1e-12));
        }
      }
    }
  }
}

// 10 us + 1e-12 s/B up to 1 MB, then 5 us + 2e-12 s/B, whose time per byte falls with the size; or -5 us + 2e-12 s/B,
// whose time per byte rises, and would be less than nothing up to 2.5 MB.
TEST_CASE("the least of a line is that of its segments' ends, and never below nothing", "[platform][fits]") {
  KernelFits fits;
  KernelFit fit{.name = "add", .op = KernelOp::add, .precision = Precision::fp32};
  fit.line = PiecewiseLine{{{1e6, Seconds{10e-6}, 1e-12}, {0, Seconds{5e-6}, 2e-12}}, {}};
  fits.kernels.push_back(fit);
  const auto kernel = [](double bytes) { // 12 B an element
    return Kernel{.op = KernelOp::add, .precision = Precision::fp32, .shape = {bytes / 12, 1}};
  };
  const auto least = [&](double low, double high) {
    return least_time(fits, {kernel(low), kernel(high)}, low, high)->per_size;
  };
  CHECK(least(0.9e6, 0.9e6) == Approx((10e-6 + 0.9e-6) / 0.9e6)); // a point on the first segment
  CHECK(least(4e6, 4e6) == Approx((5e-6 + 8e-6) / 4e6));
  CHECK(least(2e6, 4e6) == Approx((5e-6 + 8e-6) / 4e6)); // falls with the size
  CHECK(least(0, 4e6) <= (5e-6 + 8e-6) / 4e6);
  fits.kernels.front().line->segments.back().start = Seconds{-5e-6};
  CHECK(least(4e6, 8e6) <= (-5e-6 + 8e-6) / 4e6); // rises with the size
  CHECK(least(4e6, 8e6) > 0);
  CHECK(least(0, 8e6) == 0);
}

} // namespace
} // namespace stagecraft
