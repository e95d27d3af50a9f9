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

/// By Megatron's rule, which must be able to.
Program program_of(const Transformer& model, const Layout& layout, bool sequence = false);

using Part = std::vector<Step> Program::*;
inline constexpr Part kParts[] = {&Program::forward, &Program::backward, &Program::reduction, &Program::update};

/// The program without a step; whoever read what it writes reads what it read.
Program without(Program program, Part part, std::size_t number);

/// Relative to the unsharded run, the largest error of the loss, of any gradient and of any parameter after
/// the step; infinite where something is wrong.
double error_of(const Outcome& outcome, const Outcome& whole);

} // namespace stagecraft::testing
