// Ranks that share tokens: what they exchange, what falls to each, what each holds.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>

#include "sim/plan/stage_cost/groups/token_loads.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/plan/stage_cost/stage_costs.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/plan/roofline_problem.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::near;

// Attention between two products, for 8 tokens: 4 heads of 4 features, 2 of keys and values. Half precision, on devices
// with a link each to one switch, by which a byte takes a nanosecond.
struct SharedTokens : test::RooflineProblem {
  static constexpr double kAllTokens = 8, kKeys = 2 * 2 * 4;
  explicit SharedTokens(int devices, double rate = 1e3)
      : RooflineProblem(attention(), with_rates(test::World(star(devices)).platform, rate), half(), 1) {}

  static ModelGraph attention() {
    return test::workload("name: attention\ninput: {shape: [8, 16]}\nlayers:\n"
                          "  - {name: qkv, kind: linear, features: 32}\n"
                          "  - {name: attention, kind: attention, heads: 4, key_value_heads: 2, causal: true}\n"
                          "  - {name: projection, kind: linear, features: 16}\n");
  }

  static Training half() {
    Training training;
    training.global_batch = 2;
    training.precision = Precision::fp16;
    return training;
  }
  // Devices that compute so many operations a second, whatever they are.
  static Platform with_rates(Platform platform, double rate) {
    for (auto& of_kind : platform.types.front().rates) {
      of_kind.fill(FlopsPerSecond{rate});
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

  StageCost stage(const Context& context, int devices) {
    Stage stage{.operators = {0, 1, 2}, .devices = {}, .context = context};
    for (int device = 0; device < devices; ++device) {
      stage.devices.push_back(device);
    }
    return cost_plan(problem, {.strategy = "", .stages = {stage}}).stages.front();
  }
};

std::vector<double> bytes_of(const GroupPass& pass) {
  std::vector<double> bytes;
  for (const PassExchange& one : pass.exchanges) {
    bytes.push_back(one.bytes.value);
  }
  return bytes;
}

std::vector<CollectiveKind> kinds_of(const GroupPass& pass) {
  std::vector<CollectiveKind> kinds;
  for (const PassExchange& one : pass.exchanges) {
    kinds.push_back(one.kind);
  }
  return kinds;
}

// A rank's keys and values of two samples take 2 x 8/4 x 16 x 2 bytes. Forward they go to each other rank: 3 steps.
// Backward also their gradients go round, one step behind, and one step more, home.
TEST_CASE("a ring passes keys and values on, and their gradients one step further", "[plan][context]") {
  SharedTokens world(4);
  const StageCost cost = world.stage({.ranks = 4}, 4);
  const GroupPasses& passes = *cost.groups.front().passes;
  const double block = 2 * SharedTokens::kAllTokens / 4 * SharedTokens::kKeys * 2;
  CHECK(bytes_of(passes.forward) == std::vector<double>{block, block, block});
  CHECK(bytes_of(passes.backward) == std::vector<double>{block, 2 * block, 2 * block, block, block});
  CHECK(kinds_of(passes.forward) == std::vector<CollectiveKind>(3, CollectiveKind::shift));
}

// The kernel of a step runs beside the next transfer. Of two ranks each half of the kernel, K, hides as much of the
// transfer: T - K/2 are left of it, or nothing. For the last gradient nothing computes.
TEST_CASE("what goes round is hidden behind kernels, but for the last gradient", "[plan][context]") {
  for (const double rate : {1e1, 1e4}) {
    SharedTokens world(2, rate);
    const StageCost cost = world.stage({.ranks = 2}, 2);
    const GroupPasses& passes = *cost.groups.front().passes;
    const double transfer = passes.forward.exchanges.front().seconds.value;
    const double kernel = (passes.of_operators.forward[1] - passes.forward.exchanged.all).value;
    CAPTURE(rate, transfer, kernel);
    CHECK(passes.forward.exchanged.all.value == near(std::max(0.0, transfer - kernel / 2)));
    CHECK((passes.forward.exchanged.all + passes.forward.exchanged.hidden).value == near(transfer));
    CHECK(passes.backward.exchanged.all >= passes.backward.exchanges.back().seconds * (1 - 1e-9));
  }
}

TEST_CASE("gathering and exchanging for heads move what their rules say", "[plan][context]") {
  SharedTokens world(2);
  const double keys = 2 * SharedTokens::kAllTokens * SharedTokens::kKeys * 2,
               all = 2 * SharedTokens::kAllTokens * 32 * 2, out = 2 * SharedTokens::kAllTokens * 16 * 2;
  const StageCost gathers = world.stage({.ranks = 2, .rule = ContextRule::all_gather}, 2);
  CHECK(bytes_of(gathers.groups.front().passes->forward) == std::vector<double>{keys});
  CHECK(bytes_of(gathers.groups.front().passes->backward) == std::vector<double>{keys, keys});
  CHECK(kinds_of(gathers.groups.front().passes->backward) ==
        std::vector{CollectiveKind::all_gather, CollectiveKind::reduce_scatter});
  // Each of two ranks brings its half of the tokens to an all-to-all.
  const StageCost swaps = world.stage({.ranks = 2, .rule = ContextRule::all_to_all, .heads = 2}, 2);
  CHECK(bytes_of(swaps.groups.front().passes->forward) == std::vector<double>{all / 2, out / 2});
  CHECK(bytes_of(swaps.groups.front().passes->backward) == std::vector<double>{out / 2, all / 2});
}

TEST_CASE("a context rank holds its tokens' activations and all parameters", "[plan][context]") {
  SharedTokens world(4);
  const StageCost alone = world.stage({}, 1);
  const StageCost shared = world.stage({.ranks = 4}, 4);
  CHECK(shared.replicas.front().memory.weights.value == alone.replicas.front().memory.weights.value);
  CHECK(shared.replicas.front().memory.per_micro_batch.value ==
        near(alone.replicas.front().memory.per_micro_batch.value / 4));
  CHECK(shared.gradients.value == alone.gradients.value); // reduced over all four
}

// Causal: of c parts the i-th sees those before it and half of itself, (2 i + 1) / c times an equal share. A zig-zag
// pairs the i-th of 2c with the i-th from the end: (2 i + 1 + 4 c - 2 i - 1) / 2c / 2 = 1 for all. With n tokens a half
// is (n + 1) / 2n of a part's square: the limit of many tokens.
TEST_CASE("a causal mask loads ranks by the tokens that they have", "[plan][context]") {
  const AttentionMask causal{.tokens = 1 << 20, .causal = true};
  const auto loads = token_loads(causal, {.ranks = 4, .order = TokenOrder::contiguous});
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(loads[rank] == Approx((2 * rank + 1) / 4.0).epsilon(1e-5));
  }
  for (const double load : token_loads(causal, {.ranks = 4})) {
    CHECK(load == near(1));
  }
  const AttentionMask all{.tokens = 1 << 10};
  CHECK(token_loads(all, {.ranks = 2, .order = TokenOrder::contiguous}) == std::vector<double>{1, 1});
}

// Two documents of half the tokens: contiguous ranks have one each, a zig-zag of two ranks gives one the beginning of
// the first and the end of the second, and the other the rest: of 4 quarters 1/4 + 3/4 and 3/4 + 1/4 of a document.
// One long document and many short ones: the rank of the long one's end waits for no one.
TEST_CASE("packed documents load ranks unequally, unless each is cut by itself", "[plan][context]") {
  const AttentionMask halves{.tokens = 1 << 12, .causal = true, .documents = {1 << 11, 1 << 11}};
  for (const TokenOrder order : {TokenOrder::contiguous, TokenOrder::zig_zag, TokenOrder::by_document}) {
    for (const double load : token_loads(halves, {.ranks = 2, .order = order})) {
      CHECK(load == near(1));
    }
  }
  AttentionMask unlike{.tokens = 1 << 12, .causal = true, .documents = {1 << 11}};
  unlike.documents.resize(1 + 8, 1 << 8);
  const auto zig_zag = token_loads(unlike, {.ranks = 2});
  const double half = 1 << 11, quarter = 1 << 10, shorter = 1 << 8;
  const double first = quarter * (quarter + 1) / 2, second = half * (half + 1) / 2 - first;
  const double rest = 4 * shorter * (shorter + 1) / 2; // in each of the last two quarters
  CHECK(zig_zag[0] == near((first + rest) / ((first + second) / 2 + rest)));
  CHECK(zig_zag[1] == near((second + rest) / ((first + second) / 2 + rest)));
  CHECK(token_loads(unlike, {.ranks = 2, .order = TokenOrder::by_document}) == std::vector<double>{1, 1});
}

// The last of the contiguous ranks computes 7/4 of an equal share of attention, the first 1/4.
TEST_CASE("a rank takes as long as its tokens need", "[plan][context]") {
  SharedTokens world(4);
  const auto attention = [&](TokenOrder order, int rank) {
    const StageCost cost = world.stage({.ranks = 4, .rule = ContextRule::all_gather, .order = order}, 4);
    const OperatorSeconds& of = cost.groups[rank].passes->of_operators;
    return (of.forward[1] - cost.groups[rank].passes->forward.exchanges.front().seconds).value;
  };
  const std::vector<double> loads =
      token_loads(*world.model.operators[1].mask, {.ranks = 4, .order = TokenOrder::contiguous});
  const double equal = attention(TokenOrder::zig_zag, 0);
  CHECK(attention(TokenOrder::contiguous, 0) == near(equal * loads[0]));
  CHECK(attention(TokenOrder::contiguous, 3) == near(equal * loads[3]));
}

TEST_CASE("what needs all tokens at once keeps them from being shared", "[plan][context]") {
  SharedTokens world(2);
  world.model.operators[1].signature->queries.reset(); // no attention, as a state space
  const auto split = split_tensors(world.problem, {0, 1, 2}, {.context = {.ranks = 2}});
  REQUIRE(std::holds_alternative<Infeasible>(split));
  CHECK(std::get<Infeasible>(split).reason == "operator '" + world.model.operators[1].name +
                                                  "' needs all tokens at once, so the context axis cannot share them");
}

TEST_CASE("what no operator has, or one does not tell, is not shared", "[plan][context][experts]") {
  SharedTokens world(2);
  const auto reason = [&](const StageAxes& axes) {
    return std::get<Infeasible>(split_tensors(world.problem, {0, 1, 2}, axes)).reason;
  };
  const std::string none = "expert 2 has no experts to share, since the model has none; allowed: 1";
  CHECK(reason({.experts = {2}}) == none);
  CHECK(reason({.degree = 4, .sequence = true, .experts = {2}}) == none); // no multiple of 4 would help
  world.model.operators[2].signature.reset();
  world.model.operators[2].type = "fold";
  CHECK(reason({.context = {.ranks = 2}}) ==
        "context 2 would share what operator '" + world.model.operators[2].name +
            "' (fold) does not tell: which of its dimensions are tokens or experts; "
            "allowed: 1");
}

} // namespace
} // namespace stagecraft
