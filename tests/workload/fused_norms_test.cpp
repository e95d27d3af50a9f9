// Batch norms that do the sum and the activation behind them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/fused_norms.hpp"
#include "tests/catch.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::near;

const Operator& named(const ModelGraph& model, const std::string& name) {
  return *std::find_if(model.operators.begin(), model.operators.end(),
                       [&](const Operator& op) { return op.name == name; });
}

// A block of ResNet: what comes in is added behind the second norm.
const std::string kBlock = "name: images\ninput: {shape: [4, 8, 8]}\nlayers:\n"
                           "  - {name: first, kind: conv2d, channels: 4, kernel: 3, padding: 1}\n"
                           "  - {name: norm1, kind: batch_norm}\n"
                           "  - {name: relu1, kind: relu}\n"
                           "  - {name: second, kind: conv2d, channels: 4, kernel: 3, padding: 1}\n"
                           "  - {name: norm2, kind: batch_norm}\n"
                           "  - {name: sum, kind: add, inputs: [norm2, first]}\n"
                           "  - {name: relu2, kind: relu}\n";

TEST_CASE("a sum and activations behind batch norms are part of them", "[workload][images]") {
  const ModelGraph plain = test::workload(kBlock), fused = with_fused_norms(plain);
  constexpr double kElements = 4 * 8 * 8;
  for (const std::string name : {"relu1", "relu2"}) {
    CAPTURE(name);
    CHECK(named(plain, name).forward.kernels == 1);
    for (const Pass& pass : {named(fused, name).forward, named(fused, name).backward_input}) {
      CHECK(pass.kernels == 0);
      CHECK(pass.moved_elements == 0);
      CHECK(pass.calls.empty());
    }
  }
  for (const Pass& pass : {named(fused, "sum").forward, named(fused, "sum").backward_input}) {
    CHECK(pass.kernels == 0);
    CHECK(pass.moved_elements == near(kElements)); // what is added; its gradient
  }
  for (const std::string name : {"first", "norm1", "second", "norm2"}) {
    CHECK(named(fused, name).forward.calls == named(plain, name).forward.calls);
    CHECK(named(fused, name).forward.moved_elements == named(plain, name).forward.moved_elements);
  }
}

TEST_CASE("what something else reads, or what stands behind no batch norm, is a kernel of its own",
          "[workload][images]") {
  const ModelGraph shared = with_fused_norms(test::workload("name: images\ninput: {shape: [4, 8, 8]}\nlayers:\n"
                                                            "  - {name: norm, kind: batch_norm}\n"
                                                            "  - {name: relu, kind: relu}\n"
                                                            "  - {name: sum, kind: add, inputs: [norm, relu]}\n"));
  CHECK(named(shared, "relu").forward.kernels == 1);
  CHECK(named(shared, "sum").forward.kernels == 1);
  const ModelGraph behind_product = with_fused_norms(test::workload("name: words\ninput: {shape: [8]}\nlayers:\n"
                                                                    "  - {name: product, kind: linear, features: 8}\n"
                                                                    "  - {name: relu, kind: relu}\n"));
  CHECK(named(behind_product, "relu").forward.kernels == 1);
}

} // namespace
} // namespace stagecraft
