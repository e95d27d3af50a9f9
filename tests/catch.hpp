// Catch2 and what our tests share: comparing within 1e-9, and where shared test data lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>

#include <string>

namespace stagecraft::test {

/// Equal within 1e-9 of the larger of the expected value and one.
inline Catch::Detail::Approx near(double expected) {
  return Catch::Detail::Approx(expected).epsilon(1e-9).margin(1e-9);
}

} // namespace stagecraft::test
