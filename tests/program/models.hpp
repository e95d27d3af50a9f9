// The small transformers that tests of programs run, and how runs are compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
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

/// Ways to spoil a program: to leave one of its collectives out, so that whoever read what it writes reads what it
/// read; to have it twice; or to swap what it reads with what another does.
enum class Mutation { left_out, twice, swapped };
/// Calls action(mutation, step, program) for each of them and each collective of more than one rank.
void for_each_mutation(const Program& program,
                       const std::function<void(Mutation, const Step&, const Program&)>& action);

/// Whether each gradient, and each parameter after the step, ends up as its parameter lies, so that nothing more is
/// needed.
bool ends_as_parameters_lie(const Program& program);

/// Whether a spoilt program comes to other numbers than the unsharded run, or leaves them elsewhere; having a
/// collective twice may be reported as redundant instead, as a maximum of maxima is.
bool is_found_out(Mutation mutation, const Program& spoilt, const Inputs& inputs, const Outcome& whole);

/// Relative to the unsharded run, the largest error of the loss, of any gradient and of any parameter after
/// the step; infinite where something is wrong.
double error_of(const Outcome& outcome, const Outcome& whole);

} // namespace stagecraft::testing
