// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/attention_kernels.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

// Elements that a dropout moves and keeps, as those of the layer: its mask counts half an element.
constexpr double kDropoutMoves = 2.5, kMask = 0.5;

bool is_plain(const Operator& op) {
  return op.kind == KernelKind::attention && op.forward.calls.size() == 1 &&
         op.forward.calls.front().op == KernelOp::attention;
}

// An attention of one sample as the kernels of before 2022. Eager, scores are scaled and masked by a kernel each, of
// which the sum with a mask has no gradient; queries, keys, values and the result, which heads interleave, are copied
// so that batched products can read them, and so are their gradients. In steps, a softmax casts scores to fp32, scales,
// masks, normalises and casts back, a kernel each, and backward undoes each.
class SeparateAttention {
public:
  SeparateAttention(const Operator& op, bool drops, bool eager, bool in_steps)
      : batch_(op.forward.calls.front().shape[0]), length_(op.forward.calls.front().shape[1]),
        heads_(op.forward.calls.front().shape[2]), width_(op.forward.calls.front().shape[4]),
        pairs_(batch_ * heads_ * length_ * length_), drops_(drops), eager_(eager), in_steps_(in_steps) {}

  Pass forward() const {
    constexpr int kProducts = 2;
    const double dropout = drops_ ? kDropoutMoves : 0;
    Pass pass{.flops = kProducts * product_flops() + Flops{softmax_flops()},
              .moved_elements = 2 * (2 * rows() + pairs_) + 2 * pairs_ + dropout * pairs_,
              .kernels = kProducts + (drops_ ? 2 : 1)};
    pass.calls = {product(length_, width_), over_pairs(KernelOp::softmax)};
    if (drops_) {
      pass.calls.push_back(over_pairs(KernelOp::dropout));
    }
    pass.calls.push_back(product(width_, length_));
    add_copies(pass, kScaleAndMask);
    add_steps(pass);
    return pass;
  }

  // Two products for each of the two, and the softmax's gradient, which reads its result.
  Pass backward() const {
    constexpr int kProducts = 4;
    const double dropout = drops_ ? kDropoutMoves : 0;
    Pass pass{.flops = kProducts * product_flops() + Flops{softmax_flops()},
              .moved_elements = 4 * (2 * rows() + pairs_) + 3 * pairs_ + dropout * pairs_,
              .kernels = kProducts + (drops_ ? 2 : 1)};
    pass.calls = {product(length_, width_), product(width_, length_)};
    if (drops_) {
      pass.calls.push_back(over_pairs(KernelOp::dropout));
    }
    pass.calls.insert(pass.calls.end(),
                      {over_pairs(KernelOp::softmax), product(width_, length_), product(width_, length_)});
    add_copies(pass, kScale);
    add_steps(pass);
    return pass;
  }

  // The softmax's result, in fp32 where it is computed in steps, and what dropout made of it with its mask.
  double kept() const { return pairs_ * ((in_steps_ ? 2 : 1) + (drops_ ? 1 + kMask : 0)); }

private:
  static constexpr int kScale = 1, kScaleAndMask = 2;

  // What an eager pass reads and writes besides: the scores so many times, and what heads hold.
  void add_copies(Pass& pass, int of_scores) const {
    if (!eager_) {
      return;
    }
    constexpr int kOfHeads = 4; // queries, keys, values, the result
    pass.moved_elements += 2 * (of_scores * pairs_ + kOfHeads * rows());
    pass.kernels += of_scores + kOfHeads;
    pass.calls.insert(pass.calls.end(), static_cast<std::size_t>(of_scores), over_pairs(KernelOp::copy));
    pass.calls.insert(pass.calls.end(), kOfHeads, {KernelOp::copy, {batch_ * heads_ * length_, width_}, 0});
  }

  // Reads and writes of scores that one kernel spares: in elements of 16 bits 18, as fp32 counts double, less 2.
  void add_steps(Pass& pass) const {
    constexpr int kSteps = 5, kMoved = 16;
    if (!in_steps_) {
      return;
    }
    pass.moved_elements += kMoved * pairs_;
    pass.kernels += kSteps - 1;
    pass.calls.insert(pass.calls.end(), kMoved / 2, over_pairs(KernelOp::copy));
  }

  double rows() const { return batch_ * length_ * heads_ * width_; }
  Flops product_flops() const { return Flops{2 * pairs_ * width_}; }
  double softmax_flops() const { return 5 * pairs_; }
  KernelCall product(double columns, double depth) const {
    return {KernelOp::gemm, {batch_ * heads_, length_, columns, depth}, 0};
  }
  KernelCall over_pairs(KernelOp op) const { return {op, {batch_ * heads_ * length_, length_}, 0}; }

  double batch_, length_, heads_, width_, pairs_;
  bool drops_, eager_, in_steps_;
};

// Megatron-LM's fused softmax has blocks of so many heads and samples (fused_softmax.py, is_kernel_available()).
bool softmax_in_steps(const Operator& op, const AttentionRow& row, const RankHeads& rank) {
  const double heads = op.forward.calls.front().shape[0] * op.forward.calls.front().shape[2];
  return row.softmax_by > 1 && rank.samples > 0 && std::fmod(heads * rank.samples / rank.tensor, row.softmax_by) != 0;
}

// As many features in all, in heads of so many at most.
void narrow_heads(KernelCall& call, double widest) {
  double &heads = call.shape[2], &shared = call.shape[3], &width = call.shape[4];
  if (call.op == KernelOp::attention && widest > 0 && width > widest) {
    heads *= width / widest;
    shared *= width / widest;
    width = widest;
  }
}

// Of n x n blocks n (n + 1) / 2 hold a pair that a causal mask leaves. What a model counts stays as it was.
void compute_whole_blocks(Operator& op, double block) {
  if (block == 0 || !op.mask || !op.mask->causal || op.mask->window > 0 || !op.mask->documents.empty()) {
    return;
  }
  const double length = op.forward.calls.front().shape[1];
  const double computed = std::min(1.0, (1 + block / length) / 2), more = computed / op.seen;
  op.seen = computed;
  op.forward.flops = more * op.forward.flops;
  op.backward_input.flops = more * op.backward_input.flops;
}

} // namespace

ModelGraph with_attention(ModelGraph model, const AttentionRow& row, const RankHeads& rank) {
  const bool drops = std::any_of(model.operators.begin(), model.operators.end(), [](const Operator& op) {
    return !op.forward.calls.empty() && op.forward.calls.front().op == KernelOp::dropout;
  });
  for (Operator& op : model.operators) {
    if (!is_plain(op)) {
      continue;
    }
    if (row.separate) {
      const SeparateAttention kernels(op, drops, row.eager, softmax_in_steps(op, row, rank));
      const double stash = op.stash_elements;
      op.stash_elements += kernels.kept();
      for (KeptInput& kept : op.kept_inputs) {
        kept.part *= stash / op.stash_elements;
      }
      const Flops counted = op.forward.flops / op.seen;
      op.forward = kernels.forward();
      op.seen = op.forward.flops / counted;
      op.backward_input = op.backward_input.kernels > 0 ? kernels.backward() : op.backward_input;
    } else {
      compute_whole_blocks(op, row.block);
      for (Pass* pass : {&op.forward, &op.backward_input}) {
        for (KernelCall& call : pass->calls) {
          call.variant = row.variant;
          narrow_heads(call, row.widest);
        }
      }
    }
  }
  return model;
}

bool has_attention(const ModelGraph& model) {
  return std::any_of(model.operators.begin(), model.operators.end(), [](const Operator& op) {
    return op.kind == KernelKind::attention || (op.kind == KernelKind::matmul && op.parameters + op.frozen == 0);
  });
}

} // namespace stagecraft
