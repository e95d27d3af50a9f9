// The host that launches kernels beside the device that runs them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/host_launches.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft::test {
namespace {

// Three operators of a kernel each, launched in 2 s each, which take 1, 1 and 2 s forward.
struct Launched : World {
  Launched() : World(toy()) {
    for (Operator& op : model.operators) {
      op.forward.kernels = 1;
    }
  }

  static Toy toy() {
    Toy toy;
    toy.operators = {{{3}}, {{3}}, {{6}}};
    toy.edges = chain_edges(3);
    toy.training.launches.each = Seconds{2};
    return toy;
  }

  std::vector<double> forward(std::vector<Seconds> exchanges = {}) const {
    const std::vector<OperatorId> all = {0, 1, 2};
    const std::vector<Seconds> alone = {Seconds{1}, Seconds{1}, Seconds{2}};
    std::vector<double> taken;
    for (const Seconds seconds : forward_beside_host(problem, all, {}, alone, exchanges)) {
      taken.push_back(seconds.value);
    }
    return taken;
  }
};

TEST_CASE("a host that runs ahead stretches a forward as a whole", "[plan][host]") {
  const Launched world;
  CHECK(world.forward() == std::vector<double>{1.5, 1.5, 3}); // 6 s of launches, 4 s of kernels
  CHECK(world.forward({Seconds{0}, Seconds{5}, Seconds{0}}) == std::vector<double>{1.5, 1.5, 3});
}

// The second operator is what the host waits for. It launches the first until 2, which runs until 3, and the second
// until 4, which runs until 5; only then the third, from 5 to 7, which runs until 9.
TEST_CASE("a host that waits for counts launches what follows late", "[plan][host]") {
  Launched world;
  world.model.operators[1].counted_by_host = true;
  CHECK(world.forward() == std::vector<double>{3, 2, 4});
  // While the second's result is exchanged, from 5 on, the host launches on.
  CHECK(world.forward({Seconds{0}, Seconds{1}, Seconds{0}}) == std::vector<double>{3, 2, 3});
  CHECK(world.forward({Seconds{0}, Seconds{5}, Seconds{0}}) == std::vector<double>{3, 2, 2});
}

TEST_CASE("captured kernels cost the host nothing", "[plan][host]") {
  Launched world;
  world.model.operators[0].captured = true;
  CHECK(world.forward() == std::vector<double>{1, 1, 2}); // 4 s of launches, 4 s of kernels
  world.model.operators[1].counted_by_host = true;
  CHECK(world.forward() == std::vector<double>{1, 2, 4}); // until 1, 2 + 1, 3 + 2 + 2
  for (Operator& op : world.model.operators) {
    op.captured = true;
  }
  CHECK(world.forward() == std::vector<double>{1, 1, 2});
}

} // namespace
} // namespace stagecraft::test
