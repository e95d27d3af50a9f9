// A block of a transformer on a tensor-parallel group, with and without sequence parallelism: parameters, memory and
// traffic by the formulas of the papers.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <numeric>
#include <string>

#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/plan/roofline_problem.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::near;

// A block of GPT-2 for s tokens of h features: attention, and a perceptron of 4 h. Half precision.
struct Block : test::RooflineProblem {
  static constexpr int s = 8, h = 16, heads = 4;
  static constexpr double tokens = s, width = h; // for formulas

  explicit Block(int devices, bool scatter_gather = false)
      : RooflineProblem(test::workload(text()), test::World(star(devices)).platform, half(scatter_gather), 1) {}

  TensorSplit split(const StageAxes& axis) const { return std::get<TensorSplit>(split_tensors(problem, all(), axis)); }
  std::vector<OperatorId> all() const {
    std::vector<OperatorId> operators(model.size());
    std::iota(operators.begin(), operators.end(), 0);
    return operators;
  }

  static Training half(bool scatter_gather = false) {
    Training training;
    training.scatter_gather = scatter_gather;
    training.global_batch = 1;
    training.precision = Precision::fp16;
    return training;
  }
  static test::Toy star(int devices) {
    test::Toy toy;
    toy.operators = {{{1}}};
    toy.devices.assign(devices, {0, 2, 1});
    return toy;
  }
  static std::string text() {
    const std::string features = std::to_string(h);
    return "name: block\ninput: {shape: [" + std::to_string(s) + ", " + features + "]}\nlayers:\n" +
           "  - {name: norm1, kind: layer_norm}\n"
           "  - {name: qkv, kind: linear, features: " +
           std::to_string(3 * h) + "}\n  - {name: attention, kind: attention, heads: " + std::to_string(heads) +
           ", causal: true}\n"
           "  - {name: projection, kind: linear, features: " +
           features +
           "}\n"
           "  - {name: drop1, kind: dropout}\n"
           "  - {name: add1, kind: add, inputs: [norm1, drop1]}\n"
           "  - {name: norm2, kind: layer_norm}\n"
           "  - {name: expand, kind: linear, features: " +
           std::to_string(4 * h) +
           "}\n"
           "  - {name: gelu, kind: gelu}\n"
           "  - {name: contract, kind: linear, features: " +
           features +
           "}\n"
           "  - {name: drop2, kind: dropout}\n"
           "  - {name: add2, kind: add, inputs: [add1, drop2]}\n";
  }
};

// What the whole block keeps on a device.
double stash_of(const Block& block, const StageAxes& axis) {
  const TensorSplit split = block.split(axis);
  double sum = 0;
  for (OperatorId op = 0; op < block.model.size(); ++op) {
    sum += block.problem.stash_bytes(op).value * split.operators[op].stash;
  }
  return sum;
}

// Korthikanti et al. 2022, equations 1, 2 and 4 without 5 a s/h for the scores, which the fused kernel never keeps: it
// keeps one number for each head and token instead.
TEST_CASE("a block keeps what Korthikanti et al. count", "[plan][tensor]") {
  const Block block(4);
  const double sbh = Block::tokens * Block::width; // one sample
  const double sums = 2.0 * Block::heads * Block::s;
  CHECK(stash_of(block, {1, false}) == near(34 * sbh + sums));
  CHECK(stash_of(block, {2, false}) == near((10 + 24 / 2.0) * sbh + sums / 2));
  CHECK(stash_of(block, {4, false}) == near((10 + 24 / 4.0) * sbh + sums / 4));
  CHECK(stash_of(block, {2, true}) == near(34 / 2.0 * sbh + sums / 2));
  CHECK(stash_of(block, {4, true}) == near(34 / 4.0 * sbh + sums / 4));
}

// Weights of 3 h², h², 4 h² and 4 h² and the biases of what shares outputs are divided. Norms, and the biases of what
// shares inputs, are not: 2 (2 h) + 2 h.
TEST_CASE("a device holds its part of a block's matrices and all of its vectors", "[plan][tensor]") {
  const Block block(4);
  constexpr double h = Block::width;
  for (const bool sequence : {false, true}) {
    const TensorSplit split = block.split({4, sequence});
    double parameters = 0;
    for (OperatorId op = 0; op < block.model.size(); ++op) {
      parameters += block.model.operators[op].parameters * split.operators[op].parameters;
    }
    CHECK(parameters == near((12 * h * h + 3 * h + 4 * h) / 4 + 6 * h));
  }
}

// Of a layer whose columns are divided only the gradient of the weights reads the input, which each device keeps its
// tokens of: it is gathered beside the gradient of the input, and what this leaves is added up beside the former. Of
// one whose rows are divided both read the gradient of the output.
TEST_CASE("under sequence parallelism each gradient of a product waits only for what it reads", "[plan][tensor]") {
  Block block(2);
  using When = Exchange::When;
  const auto exchanged = [&](OperatorId op) {
    std::map<CollectiveKind, When> list;
    const TensorSplit split = block.split({2, true});
    for (const Exchange& one : split.operators[static_cast<std::size_t>(op)].backward) {
      CHECK(list.emplace(one.kind, one.when).second);
    }
    return list;
  };
  constexpr OperatorId kExpand = 7, kContract = 9;
  REQUIRE(block.model.operators[kExpand].name == "expand");
  REQUIRE(block.model.operators[kContract].name == "contract");
  CHECK(exchanged(kExpand).at(CollectiveKind::all_gather) == When::before_weight);
  CHECK(exchanged(kExpand).at(CollectiveKind::reduce_scatter) == When::after_input);
  CHECK(exchanged(kContract).at(CollectiveKind::all_gather) == When::before);
  CHECK(exchanged(kContract).size() == 1);
  block.training.exchange_beside = false;
  CHECK(exchanged(kExpand).at(CollectiveKind::all_gather) == When::before);
  CHECK(exchanged(kExpand).at(CollectiveKind::reduce_scatter) == When::after);
}

// Two devices with links of 2 B/s and 1 s: of the s h elements of 2 B each gathers, or adds up, half in one step.
TEST_CASE("what only the gradient of the weights reads is gathered beside that of the inputs", "[plan][tensor]") {
  Block block(2);
  const RankShare expand = block.split({2, true}).operators[7];
  const Group pair = ring_of({0, 1}, block.router);
  const double exchange = Block::tokens * Block::width * 2 / 2 / 2 + 1;
  const auto backward = [&](double input, double weight) {
    return backward_seconds({Seconds{0}, Seconds{input}, Seconds{weight}}, expand, pair, 1).value;
  };
  CHECK(backward(0, 0) == near(2 * exchange));                            // one after the other, on the same links
  CHECK(backward(exchange + 5, exchange + 7) == near(2 * exchange + 12)); // both hidden
  CHECK(backward(exchange - 5, exchange + 7) == near(2 * exchange + 7));  // the gather is waited for
}

struct Traffic {
  int all_reduces = 0, gathers = 0, scatters = 0;
  bool operator==(const Traffic&) const = default;
};

// Every exchange is of a tensor of s h elements of two bytes.
Traffic traffic_of(const TensorSplit& split, std::vector<Exchange> RankShare::*pass) {
  Traffic traffic;
  for (const RankShare& share : split.operators) {
    for (const Exchange& exchange : share.*pass) {
      CHECK(exchange.bytes.value == 2 * Block::tokens * Block::width);
      int& count = exchange.kind == CollectiveKind::all_reduce   ? traffic.all_reduces
                   : exchange.kind == CollectiveKind::all_gather ? traffic.gathers
                                                                 : traffic.scatters;
      ++count;
    }
  }
  return traffic;
}

// Shoeybi et al. 2019, figure 4: two all-reduces in each pass. Korthikanti et al. 2022, section 4.2: gathers and
// reduce-scatters in their place, and backward gathers once more what forward did not keep whole.
TEST_CASE("a block exchanges what Megatron-LM's papers say", "[plan][tensor]") {
  const Block block(4);
  const TensorSplit plain = block.split({4, false});
  CHECK(traffic_of(plain, &RankShare::forward) == Traffic{.all_reduces = 2});
  CHECK(traffic_of(plain, &RankShare::backward) == Traffic{.all_reduces = 2});
  const TensorSplit sequence = block.split({4, true});
  CHECK(traffic_of(sequence, &RankShare::forward) == Traffic{.gathers = 2, .scatters = 2});
  CHECK(traffic_of(sequence, &RankShare::backward) == Traffic{.gathers = 4, .scatters = 2});
}

// Gradients of the norms' weights, and of biases added after a reduction, are sums over tokens, of which each device
// has its own: two norms of 2 h, two biases of h, of four bytes each.
TEST_CASE("under sequence parallelism each device has a term of the vectors' gradients", "[plan][tensor]") {
  const Block block(4);
  const auto terms = [&](bool sequence) {
    double sum = 0;
    for (const RankShare& share : block.split({4, sequence}).operators) {
      sum += share.terms.value;
    }
    return sum;
  };
  CHECK(terms(false) == 0);
  CHECK(terms(true) == near(6 * Block::width * parameter_bytes(Block::half()).gradient));
}

Plan plan_of(const Block& block, const StageAxes& first, const StageAxes& second) {
  Plan plan;
  const std::vector<OperatorId> all = block.all();
  Stage one{.operators = {all.begin(), all.begin() + 6}};
  Stage two{.operators = {all.begin() + 6, all.end()}};
  for (int device = 0; device < first.degree; ++device) {
    one.devices.push_back(device);
  }
  for (int device = 0; device < second.degree; ++device) {
    two.devices.push_back(first.degree + device);
  }
  one.tensor_parallel = first.degree;
  one.sequence_parallel = first.sequence;
  two.tensor_parallel = second.degree;
  two.sequence_parallel = second.sequence;
  plan.stages = {one, two};
  return plan;
}

// [rank of the sender][rank of the receiver], in quarters of the tensor.
std::vector<std::vector<double>> quarters_sent(const StageCost& from, const StageCost& to) {
  std::vector<std::vector<double>> sent(from.tensor_parallel, std::vector<double>(to.tensor_parallel));
  for (int i = 0; i < from.tensor_parallel; ++i) {
    for (int j = 0; j < to.tensor_parallel; ++j) {
      sent[i][j] = 4 * part_sent(from, i, to, j);
    }
  }
  return sent;
}

TEST_CASE("between stages each device sends the tokens that it has to those that need them", "[plan][tensor]") {
  using Sent = std::vector<std::vector<double>>;
  const Block block(8);
  const auto sent = [&](const StageAxes& first, const StageAxes& second) {
    const PlanCost cost = cost_plan(block.problem, plan_of(block, first, second));
    return std::pair(quarters_sent(cost.stages[0], cost.stages[1]), quarters_sent(cost.stages[1], cost.stages[0]));
  };
  // Both cut by tokens: each to its own number.
  CHECK(sent({2, true}, {2, true}) == std::pair(Sent{{2, 0}, {0, 2}}, Sent{{2, 0}, {0, 2}}));
  CHECK(sent({4, true}, {2, true}).first == Sent{{1, 0}, {1, 0}, {0, 1}, {0, 1}});
  // Cut on one side only: everyone with a part sends it to all; one who has all sends each its part.
  CHECK(sent({2, true}, {2, false}) == std::pair(Sent{{2, 2}, {2, 2}}, Sent{{2, 0}, {0, 2}}));
  CHECK(sent({1, false}, {4, true}) == std::pair(Sent{{1, 1, 1, 1}}, Sent{{1}, {1}, {1}, {1}}));
  // Whole on both: from the rank of the same number.
  CHECK(sent({2, false}, {4, false}).first == Sent{{4, 0, 4, 0}, {0, 4, 0, 4}});
}

// Narayanan et al. 2021, section 4.1. Between the stages goes what two devices of each have whole, of 2 s h bytes: half
// of it by each, and then a gather of both halves before the pass that reads it.
TEST_CASE("a group that has a tensor whole may send parts of it and another gathers them", "[plan][tensor]") {
  using Sent = std::vector<std::vector<double>>;
  const Block block(8, true);
  const auto cost = [&](const StageAxes& first, const StageAxes& second) {
    return cost_plan(block.problem, plan_of(block, first, second));
  };
  const auto sent = [&](const StageAxes& first, const StageAxes& second) {
    const PlanCost costs = cost(first, second);
    return quarters_sent(costs.stages[0], costs.stages[1]);
  };
  CHECK(sent({2, false}, {2, false}) == Sent{{2, 0}, {0, 2}});
  CHECK(sent({2, false}, {4, false}) == Sent{{1, 1, 0, 0}, {0, 0, 1, 1}});
  CHECK(sent({1, false}, {2, false}) == Sent{{2, 2}});
  CHECK(sent({2, true}, {2, true}) == Sent{{2, 0}, {0, 2}}); // tokens of its own, which nobody gathers
  const PlanCost pair = cost({2, false}, {2, false}), shared = cost({2, true}, {2, true});
  const double gather = Block::tokens * Block::width * 2 / 2 / 2 + 1;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const ReplicaCost &first = pair.stages[0].replicas[rank], &second = pair.stages[1].replicas[rank];
    CHECK(second.forward_hand_over.before.value == near(gather));
    CHECK(first.backward_hand_over.before.value == near(gather));
    CHECK(first.forward_hand_over.all().value == 0);
    CHECK(second.backward_hand_over.all().value == 0);
    CHECK(shared.stages[1].replicas[rank].forward_hand_over.all().value == 0);
  }
}

TEST_CASE("heads that do not divide are refused with the nearest degree", "[plan][tensor]") {
  const Block block(3);
  const auto split = split_tensors(block.problem, block.all(), {3, false});
  REQUIRE(std::holds_alternative<Infeasible>(split));
  CHECK(std::get<Infeasible>(split).reason ==
        "4 key-value heads do not divide over 3 tensor-parallel ranks; nearest that does: 2");
}

} // namespace
} // namespace stagecraft
