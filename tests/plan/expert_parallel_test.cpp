// Ranks that share experts: what they hold, what they exchange, what falls to each.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>

#include "sim/plan/stage_cost/groups/expert_loads.hpp"
#include "sim/plan/stage_cost/stage_costs.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/plan/roofline_problem.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::near;

// A mixture of 8 experts, 2 of which each of 8 tokens goes to: 16 features, 32 inside. Half precision, two samples for
// each device, which have a link each to one switch.
struct Mixture : test::RooflineProblem {
  static constexpr double kAllTokens = 8, kTop = 2, kFeatures = 16, kInner = 32, kAllExperts = 8;

  explicit Mixture(int devices, const std::string& dispatch = "")
      : RooflineProblem(test::workload(text(dispatch)), with_rates(test::World(star(devices)).platform), half(devices),
                        1) {}

  static std::string text(const std::string& dispatch) {
    return "name: mixture\ninput: {shape: [8, 16]}\nlayers:\n"
           "  - {name: first, kind: linear, features: 16, bias: false}\n"
           "  - {name: router, kind: router, experts: 8, top: 2}\n"
           "  - {name: dispatch, kind: dispatch, inputs: [first, router]" +
           dispatch +
           "}\n"
           "  - {name: expand, kind: expert_linear, inputs: [dispatch, router], experts: 8, features: 32, bias: "
           "false}\n"
           "  - {name: contract, kind: expert_linear, inputs: [expand, router], experts: 8, features: 16, bias: "
           "false}\n"
           "  - {name: combine, kind: combine, inputs: [contract, router]}\n";
  }
  static Training half(int devices) {
    Training training;
    training.global_batch = 2 * devices;
    training.precision = Precision::fp16;
    return training;
  }
  static Platform with_rates(Platform platform) {
    for (auto& of_kind : platform.types.front().rates) {
      of_kind.fill(FlopsPerSecond{1e3});
    }
    platform.types.front().memory_bandwidth = BytesPerSecond{1e12};
    return platform;
  }
  static test::Toy star(int devices) {
    test::Toy toy;
    toy.operators = {{{1}}};
    toy.devices.assign(devices, {0, 2, 1});
    return toy;
  }

  StageCost stage(const Experts& shared, int tensor = 1) {
    Stage stage{.operators = std::vector<OperatorId>(model.size()),
                .devices = std::vector<DeviceId>(platform.devices.size()),
                .experts = shared};
    stage.tensor_parallel = tensor;
    stage.sequence_parallel = tensor > 1;
    std::iota(stage.operators.begin(), stage.operators.end(), 0);
    std::iota(stage.devices.begin(), stage.devices.end(), 0);
    return cost_plan(problem, {.strategy = "", .stages = {stage}}).stages.front();
  }
};

// Two samples of 8 tokens bring 2 rows each, of 16 numbers of 2 B, which come to the products of experts and go back in
// either pass, and are read and written where a rank has several of eight experts. At a millionth of the speed that is
// all that changes.
TEST_CASE("a rank of several experts puts rows in their order, and back", "[plan][experts]") {
  Mixture world(8);
  const auto longer = [&](int ranks, DispatcherKind dispatcher) {
    world.training.dispatcher.kind = dispatcher;
    const auto at = [&](double speed) {
      world.training.kernel_speed.other = speed;
      const ReplicaCost first = world.stage({ranks}).replicas.front();
      return std::pair(first.forward.value, first.backward_input.value);
    };
    const auto slow = at(1e-6), fast = at(1);
    return std::pair(slow.first - fast.first, slow.second - fast.second);
  };
  const double rows = 2 * Mixture::kAllTokens * Mixture::kTop * Mixture::kFeatures * 2;
  const double expected = 2 * (2 * rows / 1e12) * (1e6 - 1);
  for (const int ranks : {2, 4}) {
    const auto [forward, backward] = longer(ranks, DispatcherKind::alltoall);
    CHECK(forward == near(expected).epsilon(1e-6));
    CHECK(backward == near(expected).epsilon(1e-6));
  }
  CHECK(longer(8, DispatcherKind::alltoall) == std::pair(0.0, 0.0));
  CHECK(longer(4, DispatcherKind::deepep) == std::pair(0.0, 0.0));
  CHECK(longer(4, DispatcherKind::allgather) == std::pair(0.0, 0.0));
}

// Two products of experts, 2 x 8 x 16 x 32 parameters, of which each of four ranks has a quarter; 16 x 16 of the first
// layer and 8 x 16 of the router on all.
TEST_CASE("ranks hold their part of the experts, and reduce it among those that have the same", "[plan][experts]") {
  Mixture world(8);
  const double dense = 16 * 16 + 8 * 16, mixture = 2 * Mixture::kAllExperts * Mixture::kFeatures * Mixture::kInner;
  const StageCost shared = world.stage({4});
  CHECK(shared.gradients.value == near(2 * dense));
  CHECK(shared.expert_gradients.value == near(2 * mixture / 4));
  CHECK(shared.replicas.front().memory.weights.value == near(2 * (dense + mixture / 4)));
  const StageCost alone = world.stage({});
  CHECK(alone.gradients.value == near(2 * (dense + mixture)));
  CHECK(alone.expert_gradients.value == 0);
}

// Of what all share of the optimiser's states (ZeRO 1), dense parameters lie on eight replicas, those of experts on the
// two that have the same: those of the optimiser and a copy, of 4 bytes each.
TEST_CASE("states of experts are shared by the ranks that have the same experts", "[plan][experts]") {
  Mixture world(8);
  world.training.sharding = {.zero = Zero::states, .replicas = 8};
  const double dense = 16 * 16 + 8 * 16, mixture = 2 * Mixture::kAllExperts * Mixture::kFeatures * Mixture::kInner;
  const double each = 4.0 * (world.training.optimizer->states + 1);
  CHECK(world.stage({4}).replicas.front().memory.optimizer.value == near(each * (dense / 8 + mixture / 4 / 2)));
}

// Each rank brings rows of its two samples, 2 x 8 x 2 of 16 features, and gets as many back, forward and backward.
TEST_CASE("rows go to the ranks of their experts and back", "[plan][experts]") {
  Mixture world(4);
  const StageCost cost = world.stage({4});
  const GroupPasses& passes = *cost.groups.front().passes;
  const double rows = 2 * Mixture::kAllTokens * Mixture::kTop * Mixture::kFeatures * 2,
               choices = 2 * Mixture::kAllTokens * Mixture::kTop * 2;
  std::vector<double> bytes;
  for (const PassExchange& one : passes.forward.exchanges) {
    CHECK(one.kind == CollectiveKind::all_to_all);
    CHECK(one.axis == Axis::experts);
    bytes.push_back(one.bytes.value);
  }
  std::sort(bytes.begin(), bytes.end());
  CHECK(bytes == std::vector<double>{choices, rows, rows});
  CHECK(passes.backward.exchanges.size() == 2); // choices weigh nothing here
}

using Exchanged = std::vector<std::pair<CollectiveKind, double>>;

Exchanged exchanged_in(const GroupPass& pass) {
  Exchanged sent;
  for (const PassExchange& one : pass.exchanges) {
    CHECK(one.axis == Axis::experts);
    sent.emplace_back(one.kind, one.bytes.value);
  }
  return sent;
}

// A rank has the tokens of two samples, 8 of 16 features each. Forward they go to experts and come back; backward their
// gradients do, what comes back first.
TEST_CASE("where a token is sent once to a rank, each brings its tokens alone", "[plan][experts]") {
  constexpr double kNumbers = 2 * Mixture::kAllTokens * Mixture::kFeatures;
  Mixture world(4);
  world.training.dispatcher.kind = DispatcherKind::deepep;
  const Exchanged plain = {{CollectiveKind::dispatch, 2 * kNumbers}, {CollectiveKind::combine, 2 * kNumbers}};
  const StageCost cost = world.stage({4});
  CHECK(exchanged_in(cost.groups.front().passes->forward) == plain);
  CHECK(exchanged_in(cost.groups.front().passes->backward) == plain);
  // In 8 bits on the way out, and a scale of 4 bytes for every 128 numbers.
  world.training.dispatcher.fp8 = true;
  const Exchanged cast = {{CollectiveKind::dispatch, (1 + 4.0 / 128) * kNumbers},
                          {CollectiveKind::combine, 2 * kNumbers}};
  const StageCost in_fp8 = world.stage({4});
  CHECK(exchanged_in(in_fp8.groups.front().passes->forward) == cast);
  CHECK(exchanged_in(in_fp8.groups.front().passes->backward) == cast);
}

// Megatron-LM's all-gather dispatcher: the tokens of four ranks, with a byte and a weight of 2 B for each of 8 experts,
// go to all of them, and sums come back.
TEST_CASE("where tokens are gathered, all come to each rank, and sums go back", "[plan][experts]") {
  constexpr double kRanks = 4, kTokens = kRanks * 2 * Mixture::kAllTokens, kExperts = 8;
  constexpr double kNumbers = kTokens * Mixture::kFeatures;
  Mixture world(4);
  world.training.dispatcher.kind = DispatcherKind::allgather;
  const StageCost cost = world.stage({4});
  const GroupPasses& passes = *cost.groups.front().passes;
  Exchanged forward = exchanged_in(passes.forward);
  std::sort(forward.begin(), forward.end());
  Exchanged expected = {{CollectiveKind::all_gather, 2 * kNumbers},
                        {CollectiveKind::all_gather, kTokens * kExperts * (2 + 1)},
                        {CollectiveKind::reduce_scatter, 2 * kNumbers}};
  std::sort(expected.begin(), expected.end());
  CHECK(forward == expected);
  CHECK(exchanged_in(passes.backward) ==
        Exchanged{{CollectiveKind::all_gather, 2 * kNumbers}, {CollectiveKind::reduce_scatter, 2 * kNumbers}});
}

// Of a tensor group that shares tokens and each expert, a rank sends its half to the other three groups, and the group
// puts together what its ranks got: 4 groups of 4 samples, of which its own are there. Sums go back the same way.
TEST_CASE("where a tensor group shares each expert, each of its ranks gathers its own part of the tokens",
          "[plan][experts]") {
  constexpr double kNumbers = 4 * 4 * Mixture::kAllTokens * Mixture::kFeatures;
  Mixture world(8);
  world.training.dispatcher.kind = DispatcherKind::allgather;
  const StageCost cost = world.stage({4, 2}, 2);
  const GroupPasses& passes = *cost.groups.front().passes;
  for (const GroupPass* pass : {&passes.forward, &passes.backward}) {
    const auto sent = [&](CollectiveKind kind, Axis axis, double bytes) {
      return std::count_if(pass->exchanges.begin(), pass->exchanges.end(), [&](const PassExchange& one) {
        return one.kind == kind && one.axis == axis && one.bytes.value == bytes;
      });
    };
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      CHECK(sent(kind, Axis::experts, 2 * kNumbers / 2) == 1);
      CHECK(sent(kind, Axis::tensor, 2 * kNumbers * 3 / 4) == 1);
    }
  }
}

// The same tokens: a rank holds all of them, in a buffer that stays, and beside it, while a pass runs, as many sums or
// gradients, which are more than the choices, 3 B for each token and expert. Backward keeps of these those of the
// rank's own two experts. By pairs a rank gathers nothing.
TEST_CASE("a rank that gathers all tokens holds them while a pass runs", "[plan][experts][memory]") {
  constexpr double kTokens = 4 * 2 * Mixture::kAllTokens, kExperts = 8;
  constexpr double kAll = 2 * kTokens * Mixture::kFeatures;
  Mixture world(4);
  const StageMemory by_pairs = world.stage({4}).replicas.front().memory;
  CHECK(by_pairs.in_turn().value == 0);
  world.training.dispatcher.kind = DispatcherKind::allgather;
  const StageMemory memory = world.stage({4}).replicas.front().memory;
  CHECK(memory.common_buffer.value == near(kAll));
  CHECK(memory.passing.value == near(kAll));
  CHECK(memory.passing_again.value == 0); // nothing runs again
  CHECK((memory.per_micro_batch - by_pairs.per_micro_batch).value == near(kTokens * kExperts / 4 * 3));
  CHECK((memory.total(1, 1) - by_pairs.total(1, 1)).value == near(2 * kAll + kTokens * kExperts / 4 * 3));
  CHECK(world.stage({}).replicas.front().memory.in_turn().value == 0); // all experts are here
}

// Two bytes for each number of a weight: of the first layer 16 x 16, of the router 16 x 8, and of the experts' products
// 16 x 32 and 32 x 16, once each, however many experts a rank has.
TEST_CASE("autograd's empty gradients are one of each shape of weights", "[plan][experts][memory]") {
  constexpr double kShapes = 16 * 16 + 16 * 8 + 16 * 32 + 32 * 16;
  Mixture world(4);
  world.training.fused_gradient_sums = true;
  const auto held = [&](const Experts& shared) {
    return world.stage(shared).replicas.front().memory.common_buffer.value;
  };
  CHECK(held({4}) == 0); // nothing asks for them
  world.training.gradient_placeholders = true;
  CHECK(held({4}) == near(2 * kShapes));
  CHECK(held({}) == near(2 * kShapes));
  world.training.fused_gradient_sums = false; // gradients themselves are handed over
  CHECK(held({4}) == 0);
}

// Layers of a block have the shapes of all others; a tensor group of two has half of each.
TEST_CASE("weights of one shape have one empty gradient, of a rank's part", "[plan][memory]") {
  Training training = Mixture::half(2);
  training.fused_gradient_sums = training.gradient_placeholders = true;
  test::RooflineProblem world(test::workload("name: chain\ninput: {shape: [8, 16]}\nlayers:\n"
                                             "  - {name: a, kind: linear, features: 32, bias: false}\n"
                                             "  - {name: b, kind: linear, features: 16, bias: false}\n"
                                             "  - {name: c, kind: linear, features: 32, bias: false}\n"
                                             "  - {name: d, kind: linear, features: 16, bias: false}\n"),
                              Mixture::with_rates(test::World(Mixture::star(2)).platform), training, 1);
  const auto held = [&](int tensor) {
    Stage stage{.operators = {0, 1, 2, 3}, .devices = {0, 1}};
    stage.tensor_parallel = tensor;
    return cost_plan(world.problem, {.strategy = "", .stages = {stage}}).stages.front().replicas.front().memory;
  };
  CHECK(held(1).common_buffer.value == near(2 * (16 * 32 + 32 * 16)));
  CHECK(held(2).common_buffer.value == near(2 * (16 * 32 + 32 * 16) / 2));
}

// Popular experts make the rank that has them the busiest: all 16 tokens of each of four ranks go to it if the first
// two experts are all that anybody chooses, once each.
TEST_CASE("a token is sent once to a rank that has two of its experts", "[plan][experts]") {
  Mixture world(4);
  world.training.dispatcher.kind = DispatcherKind::deepep;
  world.training.expert_skew = 10; // of 1 and 2^-10, …: nearly always the first, and mostly the second
  const StageCost once = world.stage({4});
  world.training.dispatcher.kind = DispatcherKind::alltoall;
  const StageCost each = world.stage({4});
  const auto seconds = [](const StageCost& cost) { return cost.groups.front().passes->forward.exchanged.all.value; };
  CHECK(seconds(once) < 0.6 * seconds(each));
}

// 1, 1/2, 1/3, … of 8 experts on 4 ranks, in their order.
TEST_CASE("popular experts load their rank, as far as their capacity allows", "[plan][experts]") {
  const auto loads = expert_loads({.experts = 8, .skew = 1}, 4);
  double all = 0;
  for (int i = 1; i <= 8; ++i) {
    all += 1.0 / i;
  }
  CHECK(loads[0] == near((1 + 1.0 / 2) / (all / 4)));
  CHECK(loads[3] == near((1.0 / 7 + 1.0 / 8) / (all / 4)));
  CHECK(std::accumulate(loads.begin(), loads.end(), 0.0) == near(4));
  CHECK(expert_loads({.experts = 8}, 4) == std::vector<double>(4, 1.0));
  // At most an equal share each: what is above is dropped, and the first has exactly that.
  const auto limited = expert_loads({.experts = 2, .skew = 1, .most = 1}, 2); // 4/3 and 2/3 -> 1 and 2/3
  CHECK(limited[0] == near(1 / (5.0 / 6)));
  CHECK(limited[1] == near((2.0 / 3) / (5.0 / 6)));
}

TEST_CASE("a skew makes the first rank compute longer, and every all-to-all", "[plan][experts]") {
  Mixture even(4), skewed(4, ", skew: 1");
  const StageCost equal = even.stage({4}), unequal = skewed.stage({4});
  const double first = expert_loads({.experts = 8, .skew = 1}, 4).front();
  const auto rows = [](const StageCost& cost) {
    return cost.groups.front().passes->forward.exchanges.back().bytes.value;
  };
  CHECK(rows(unequal) == near(first * rows(equal)));
  const auto computed = [](const StageCost& cost, int rank) {
    const GroupPass& pass = cost.groups[rank].passes->forward;
    return (pass.seconds - pass.exchanged.all).value;
  };
  CHECK(computed(equal, 0) == near(computed(equal, 3)));
  CHECK(computed(unequal, 0) > computed(equal, 0));
  CHECK(computed(unequal, 3) < computed(equal, 3));
  even.training.expert_skew = 1; // a study may say it in the model's place
  CHECK(rows(even.stage({4})) == near(rows(unequal)));
}

} // namespace
} // namespace stagecraft
