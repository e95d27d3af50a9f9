// Quantiles and rank correlation against numbers made by hand.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/base/statistics.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

TEST_CASE("quantiles are linear between neighbours", "[base][statistics]") {
  CHECK(quantile({4, 1, 3, 2}, 0) == 1);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2.5);
  CHECK(quantile({4, 1, 3, 2}, 0.75) == 3.25); // 0.75 * 3 = 2.25: a quarter of the way from 3 to 4
  CHECK(quantile({4, 1, 3, 2}, 1) == 4);
  CHECK(quantile({7}, 0.3) == 7);
  CHECK(std::isnan(quantile({}, 0.5)));
}

TEST_CASE("Spearman's correlation is that of ranks", "[base][statistics]") {
  CHECK(spearman({1, 2, 3}, {10, 100, 1000}).value() == Approx(1));
  CHECK(spearman({1, 2, 3}, {3, 2, 1}).value() == Approx(-1));
  // Ranks 0 1 2 3 and 1 0 3 2: 1 - 6 sum d^2 / (n (n^2 - 1)) = 1 - 6 * 4 / 60 = 0.6.
  CHECK(spearman({1, 2, 3, 4}, {2, 1, 4, 3}).value() == Approx(0.6));
  // Ties share their mean rank: 0, 1.5, 1.5, 3 against 0, 1, 2, 3 is 4.5 / sqrt(4.5 * 5).
  CHECK(spearman({1, 2, 2, 3}, {1, 2, 3, 4}).value() == Approx(4.5 / std::sqrt(22.5)));
  CHECK(!spearman({1, 2}, {1, 2}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(!spearman({1, nan, 3}, {1, 2, 3}));
  CHECK(!spearman({1, 2, 3}, {1, 2, nan}));
  CHECK(std::isnan(quantile({1, nan, 3}, 0.5)));
  CHECK(!spearman({1, 1, 1}, {1, 2, 3}));
}

TEST_CASE("the largest of more draws is larger", "[base][statistics]") {
  const double root_pi = std::sqrt(std::acos(-1.0));
  CHECK(expected_largest(1) == Approx(0).margin(1e-9));
  // Of two, half the mean distance of both, which is normal with variance 2; of three by symmetry three quarters of it.
  CHECK(expected_largest(2) == Approx(1 / root_pi));
  CHECK(expected_largest(3) == Approx(1.5 / root_pi));
  CHECK(expected_largest(8) == Approx(1.42360)); // tables of order statistics (Teichroew 1956)
  CHECK(expected_largest(1000) == Approx(3.24144));
}

} // namespace
} // namespace stagecraft
