// A chain of three operators that tensor-parallel groups share, and plans of such groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/plan/problems.hpp"

namespace stagecraft::test {

// Two operators with weights, of 6 and 9 s, and one of 3 s between them, of the kind given. Links of 2 B/s and 1 s.
struct Chain : World {
  explicit Chain(KernelKind between, int devices, Bytes gradient_bucket = Bytes{0})
      : World(toy_of(devices, gradient_bucket)) {
    model.operators[0].kind = model.operators[2].kind = KernelKind::matmul;
    model.operators[1].kind = between;
  }

  static Toy toy_of(int devices, Bytes gradient_bucket) {
    Toy toy;
    toy.training.gradient_bucket = gradient_bucket;
    toy.operators = {{{6}, 8, 10, 40}, {{3}, 8, 0, 20}, {{9}, 4, 20, 60}};
    toy.edges = chain_edges(3);
    toy.devices.assign(devices, {0, 2, 1});
    toy.micro_batches = 2;
    return toy;
  }
};

inline Plan grouped(const std::vector<std::vector<OperatorId>>& stages,
                    const std::vector<std::vector<DeviceId>>& devices, const std::vector<int>& degrees) {
  Plan plan;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    plan.stages.push_back({.operators = stages[s], .devices = devices[s], .tensor_parallel = degrees[s]});
  }
  return plan;
}

} // namespace stagecraft::test
