// What PipeDream's graphs say beside the model: a stage for each node, when its optimiser has written them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// A node of the graph and its `stage_id`, -1 where it has none.
struct StagedNode {
  std::string id;
  int stage = -1;
  Where where;
};
inline constexpr int kMostPipedreamStage = 100'000;

/// The nodes of a graph that import_pipedream() keeps as operators. Throws InputError as that does.
std::vector<StagedNode> read_pipedream_stages(std::string_view text, const std::string& file);

} // namespace stagecraft
