// Training settings: what is read, chosen and refused.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/training.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::error_of;

Training training(const std::string& text) { return load_training(yaml::parse(text, "t.yaml")); }

TEST_CASE("a training mapping is read whole", "[workload]") {
  const Training read = training("{global_batch: 256, micro_batches: [4, 8], optimizer: adam, precision: fp16, "
                                 "recompute: full, step: local, blocking_sends: true, chunks: 3}");
  CHECK(read.global_batch == 256);
  CHECK(read.micro_batches == std::vector<int>{4, 8});
  CHECK(read.optimizer->name == "adam");
  CHECK(read.precision == Precision::fp16);
  CHECK(read.recompute.what == Recompute::full);
  CHECK(read.step == StepMode::local);
  CHECK(read.blocking_sends == BlockingSends::always);
  CHECK(read.chunks == 3);
}

TEST_CASE("keys that a training mapping leaves out have the header's defaults", "[workload]") {
  const Training read = training("{global_batch: 6}");
  CHECK(read.micro_batches == std::vector<int>{1});
  CHECK(read.optimizer->name == "momentum");
  CHECK(read.precision == Precision::fp32);
  CHECK(training("{global_batch: 6, micro_batches: 3}").micro_batches == std::vector<int>{3});
}

TEST_CASE("the first blocks of a stage are blocks one by one", "[workload]") {
  const RecomputeChoice first = training("{recompute: {first: 3}}").recompute;
  CHECK(first.what == Recompute::selective);
  CHECK(first.blocks == 1);
  CHECK(first.first == 3);
  CHECK(!first.rule.early);
  CHECK(training("{recompute: {blocks: 2, first: 3}}").recompute.blocks == 2);
  CHECK(training("{recompute: blocks}").recompute.first == 0);
  CHECK_THAT(error_of([] { training("{recompute: {what: full, first: 3}}"); }),
             Catch::Contains("'first' says what is recomputed; allowed: what: blocks"));
  CHECK_THAT(error_of([] { training("{recompute: {first: 0}}"); }), Catch::Contains("'first'"));
}

TEST_CASE("selective recompute by itself is that of the core of attention", "[workload]") {
  for (const char* text : {"selective", "{what: selective}", "{modules: [core_attn]}"}) {
    CAPTURE(text);
    const RecomputeChoice choice = training(std::string("{recompute: ") + text + "}").recompute;
    CHECK(choice.what == Recompute::selective);
    CHECK(choice.modules == std::vector<std::string>{"core_attn"});
    CHECK(choice.kinds.empty());
    CHECK(choice.operators.empty());
    CHECK(choice.blocks == 0);
    CHECK(!choice.when_given);
    CHECK(choice.rule.early);
  }
  CHECK(training("{recompute: {what: selective, kinds: [elementwise]}}").recompute.modules.empty());
  CHECK(training("{recompute: {what: selective, when: lazy}}").recompute.when_given);
  CHECK_THAT(error_of([] { training("{recompute: {what: selective, operators: []}}"); }),
             Catch::Contains("'selective' names no operators"));
}

TEST_CASE("what clipping and memory are by default, and what they may be", "[workload]") {
  CHECK(!training("{}").clip_gradients);
  CHECK(!training("{}").memory.any());
  CHECK(training("{clip_gradients: true}").clip_gradients);
  CHECK_THAT(error_of([] { training("{clip_gradients: true, step: local}"); }),
             Catch::Contains("allowed: 'step' barrier, or 'clip_gradients' false"));
  CHECK(!training("{clip_gradients: false, step: local}").clip_gradients);
  const MemoryReserve reserve = training("{memory: {context: 1 GB, communicator: 3 MB, fragmentation: 0.1}}").memory;
  CHECK(reserve.context.value == 1e9);
  CHECK(reserve.communicator.value == 3e6);
  CHECK(reserve.fragmentation == 0.1);
  CHECK_THAT(error_of([] { training("{memory: {contexts: 1 GB}}"); }), Catch::Contains("unknown key 'contexts'"));
  CHECK_THAT(error_of([] { training("{memory: {fragmentation: 1.5}}"); }), Catch::Contains("0 to 1"));
}

TEST_CASE("states of an optimiser are of whole bytes, and remainders are of weights in bf16", "[workload]") {
  CHECK(training("{}").state_precision == Precision::fp32);
  CHECK(training("{state_precision: fp8}").state_precision == Precision::fp8);
  CHECK_THAT(error_of([] { training("{state_precision: nvfp4}"); }), Catch::Contains("allowed: fp32, bf16, fp16, fp8"));
  CHECK(training("{precision: bf16, master_remainders: true}").master_remainders);
  CHECK_THAT(error_of([] { training("{precision: fp16, master_remainders: true}"); }),
             Catch::Contains("allowed: with 'precision' bf16"));
}

TEST_CASE("an all-reduce is one of those that are known", "[workload]") {
  CHECK(training("{global_batch: 6}").all_reduce->name == "auto");
  CHECK(training("{global_batch: 6, all_reduce: tree}").all_reduce->name == "tree");
  CHECK_THAT(test::error_of([] { training("{global_batch: 6, all_reduce: pairs}"); }),
             Catch::StartsWith("t.yaml:1:31: ") && Catch::Contains("auto, ring, tree, hierarchical, nvls"));
}

TEST_CASE("a number of micro-batches must divide the global batch", "[workload]") {
  // Divisors of 60 about 7: 6 below, 10 above. Of 7 about 100: 7 below, none above.
  CHECK(test::error_of([] { training("{global_batch: 60, micro_batches: [4, 7]}"); }) ==
        "t.yaml:1:39: 'micro_batches' 7 does not divide global_batch 60; nearest that do: 6 or 10");
  CHECK_THAT(test::error_of([] { training("{global_batch: 7, micro_batches: 100}"); }),
             Catch::EndsWith("nearest that do: 7"));
  CHECK_THAT(test::error_of([] { training("{global_batch: 8, micro_batches: [2, 2]}"); }),
             Catch::StartsWith("t.yaml:1:38: 'micro_batches' lists 2 twice"));
}

TEST_CASE("auto tries the divisors of the batch up to 64", "[workload]") {
  CHECK(training("{global_batch: 12, micro_batches: auto}").micro_batches == std::vector<int>{1, 2, 3, 4, 6, 12});
  CHECK(training("{global_batch: 192, micro_batches: auto}").micro_batches.back() == 64); // not 96 and 192
  CHECK_THAT(test::error_of([] { load_training(yaml::parse("{micro_batches: auto}", "t.yaml"), true); }),
             Catch::Contains("has no batch to divide"));
}

TEST_CASE("unknown keys and names of training are refused", "[workload]") {
  CHECK_THAT(test::error_of([] { training("{globl_batch: 8}"); }), Catch::Contains("did you mean 'global_batch'"));
  CHECK_THAT(test::error_of([] { training("{optimizer: adamw}"); }), Catch::Contains("did you mean 'adam'"));
  CHECK_THAT(test::error_of([] { training("{global_batch: 0}"); }), Catch::StartsWith("t.yaml:1:16:"));
  CHECK_THAT(test::error_of([] { training("{chunks: 02}"); }), Catch::StartsWith("t.yaml:1:10:"));
}

} // namespace
} // namespace stagecraft
