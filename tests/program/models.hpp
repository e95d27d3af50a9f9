// The small transformers that tests of programs run, and how runs are compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/program/transformer.hpp"

namespace stagecraft::testing {

/// One of each kind.
std::vector<TransformerSizes> program_models();
std::string describe(const TransformerSizes& sizes);

/// Relative to the unsharded run, the largest error of the loss, of any gradient and of any parameter after
/// the step; infinite where something is wrong.
double error_of(const Outcome& outcome, const Outcome& whole);

} // namespace stagecraft::testing
