// From the letters that ranks share to the program that they run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/program/program.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {

/// The program of operators in topological order. Where a tensor lies otherwise than its reader needs it, a collective
/// stands: partial to replicate is an all-reduce, partial to shard a reduce-scatter, shard to replicate an all-gather,
/// a shard to another an all-to-all. Gradients mirror values: a shard's is a shard; that of a tensor which several
/// ranks read whole is partial. Data comes as its reader needs it.
Program emit_program(std::vector<Signature> operators, const SharedLetters& shared, const Layout& layout);

} // namespace stagecraft
