// Random planning problems, the same for the same seed everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "tests/plan/problems.hpp"

namespace stagecraft::test {

struct RandomToyOptions {
  int operators = 8; ///< at most
  int devices = 4;
  bool memory = false;      ///< limited
  bool kernels = false;     ///< some lack
  bool indivisible = false; ///< some may not be replicated
};

inline int pick(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

inline Toy random_toy(std::mt19937& random, const RandomToyOptions& options) {
  Toy toy;
  const int operators = pick(random, 1, options.operators);
  toy.types.resize(pick(random, 1, 3));
  toy.devices.resize(pick(random, 1, options.devices));
  toy.micro_batches = pick(random, 1, 6);
  toy.input = 4 * pick(random, 0, 10);
  const int density = pick(random, 1, 4);
  const bool same_links = pick(random, 0, 1) == 1;
  for (int op = 0; op < operators; ++op) {
    ToyOperator made;
    for (std::size_t type = 0; type < toy.types.size(); ++type) {
      const bool lacks = options.kernels && pick(random, 0, 11) == 0;
      made.seconds.push_back(lacks ? kInfinite : pick(random, 0, 40));
    }
    made.output = 4 * pick(random, 0, 20);
    made.parameters = pick(random, 0, 30);
    made.stash = 4 * pick(random, 0, 20);
    made.divisible = !options.indivisible || pick(random, 0, 2) > 0;
    toy.operators.push_back(made);
    for (int from = 0; from < op; ++from) {
      if (from + 1 == op ? pick(random, 0, 3) > 0 : pick(random, 0, 4) < density - 1) {
        toy.edges.emplace_back(from, op);
      }
    }
  }
  double whole = 0;
  for (const ToyOperator& op : toy.operators) {
    whole += op.parameters * 12 + op.stash + 2 * op.output;
  }
  for (ToyType& type : toy.types) {
    type.peak = pick(random, 1, 4);
    type.memory = options.memory ? whole * pick(random, 20, 110) / 100 + 2 * toy.input : kInfinite;
  }
  const double bandwidth = 4.0 * pick(random, 1, 20);
  for (ToyDevice& device : toy.devices) {
    device.type = pick(random, 0, static_cast<int>(toy.types.size()) - 1);
    device.bandwidth = same_links ? bandwidth : 4.0 * pick(random, 1, 20);
    device.latency = same_links ? 0 : pick(random, 0, 2);
  }
  return toy;
}

} // namespace stagecraft::test
