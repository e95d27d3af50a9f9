// The sizes of a transformer, as frameworks' own files repeat them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Sizes that the model's operators show; nothing where they do not, or where layers differ. 0: the model has none.
struct ModelSizes {
  std::optional<long long> hidden, feed_forward, heads, groups, head_width, experts, top, expert_feed_forward,
      vocabulary;
};

/// The sizes of a model whose file gives shapes.
ModelSizes sizes_of(const ModelGraph& model);

} // namespace stagecraft
