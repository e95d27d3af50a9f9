// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/common/model_sizes.hpp"

#include <algorithm>

#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

// The table of words: its rows are the vocabulary.
void read_embedding(const Operator& op, ModelSizes& sizes) {
  if (op.type == "embedding" && !op.signature->parameters.empty()) {
    const TensorDimensions& table = op.signature->parameters.front().dimensions;
    sizes.hidden = op.signature->output.back().size();
    for (const TensorDimension& dimension : table) {
      if (dimension.size() != *sizes.hidden) {
        sizes.vocabulary = dimension.size();
      }
    }
  }
}

// Queries, keys and values lie side by side in what an attention reads, cut by heads of keys.
void read_attention(const Operator& op, ModelSizes& sizes) {
  const Signature& signature = *op.signature;
  if (op.type != "attention" || signature.inputs.size() != 1) {
    return;
  }
  const TensorDimension& read = signature.inputs.front().dimensions.back();
  const long long groups = signature.letters[static_cast<std::size_t>(read.letter)].pieces;
  if (read.sections.size() == 3 && groups > 0) {
    sizes.groups = groups;
    sizes.head_width = read.sections[1] / groups;
    sizes.heads = read.sections[0] / *sizes.head_width;
  }
}

// What the last product of an MLP reads, of a dense layer's and of an expert's.
void read_feed_forward(const ModelGraph& model, ModelSizes& sizes) {
  const std::vector<OperatorId> dense = dense_mlps(model);
  for (OperatorId id = 0; id < model.size(); ++id) {
    const Operator& op = model.operators[id];
    const bool of_expert = op.type == "expert_linear";
    const bool is_product =
        of_expert || (op.kind == KernelKind::matmul && std::binary_search(dense.begin(), dense.end(), id));
    if (is_product && sizes.hidden && op.signature->output.back().size() == *sizes.hidden) {
      (of_expert ? sizes.expert_feed_forward : sizes.feed_forward) =
          op.signature->inputs.front().dimensions.back().size();
    }
  }
}

} // namespace

ModelSizes sizes_of(const ModelGraph& model) {
  ModelSizes sizes;
  for (const Operator& op : model.operators) {
    if (!op.signature) {
      return {};
    }
    read_embedding(op, sizes);
    read_attention(op, sizes);
    if (op.type == "router" && op.routing) { // dispatch may not say of how many experts
      sizes.experts = op.routing->experts;
      sizes.top = op.routing->top;
    }
  }
  if (!sizes.experts) {
    sizes.experts = 0;
    sizes.top = 0;
  }
  read_feed_forward(model, sizes);
  return sizes;
}

} // namespace stagecraft
