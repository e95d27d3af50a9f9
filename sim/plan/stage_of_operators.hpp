// In which stage of a plan each operator is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// [operator of the model, of which there are so many]: its stage; -1: none has it.
std::vector<int> stage_of_operators(std::size_t operators, const Plan& plan);

} // namespace stagecraft
