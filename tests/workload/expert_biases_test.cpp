// Biases of experts, fused with their products or by kernels of their own.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/expert_biases.hpp"
#include "tests/catch.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::near;

ModelGraph mixture(const std::string& bias) {
  return test::workload("name: mixture\ninput: {shape: [8, 16]}\nlayers:\n"
                        "  - {name: router, kind: router, experts: 4, top: 2}\n"
                        "  - {name: dispatch, kind: dispatch, inputs: [input, router]}\n"
                        "  - {name: expand, kind: expert_linear, inputs: [dispatch, router], experts: 4, features: 64, "
                        "bias: " +
                        bias +
                        "}\n"
                        "  - {name: gate, kind: clamped_gated, inputs: [expand, router]}\n"
                        "  - {name: contract, kind: expert_linear, inputs: [gate, router], experts: 4, features: 16, "
                        "bias: " +
                        bias +
                        "}\n"
                        "  - {name: combine, kind: combine, inputs: [contract, router]}\n");
}

// 8 tokens of 2 rows of 16 values. Only the second product's bias is weighed; the first one's stays its own.
TEST_CASE("a bias that is weighed moves 28 bytes a value forward and 40 backward", "[workload][experts]") {
  constexpr double kValues = 8 * 2 * 16;
  const ModelGraph fused = mixture("true");
  const ModelGraph weighed = with_expert_biases(fused, kExpertBiases[1]);
  const Operator& contract = weighed.operators[4];
  CHECK(contract.forward.cast_bytes == near(28 * kValues));
  CHECK(contract.forward.casts == 2);
  CHECK(contract.backward_input.cast_bytes == near(40 * kValues));
  CHECK(contract.backward_input.casts == 6);
  CHECK(weighed.operators[2].forward.casts == 0);
  CHECK(with_expert_biases(fused, kExpertBiases[0]).operators[4].forward.casts == 0);
}

TEST_CASE("experts without biases have nothing to weigh", "[workload][experts]") {
  CHECK(with_expert_biases(mixture("false"), kExpertBiases[1]).operators[4].forward.casts == 0);
}

} // namespace
} // namespace stagecraft
