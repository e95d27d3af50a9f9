// What operators a reader would call one layer: the blocks that a model repeats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Operators of one block, ascending. `numbered`: one of a row, as "layer.7".
struct Block {
  std::string name;
  bool numbered = false;
  std::vector<OperatorId> operators;
};

/// The blocks of a model in order of their first operators. An operator's block is its name up to and with the first
/// number between dots or slashes ("layer.7" of "layer.7.attention.add"), or without its last part where there is none
/// ("stage1.first" of "stage1.first.conv1"). A name of one part is a block by itself.
std::vector<Block> blocks_of(const ModelGraph& model);

/// The numbered blocks as a row of layers, with what stands before the first and behind the last of them, which
/// Megatron-LM calls embedding and loss. What stands between two belongs to the first of them.
struct LayerRow {
  std::vector<OperatorId> before, after;
  std::vector<Block> layers;
};
LayerRow layer_row_of(const ModelGraph& model);

/// Whether the operator is the loss, which frameworks keep outside the model.
bool is_loss(const Operator& op);

} // namespace stagecraft
