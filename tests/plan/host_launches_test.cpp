// The host that launches kernels beside the device that runs them.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "sim/plan/stage_cost/passes/host_launches.hpp"
#include "tests/catch.hpp"
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

  // The second operator's result is exchanged so long, by so many exchanges.
  std::vector<double> forward(double exchanged = 0, int begun = 0) const {
    const std::vector<OperatorId> all = {0, 1, 2};
    const std::vector<Seconds> alone = {Seconds{1}, Seconds{1}, Seconds{2}};
    const std::vector<Seconds> exchanging = {Seconds{0}, Seconds{exchanged}, Seconds{0}};
    const std::vector<BegunExchanges> exchanges = {{}, {begun, 0}, {}};
    std::vector<double> taken;
    for (const Seconds seconds :
         forward_beside_host(launches_of_each(problem, all, {}, exchanges, 1), alone, exchanging)) {
      taken.push_back(seconds.value);
    }
    return taken;
  }
};

TEST_CASE("a host that runs ahead stretches a forward as a whole", "[plan][host]") {
  const Launched world;
  CHECK(world.forward() == std::vector<double>{1.5, 1.5, 3}); // 6 s of launches, 4 s of kernels
}

// While the second's result is exchanged the host launches on: of 6 s that it takes, 1 s passes so, and the kernels are
// stretched to the other 5; an exchange of 5 s leaves nothing to wait for. Each that is begun takes 2 s to launch.
TEST_CASE("a host launches while a group exchanges data", "[plan][host]") {
  const Launched world;
  CHECK(world.forward(1) == std::vector<double>{1.25, 1.25, 2.5});
  CHECK(world.forward(5) == std::vector<double>{1, 1, 2});
  CHECK(world.forward(1, 1) == std::vector<double>{1.75, 1.75, 3.5}); // 6 + 2 - 1
  CHECK(longer_beside_host(Seconds{6}, Seconds{0}, Seconds{1}) == 1); // nothing to stretch
}

// Half as fast, it takes 12 s to launch, and each tensor's step twice as long.
TEST_CASE("a slow host launches late", "[plan][host]") {
  Launched world;
  const std::vector<OperatorId> all = {0, 1, 2};
  const std::vector<Seconds> alone = {Seconds{1}, Seconds{1}, Seconds{2}};
  const std::vector<Seconds> taken = forward_beside_host(launches_of_each(world.problem, all, {}, {}, 0.5), alone);
  CHECK(std::accumulate(taken.begin(), taken.end(), Seconds{0}).value == 12);
  CHECK(launches_of(world.problem, all, {}, 0.5).backward().value ==
        2 * launches_of(world.problem, all).backward().value);
  world.World::toy.training.launches.by_tensor = true;
  CHECK(step_launches(world.problem, all, 0.5).value == 2 * step_launches(world.problem, all).value);
  Platform platform = platform_of(world.World::toy);
  platform.types[0].host_speed = 0.5;
  CHECK(slowest_host(platform, std::vector<DeviceId>{0}) == 0.5);
}

// The second operator is what the host waits for. It launches the first until 2, which runs until 3; only then the
// second, until 5, which runs until 6; and the third until 7, which runs until 9.
TEST_CASE("a host that waits for counts launches what follows late", "[plan][host]") {
  Launched world;
  world.model.operators[1].counted_by_host = true;
  CHECK(world.forward() == std::vector<double>{3, 3, 3});
  // While the second's result is exchanged, from 6 on, the host launches on.
  CHECK(world.forward(1) == std::vector<double>{3, 3, 2});
  CHECK(world.forward(5) == std::vector<double>{3, 3, 2});
  CHECK(world.forward(5, 1) == std::vector<double>{3, 5, 2}); // the exchange is launched behind the wait, too
  // Of five kernels two count, which it launches until 6; the others from there until 12.
  world.model.operators[1].host_kernels = HostKernels{.forward = 5, .backward = 0, .counting = 2};
  CHECK(world.forward() == std::vector<double>{3, 10, 3});
  world.model.operators[1].counting_captured = true; // and from 3 until 9
  CHECK(world.forward() == std::vector<double>{3, 7, 3});
}

// The second operator is launched as four kernels, behind the first of which, at 4, the host waits for the device,
// which rests since 3. It launches the other three until 10 and the third operator until 12, while the second runs
// until 11.
TEST_CASE("a host that waits in the middle of an operator launches the rest late", "[plan][host]") {
  Launched world;
  world.model.operators[1].host_kernels = HostKernels{.forward = 4, .backward = 0, .before_wait = 1};
  CHECK(world.forward() == std::vector<double>{3, 8, 3});
  CHECK(world.forward(1) == std::vector<double>{3, 8, 2});
  world.model.operators[1].captured = true; // 4 s of launches, 4 s of kernels, and nothing is waited for
  CHECK(world.forward() == std::vector<double>{1, 1, 2});
}

TEST_CASE("captured kernels cost the host nothing", "[plan][host]") {
  Launched world;
  world.model.operators[0].captured = true;
  CHECK(world.forward() == std::vector<double>{1, 1, 2}); // 4 s of launches, 4 s of kernels
  world.model.operators[1].counted_by_host = true;
  CHECK(world.forward() == std::vector<double>{1, 3, 3}); // until 1, 1 + 2 + 1, 3 + 2 + 2
  for (Operator& op : world.model.operators) {
    op.captured = true;
  }
  CHECK(world.forward() == std::vector<double>{1, 1, 2});
}

// The first operator is launched as five kernels, of which two count tokens, and backward as four; the others as one
// and two each, 2 s a kernel.
TEST_CASE("a host launches what a framework makes of an operator", "[plan][host]") {
  Launched world;
  const std::vector<OperatorId> all = {0, 1, 2};
  for (Operator& op : world.model.operators) {
    op.backward_input.kernels = op.backward_weight.kernels = 1;
  }
  Operator& first = world.model.operators[0];
  first.host_kernels = HostKernels{.forward = 5, .backward = 4, .counting = 2};
  CHECK(launches_of(world.problem, all).forward.value == 2 * (5 + 1 + 1));
  CHECK(launches_of(world.problem, all).backward().value == 2 * (4 + 2 + 2));
  CHECK(launches_of(world.problem, all, {}, 0.5).forward.value == 2 * 2 * (5 + 1 + 1));
  first.counting_captured = true;
  CHECK(launches_of(world.problem, all).forward.value == 2 * (3 + 1 + 1));
  CHECK(launches_of(world.problem, all).backward().value == 2 * (4 + 2 + 2));
  first.captured = true;
  CHECK(launches_of(world.problem, all).forward.value == 2 * (1 + 1));
}

// A weight and a bias, a weight alone, and nothing: three tensors, for each of which Adam launches ten kernels: eight
// of its own, one that adds a gradient and one that makes it zero.
TEST_CASE("a step tensor by tensor is launched for each tensor of parameters", "[plan][host]") {
  Launched world;
  const std::vector<OperatorId> all = {0, 1, 2};
  for (Operator& op : world.model.operators) {
    op.signature.reset();
    op.parameters = 0;
    op.backward_input.moved_parameters = 0;
  }
  world.model.operators[0].parameters = 12;
  world.model.operators[0].backward_input.moved_parameters = 9;
  world.model.operators[1].parameters = world.model.operators[1].backward_input.moved_parameters = 9;
  world.World::toy.training.optimizer = &find_by_name(kOptimizers, "adam", "optimizer", {});
  CHECK(step_launches(world.problem, all).value == 0); // as one kernel
  world.World::toy.training.launches.by_tensor = true;
  CHECK(step_launches(world.problem, all).value == 3 * 10 * 2);
  world.World::toy.training.optimizer = &find_by_name(kOptimizers, "momentum", "optimizer", {});
  CHECK(step_launches(world.problem, all).value == 3 * 5 * 2);
}

} // namespace
} // namespace stagecraft::test
