// Casts that were timed together with products, found in tables that time both.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"

#include "calibrate/fit/forms/fit_cast.hpp"

namespace stagecraft::fit {
namespace {

constexpr double kCast = 3e-12; // seconds an element

// Products of m, n = 1024 or 32768 and k = 2048 … 16384 at 1 PFLOP/s, and what their first operand takes to be cast.
KernelSamples table(Precision precision, double cast) {
  KernelSamples samples;
  for (const double k : {2048.0, 3072.0, 4096.0, 6144.0, 8192.0, 10240.0, 12288.0, 14336.0, 16384.0}) {
    for (const double m : {1024.0, 32768.0}) {
      for (const double n : {1024.0, 32768.0}) {
        samples.push_back({{KernelOp::gemm, KernelPass::forward, precision, {1, m, n, k}},
                           Seconds{2 * m * n * k / 1e15 + cast * m * k},
                           ""});
      }
    }
  }
  return samples;
}

TEST_CASE("a cast is what a product takes longer with its operands exchanged", "[fit]") {
  CHECK(fit_cast(table(Precision::fp8, kCast)) == Approx(kCast));
  CHECK(fit_cast(table(Precision::fp8, 0)) == Approx(0).margin(1e-18));
}

TEST_CASE("nothing is cast to 16 bits", "[fit]") { CHECK(fit_cast(table(Precision::bf16, kCast)) == 0); }

TEST_CASE("a few pairs tell nothing of casts", "[fit]") {
  KernelSamples few = table(Precision::fp8, kCast);
  few.resize(7 * 4); // seven pairs of unlike operands
  CHECK(fit_cast(few) == 0);
}

} // namespace
} // namespace stagecraft::fit
