// Given degrees: what is read, how they fill the devices, where each rank stands, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "sim/workload/training/parallel.hpp"
#include "sim/workload/training/training.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

Training training(const std::string& text) { return load_training(yaml::parse(text, "t.yaml")); }

Mesh mesh(const ParallelDegrees& degrees, int devices) { return std::get<Mesh>(mesh_of(degrees, devices)); }

std::string refusal(const ParallelDegrees& degrees, int devices) {
  return std::get<Infeasible>(mesh_of(degrees, devices)).reason;
}

TEST_CASE("a mapping of degrees is read whole", "[workload][parallel]") {
  const Training read = training("{parallel: {tensor: 2, sequence: true, data: 3, pipeline: 4, interleave: 5, "
                                 "order: tensor-pipeline-data, context: 1, expert: 1, expert_tensor: 1, zero: 0}}");
  REQUIRE(read.parallel);
  CHECK(read.parallel->tensor == 2);
  CHECK(read.parallel->sequence);
  CHECK(read.parallel->data == 3);
  CHECK(read.parallel->pipeline == 4);
  CHECK(read.parallel->order == RankOrder::tensor_pipeline_data);
  CHECK(read.chunks == 5);
  CHECK_FALSE(training("{global_batch: 4}").parallel);
}

TEST_CASE("what replicas share is read, each key where it has a meaning", "[workload][parallel][zero]") {
  const auto rule = [](const std::string& keys) { return training("{parallel: {" + keys + "}}").parallel->sharding; };
  CHECK(rule("data: 2").zero == Zero::none);
  CHECK(rule("zero: 1").gather == Gather::after_step);
  const ShardingRule hybrid = rule("zero: 3, shard: 4, reshard: after-backward, reduce: last-micro-batch, prefetch: 2");
  CHECK(hybrid.zero == Zero::weights);
  CHECK(hybrid.group == 4);
  CHECK(hybrid.reshard == Reshard::after_backward);
  CHECK(hybrid.reduce == Reduce::last_micro_batch);
  CHECK(hybrid.prefetch == 2);
  CHECK(rule("zero: 1, gather: before-use, prefetch: 0").prefetch == 0);
  CHECK(rule("zero: 1, gather: broadcasts, shard: 2").gather == Gather::broadcasts);
  CHECK_THROWS_WITH(rule("zero: 2, gather: broadcasts"), Catch::Contains("allowed: with 'zero' 1"));
  CHECK_THROWS_WITH(rule("zero: 1, gather: broadcasts, prefetch: 2"), Catch::Contains("'gather: before-use'"));
  CHECK_FALSE(rule("zero: 3").reshard); // as frameworks do, by the other degrees
  CHECK_THROWS_WITH(rule("zero: 4"), Catch::Contains("[0, 3]"));
  CHECK(rule("zero: 1, shard: 2").group == 2);
  CHECK_THROWS_WITH(rule("shard: 2"), Catch::Contains("'shard' says how many replicas share states, gradients or "
                                                      "weights, which needs 'zero' 1 or more; it is 0"));
  CHECK_THROWS_WITH(rule("zero: 2, quantized_weights: int8"), Catch::Contains("which needs 'zero' 3; it is 2"));
  CHECK_THROWS_WITH(rule("zero: 2, reshard: after-step"), Catch::Contains("which needs 'zero' 3; it is 2"));
  CHECK_THROWS_WITH(rule("reduce: each-micro-batch"), Catch::Contains("which needs 'zero' 2 or more; it is 0"));
  CHECK_THROWS_WITH(rule("zero: 2, prefetch: 2"), Catch::Contains("allowed: with 'gather: before-use', or 'zero' 3"));
  CHECK_THROWS_WITH(rule("zero: 3, gather: after-step"),
                    Catch::Contains("'reshard' says when they are given up again"));
  CHECK_THROWS_WITH(rule("zero: 3, reshard: never"), Catch::Contains("after-forward"));
}

TEST_CASE("replicas that share divide those that there are", "[workload][parallel][zero]") {
  CHECK(mesh({.sharding = {.zero = Zero::weights, .group = 4}}, 8).data == 8);
  CHECK(refusal({.sharding = {.zero = Zero::weights, .group = 3}}, 8) ==
        "training.parallel: 'shard' 3 does not divide the 8 replicas; nearest that do: 2 or 4");
}

// TorchTitan's enable_sequence_parallel is on unless told otherwise; Megatron-LM's --sequence-parallel is off.
TEST_CASE("each rule has its own default of sharing tokens", "[workload][parallel]") {
  CHECK(training("{parallel: {tensor: 2}}").parallel->tensor_rule == TensorRule::megatron);
  for (const TensorRuleRow& row : kTensorRules) {
    const std::string rule = "{parallel: {tensor: 2, tensor_rule: " + std::string(row.name);
    CHECK(training(rule + "}}").parallel->tensor_rule == row.rule);
    CHECK(training(rule + "}}").parallel->sequence == row.name.starts_with("torchtitan"));
    CHECK_FALSE(training(rule + ", sequence: false}}").parallel->sequence);
    CHECK(training(rule + ", sequence: true}}").parallel->sequence);
    CHECK(&row_of(row.rule) == &row);
  }
  CHECK(mesh({.tensor = 2, .tensor_rule = TensorRule::search}, 8).tensor_rule == TensorRule::search);
  CHECK(mesh({.tensor = 1, .tensor_rule = TensorRule::search}, 8).tensor_rule == TensorRule::megatron);
}

// Megatron-LM: data parallelism takes what the other degrees leave, and those are 1 unless given.
TEST_CASE("a degree left out takes what the devices leave", "[workload][parallel]") {
  CHECK(mesh({.tensor = 2, .pipeline = 2}, 8).data == 2);
  CHECK(mesh({.tensor = 2}, 8).data == 4);
  CHECK(mesh({.tensor = 2}, 8).pipeline == 1);
  CHECK(mesh({.tensor = 2, .data = 2}, 8).pipeline == 2);
  CHECK(mesh({.tensor = 2, .data = 2, .pipeline = 2}, 8).pipeline == 2);
  CHECK_FALSE(mesh({.tensor = 1, .sequence = true}, 8).sequence); // one device shares nothing
  CHECK(mesh({.tensor = 2, .sequence = true}, 8).sequence);
}

TEST_CASE("degrees that do not fill the devices are refused with the nearest that do", "[workload][parallel]") {
  CHECK(refusal({.tensor = 3}, 8) ==
        "training.parallel: tensor 3 = 3 does not divide 8 devices; nearest that do: 2 or 4");
  CHECK(refusal({.tensor = 4, .pipeline = 4}, 8) ==
        "training.parallel asks for tensor 4 x pipeline 4 = 16 ranks, and there are 8 devices; allowed: at most that");
  CHECK(refusal({.tensor = 2, .data = 1, .pipeline = 2}, 8) ==
        "training.parallel: tensor 2 x data 1 x pipeline 2 takes 4 devices of 8; nearest that takes all: data 2");
}

// Both orders count tensor ranks first. Of 2 x 3 x 2 ranks, the replica after (stage 1, replica 0) is 2 further on
// where a stage's ranks are neighbours, and 2 stages x 2 further on where a replica's are.
TEST_CASE("every rank has a place of its own, tensor ranks side by side", "[workload][parallel]") {
  for (const RankOrderRow& row : kRankOrders) {
    CAPTURE(row.name);
    const Mesh one = mesh({.tensor = 2, .data = 3, .pipeline = 2, .order = row.order}, 12);
    std::set<int> places;
    for (int stage = 0; stage < 2; ++stage) {
      for (int replica = 0; replica < 3; ++replica) {
        places.insert(one.place(stage, replica, 0, 0));
        places.insert(one.place(stage, replica, 0, 1));
        CHECK(one.place(stage, replica, 0, 1) == one.place(stage, replica, 0, 0) + 1);
      }
    }
    CHECK(places.size() == 12);
    CHECK(*places.rbegin() == 11);
  }
  CHECK(mesh({.tensor = 2, .data = 3, .pipeline = 2}, 12).place(1, 1, 0, 0) == (1 * 3 + 1) * 2);
  CHECK(mesh({.tensor = 2, .data = 3, .pipeline = 2, .order = RankOrder::tensor_pipeline_data}, 12).place(1, 1, 0, 0) ==
        (1 * 2 + 1) * 2);
}

// Two replicas of ranks of 3 and 1 devices: the second replica of the second rank is device 2 x 3 + 1 where a stage's
// ranks are neighbours, and 4 + 3 where a replica's are.
TEST_CASE("ranks of several sizes have a place for each device", "[workload][parallel]") {
  for (const RankOrderRow& row : kRankOrders) {
    CAPTURE(row.name);
    const Mesh uneven = mesh({.pipeline = 2, .order = row.order, .ranks = {{3, true}, {1, false}}}, 8);
    CHECK(uneven.data == 2);
    std::set<int> places;
    for (int replica = 0; replica < 2; ++replica) {
      for (int tensor = 0; tensor < 3; ++tensor) {
        places.insert(uneven.place(0, replica, 0, tensor));
      }
      places.insert(uneven.place(1, replica, 0, 0));
    }
    CHECK(places.size() == 8);
    CHECK(*places.rbegin() == 7);
    CHECK(uneven.place(1, 1, 0, 0) == 7);
    CHECK(uneven.place(1, 0, 0, 0) == (row.order == RankOrder::tensor_data_pipeline ? 2 * 3 : 3));
  }
  CHECK(refusal({.pipeline = 2, .ranks = {{4}, {2}}}, 8) ==
        "training.parallel: ranks of 4 + 2 = 6 does not divide 8 devices; nearest that do: 4 or 8");
  CHECK(mesh({.tensor_rule = TensorRule::search, .pipeline = 2, .ranks = {{1}, {2}}}, 3).tensor_rule ==
        TensorRule::search);
}

TEST_CASE("degrees of ranks are those of all unless said otherwise", "[workload][parallel]") {
  const Training read =
      training("{parallel: {tensor: 4, sequence: true, ranks: [{}, {tensor: 2}, {sequence: false}, {tensor: 1}], "
               "shares: by-speed}}");
  REQUIRE(read.parallel);
  CHECK(read.parallel->pipeline == 4);
  CHECK(read.parallel->shares == ReplicaShares::by_speed);
  std::vector<std::pair<int, bool>> ranks;
  for (const RankDegrees& rank : read.parallel->ranks) {
    ranks.emplace_back(rank.tensor, rank.sequence);
  }
  CHECK(ranks == std::vector<std::pair<int, bool>>{{4, true}, {2, true}, {4, false}, {1, false}});
}

// Of 2 tensor x 2 context x 3 data ranks the context ranks are neighbours, a tensor group apart.
TEST_CASE("context ranks stand between tensor ranks and replicas", "[workload][parallel]") {
  const Mesh one = mesh({.tensor = 2, .context = {.ranks = 2}, .data = 3}, 12);
  CHECK(one.place(0, 0, 1, 0) == 2);
  CHECK(one.place(0, 1, 0, 0) == 4);
  CHECK(one.place(0, 2, 1, 1) == 11);
  CHECK(mesh({.tensor = 2, .context = {.ranks = 2}}, 12).data == 3);
  CHECK(std::get<Infeasible>(mesh_of({.tensor = 2, .context = {.ranks = 4}}, 12)).reason ==
        "training.parallel: tensor 2 x context 4 = 8 does not divide 12 devices; nearest that do: 6 or 12");
}

TEST_CASE("how context ranks share attention is read with their number", "[workload][parallel]") {
  const auto context = [](const std::string& keys) { return training("{parallel: {" + keys + "}}").parallel->context; };
  CHECK(context("context: 4") == Context{4, ContextRule::ring, 1, TokenOrder::zig_zag});
  CHECK(context("context: 4, context_rule: all-to-all") == Context{4, ContextRule::all_to_all, 4, TokenOrder::zig_zag});
  CHECK(context("context: 4, context_rule: both, context_heads: 2, context_order: contiguous") ==
        Context{4, ContextRule::both, 2, TokenOrder::contiguous});
  CHECK(context("context: 1, context_rule: all-gather") == Context{}); // nothing is shared
  CHECK(test::error_of([&] { context("context: 4, context_rule: both, context_heads: 3"); }) ==
        "t.yaml:1:60: 'context_heads' 3 does not divide the 4 ranks of the context axis; nearest that do: 2 or 4");
  CHECK_THAT(test::error_of([&] { context("context: 4, context_heads: 2"); }),
             Catch::Contains("allowed: with 'context_rule: both'"));
  CHECK_THAT(test::error_of([&] { context("context: 4, context_rule: rings"); }), Catch::Contains("did you mean"));
}

TEST_CASE("degrees that are not modelled, or said twice, are refused where they stand", "[workload][parallel]") {
  CHECK_THAT(test::error_of([] { training("{parallel: {zero: 4}}"); }), Catch::Contains("[0, 3]"));
  CHECK_THAT(test::error_of([] { training("{parallel: {expert: 0}}"); }), Catch::StartsWith("t.yaml:1:21:"));
  CHECK_THAT(test::error_of([] { training("{parallel: {tensor: 0}}"); }), Catch::StartsWith("t.yaml:1:21:"));
  CHECK_THAT(test::error_of([] { training("{parallel: {tensors: 2}}"); }), Catch::Contains("did you mean 'tensor'"));
  CHECK_THAT(test::error_of([] { training("{parallel: {order: data-first}}"); }), Catch::StartsWith("t.yaml:1:20:"));
  CHECK_THAT(test::error_of([] { training("{parallel: {tensor: 2, tensor_rule: megatrom}}"); }),
             Catch::StartsWith("t.yaml:1:37:") &&
                 Catch::Contains("megatron, torchtitan, torchtitan-whole-loss, search"));
  CHECK_THAT(test::error_of([] { training("{chunks: 3, parallel: {interleave: 2}}"); }),
             Catch::Contains("'chunks' and 'parallel.interleave' both say"));
  CHECK(training("{chunks: 2, parallel: {interleave: 2}}").chunks == 2); // they agree
}

} // namespace
} // namespace stagecraft
