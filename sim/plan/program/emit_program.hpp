// From the letters that ranks share to the program that they run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/plan/program/program.hpp"
#include "sim/plan/program/shared_letters.hpp"
#include "sim/workload/training/sharding.hpp"

namespace stagecraft {

/// What the ranks along a dimension of the layout share of each parameter (ZeRO, Rajbhandari et al. 2020): the ranks of
/// one have each a part of the parameter's first dimension that divides and that nothing else cuts. A parameter without
/// such a dimension is not shared.
struct SharedParameters {
  Zero zero = Zero::none;
  std::size_t dimension = 0; ///< of the layout
};

/// The program of operators in topological order. Where a tensor lies otherwise than its reader needs it, a collective
/// stands: partial to replicate is an all-reduce, partial to shard a reduce-scatter, shard to replicate an all-gather,
/// a shard to another an all-to-all. Gradients mirror values: a shard's is a shard; that of a tensor which several
/// ranks read whole is partial. Data comes as its reader needs it. With `parameters` the optimiser's step is a part of
/// it.
Program emit_program(std::vector<Signature> operators, const SharedLetters& shared, const Layout& layout,
                     std::optional<SharedParameters> parameters = std::nullopt);

} // namespace stagecraft
