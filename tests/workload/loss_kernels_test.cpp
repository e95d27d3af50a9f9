// The loss over words, fused or kernel by kernel.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/loss_kernels.hpp"
#include "tests/catch.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::near;

constexpr double kScores = 8 * 100, kHalf = 2; // of fused_loss(), and bytes of one

ModelGraph fused_loss() {
  return test::workload("name: words\ninput: {shape: [8, 16]}\nlayers:\n"
                        "  - {name: head, kind: linear, features: 100}\n"
                        "  - {name: loss, kind: cross_entropy}\n");
}

// Three numbers in fp32, and where the caller keeps it the score.
TEST_CASE("a loss in single precision holds 12 bytes a score and moves 18 in each pass", "[workload][loss]") {
  const ModelGraph fused = fused_loss();
  const ModelGraph single = with_loss(fused, kLosses[1], kHalf);
  const Operator &before = fused.operators[1], &loss = single.operators[1];
  CHECK(before.stash_elements == near(kScores));
  CHECK(loss.stash_elements * kHalf == near(12 * kScores));
  CHECK(with_loss(fused, kLosses[2], kHalf).operators[1].stash_elements * kHalf == near(14 * kScores));
  CHECK(loss.forward.moved_elements * kHalf == near(18 * kScores));
  CHECK(loss.backward_input.moved_elements * kHalf == near(18 * kScores));
  CHECK(single.operators[0].stash_elements == fused.operators[0].stash_elements);
  CHECK(with_loss(fused, kLosses[0], kHalf).operators[1].stash_elements == before.stash_elements);
}

// Korthikanti et al. count 4 bytes a score, and the file 38 and 14 that its kernels read and write.
TEST_CASE("Megatron-LM's loss holds the softmax in fp32", "[workload][loss]") {
  const ModelGraph fused = fused_loss();
  const Operator loss = with_loss(fused, find_by_name(kLosses, "megatron", "loss", {}), kHalf).operators[1];
  CHECK(loss.stash_elements * kHalf == near(4 * kScores));
  CHECK(loss.forward.moved_elements * kHalf == near(38 * kScores));
  CHECK(loss.backward_input.moved_elements * kHalf == near(14 * kScores));
  CHECK(loss.forward.kernels == 6);
  CHECK(loss.backward_input.kernels == 2);
}

// Of each score a rank holds the logarithmic softmax, the gradient of the choice, the exponential and their sum, in
// fp32.
TEST_CASE("PyTorch's loss over divided scores holds 16 bytes a score", "[workload][loss]") {
  const ModelGraph fused = fused_loss();
  const LossRow& divided = as_divided(kLosses[1]);
  CHECK(divided.name == "single-parallel");
  CHECK(&as_divided(kLosses[0]) == &kLosses[0]);
  const Operator loss = with_loss(fused, divided, kHalf).operators[1];
  CHECK(loss.stash_elements * kHalf == near(16 * kScores));
  CHECK(loss.forward.moved_elements * kHalf == near(38 * kScores));
  CHECK(loss.backward_input.moved_elements * kHalf == near(38 * kScores));
}

} // namespace
} // namespace stagecraft
