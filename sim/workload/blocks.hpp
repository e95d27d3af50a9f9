// The blocks that a model repeats: operators that a reader would call one layer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// The operators of one block, ascending. `numbered`: the block is one of a row, such as "layer.7".
struct Block {
  std::string name;
  bool numbered = false;
  std::vector<OperatorId> operators;
};

/// The blocks of a model in order of their first operators. The name of an operator's block ends with the first number
/// between dots or slashes ("layer.7" of "layer.7.attention.add"); without a number, it is the name less its last part
/// ("stage1.first" of "stage1.first.conv1"). An operator whose name has one part is a block by itself.
std::vector<Block> blocks_of(const ModelGraph& model);

/// [operator]: the number of its numbered block, counted from 0 in their order; -1: in none.
std::vector<int> block_numbers(const ModelGraph& model);

/// The numbered blocks as a row of layers. `before` and `after` hold what stands outside the row (Megatron-LM:
/// embedding and loss). Operators between two layers belong to the first of them.
struct LayerRow {
  std::vector<OperatorId> before, after;
  std::vector<Block> layers;
};
LayerRow layer_row_of(const ModelGraph& model);

/// Whether an operator of this name is in a numbered block.
bool is_in_numbered_block(const std::string& name);

/// Whether the operator is the loss, which frameworks keep outside the model.
bool is_loss(const Operator& op);

} // namespace stagecraft
