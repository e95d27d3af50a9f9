// The one main() of a test program; compiled once, without optimisation.
// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_MAIN
#include "tests/catch.hpp"
