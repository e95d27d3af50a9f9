// How the harness for GPUs shares out its time.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"

#include "calibrate/gpu/progress.hpp"
#include "calibrate/gpu/sweep/budget.hpp"

namespace stagecraft::gpu {
namespace {

TEST_CASE("a group gets its share of the time that is left, and hands on what it does not use", "[gpu][budget]") {
  const Budget budget(100, {1, 2, 1});
  CHECK(budget.deadline(0, 0) == 25);
  // The first took 4 s of its 25: 96 s are left for weights 2 and 1.
  CHECK(budget.deadline(1, 4) == 4 + 64);
  CHECK(budget.deadline(2, 68) == 100);
}

TEST_CASE("a group without weight, or after the end, gets no time", "[gpu][budget]") {
  const Budget budget(10, {1, 0});
  CHECK(budget.deadline(1, 5) == 5);
  CHECK(budget.deadline(0, 12) == 12);
}

TEST_CASE("times are shown in minutes and seconds", "[gpu][budget]") {
  CHECK(clock_text(0) == "0:00");
  CHECK(clock_text(59.6) == "1:00");
  CHECK(clock_text(425) == "7:05");
  CHECK(clock_text(-3) == "0:00");
}

} // namespace
} // namespace stagecraft::gpu
