// Parts of a model by a framework's names for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// A module as a framework names it.
struct ModuleRow {
  std::string_view name, help;
  /// Its operators, ascending; none where the model has no such module.
  std::vector<OperatorId> (*operators)(const ModelGraph& model);
};

inline std::vector<OperatorId> ascending(const std::set<OperatorId>& operators) {
  return {operators.begin(), operators.end()};
}

} // namespace stagecraft
