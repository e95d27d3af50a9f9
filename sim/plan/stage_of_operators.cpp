// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_of_operators.hpp"

namespace stagecraft {

std::vector<int> stage_of_operators(std::size_t operators, const Plan& plan) {
  std::vector<int> stage_of(operators, -1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (const OperatorId op : plan.stages[s].operators) {
      stage_of[op] = static_cast<int>(s);
    }
  }
  return stage_of;
}

} // namespace stagecraft
