// When the harness for GPUs has enough samples of a kernel.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/catch.hpp"

#include "calibrate/gpu/sweep/statistics.hpp"

namespace stagecraft::gpu {
namespace {

TEST_CASE("quartiles lie between samples", "[gpu][statistics]") {
  // Sorted 1 2 3 4: the median at position 1.5, the quartiles at 0.75 and 2.25.
  const Summary summary = summarize({4, 1, 3, 2});
  CHECK(summary.median == 2.5);
  CHECK(summary.q1 == 1.75);
  CHECK(summary.q3 == 3.25);
  CHECK(summary.least == 1);
  CHECK(summary.samples == 4);
  const Summary one = summarize({7});
  CHECK((one.median == 7 && one.q1 == 7 && one.q3 == 7 && one.least == 7));
}

TEST_CASE("the error of a median is that of a normal distribution of the same quartiles", "[gpu][statistics]") {
  // Quartiles 1.349 apart are those of sigma 1; 100 samples: 1.2533 / 10 of a median of 10.
  CHECK(relative_error({10, 9, 9 + 1.349, 8, 100}) == Approx(0.012533));
}

TEST_CASE("sampling stops at the first of: precise, many, late", "[gpu][statistics]") {
  const StopRule rule;
  const std::vector<double> steady(7, 1.0), few(6, 1.0);
  CHECK(enough(rule, steady, 0));
  CHECK_FALSE(enough(rule, few, 0)); // precise, but by chance
  std::vector<double> noisy;
  for (int i = 0; i < 199; ++i) {
    noisy.push_back(i % 2 == 0 ? 1.0 : 2.0);
  }
  CHECK_FALSE(enough(rule, noisy, 0.149));
  CHECK(enough(rule, noisy, 0.15));
  noisy.push_back(1.0);
  CHECK(enough(rule, noisy, 0));
  CHECK_FALSE(enough(rule, {1.0, 2.0}, 100)); // a median needs three samples, however slow they are
  CHECK(enough(rule, {1.0, 2.0, 3.0}, 0.15));
}

TEST_CASE("outliers do not keep sampling going", "[gpu][statistics]") {
  std::vector<double> samples(20, 1.0);
  samples.insert(samples.end(), 4, 50.0); // fewer than a quarter
  CHECK(relative_error(summarize(samples)) == 0);
}

} // namespace
} // namespace stagecraft::gpu
