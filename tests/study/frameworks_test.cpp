// What recipes of frameworks say of a training: the host that launches, kernels within a run, attention as it was.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/workload/attention_kernels.hpp"
#include "sim/workload/model_flops.hpp"
#include "sim/workload/training/framework.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

// One device and micro-batch: two products and two others, 1 s forward and 2 s backward each.
double gelu_seconds(const std::string& training) {
  const std::string text = "model: gelu.yaml\nplatform: {devices: 1, latency: 1 us}\ntraining: {global_batch: 1, "
                           "optimizer: sgd" +
                           training + "}\ncompare: {strategies: [single], schedules: [gpipe]}\n";
  const Comparison comparison = compare_text(text).comparison;
  REQUIRE(comparison.runs.size() == 1);
  REQUIRE(comparison.runs.front().feasible);
  return comparison.runs.front().metrics.iteration.value;
}

TEST_CASE("a pass takes no less than launching its kernels", "[study][frameworks]") {
  const double plain = gelu_seconds("");
  CHECK(plain == near(12));
  // Four kernels forward; backward six, since products have one for each gradient.
  CHECK(gelu_seconds(", launches: {each: 1 s}") == near(plain)); // 4 and 6 s of launches under 4 and 8 s of kernels
  CHECK(gelu_seconds(", launches: {each: 1.2 s}") == near(4 * 1.2 + 8));
  CHECK(gelu_seconds(", launches: {each: 3 s}") == near(4 * 3 + 6 * 3));
  CHECK(gelu_seconds(", launches: {each: 1 s, kernels: 3}") == near(4 * 3 + 6 * 3));
}

// Four operators of 1 s forward and 2 s backward on two devices that 4 MB take 1 s between. A device that waits for
// what it sends is later under any schedule; each choice says under which it does.
TEST_CASE("devices wait for what they send under the schedules that a training says", "[study][frameworks]") {
  const auto seconds = [](const std::string& schedule, const std::string& sends) {
    const std::string text = "model: chain.yaml\nplatform: {devices: 2, bandwidth: 4 MB/s, latency: 1 ns}\ntraining: "
                             "{global_batch: 8, micro_batches: 8, optimizer: sgd, chunks: 2, blocking_sends: " +
                             sends + "}\ncompare: {strategies: [uniform], schedules: [" + schedule +
                             "]}\nengine: analytic\n";
    const Comparison comparison = compare_text(text).comparison;
    REQUIRE(comparison.runs.front().feasible);
    return comparison.runs.front().metrics.iteration.value;
  };
  for (const std::string schedule : {"1f1b", "interleaved", "zb-h1"}) {
    INFO(schedule);
    const double free = seconds(schedule, "false"), blocked = seconds(schedule, "true");
    CHECK(free < blocked - 0.1);
    CHECK(seconds(schedule, "unsplit") == near(schedule == "zb-h1" ? free : blocked));
    CHECK(seconds(schedule, "non-interleaved") == near(schedule == "1f1b" ? blocked : free));
  }
}

// Two stages of 2 s forward and 4 s backward, whose transfers take no time: (M / f + P - 1)(tf + tb) for each fill.
TEST_CASE("a pipeline may fill several times in an iteration", "[study][frameworks]") {
  const auto run = [](const std::string& fills) {
    const std::string text = "model: chain.yaml\nplatform: {devices: 2, bandwidth: 1 TB/s, latency: 1 ns}\ntraining: "
                             "{global_batch: 8, micro_batches: 8, optimizer: sgd, pipeline_fills: " +
                             fills + "}\ncompare: {strategies: [uniform], schedules: [1f1b]}\nengine: analytic\n";
    return compare_text(text).comparison.runs.front();
  };
  for (const int fills : {1, 2, 4, 8}) {
    CAPTURE(fills);
    const Run one = run(std::to_string(fills));
    REQUIRE(one.feasible);
    CHECK(one.metrics.iteration.value == Approx(fills * (8 / fills + 1) * 6).epsilon(1e-3));
    CHECK(one.estimate.value == Approx(one.metrics.iteration.value).epsilon(1e-3));
  }
  CHECK(run("3").why_not == "8 micro-batches are no multiple of 'pipeline_fills' 3");
}

// Two products without biases, so two tensors, for each of which SGD launches three kernels.
TEST_CASE("a step tensor by tensor waits for its launches, which begin with those of backward", "[study][frameworks]") {
  // Backward's six launches take 6 of its 8 s, so that two of the step's six are launched when it ends.
  CHECK(gelu_seconds(", launches: {each: 1 s, by_tensor: true}") == near(4 + 8 + 2 * 3 - 2));
  // One that reads the loss when backward has ended launches all of them then.
  CHECK(gelu_seconds(", launches: {each: 1 s, by_tensor: true, waits: true}") == near(4 + 8 + 2 * 3));
  // A host that is late with backward is late with all of the step.
  CHECK(gelu_seconds(", launches: {each: 3 s, by_tensor: true}") == near(4 * 3 + 6 * 3 + 2 * 3 * 3));
}

TEST_CASE("a step in fp16 tensor by tensor waits to see whether a gradient overflowed", "[study][frameworks]") {
  const auto waits = [](const std::string& training) {
    return load_training(yaml::parse("{global_batch: 8, " + training + "}", "study.yaml")).launches.waits;
  };
  CHECK(waits("precision: fp16, launches: {each: 1 us, by_tensor: true}"));
  CHECK_FALSE(waits("precision: fp16, launches: {each: 1 us, by_tensor: true, waits: false}"));
  CHECK_FALSE(waits("precision: fp16, launches: {each: 1 us}"));
  CHECK_FALSE(waits("precision: bf16, launches: {each: 1 us, by_tensor: true}"));
}

TEST_CASE("captured kernels are not launched one by one", "[study][frameworks]") {
  const auto seconds = [](const std::string& captured) {
    return gelu_seconds(", launches: {each: 3 s, captured: [" + captured + "]}");
  };
  CHECK(seconds("full_iteration") == near(gelu_seconds("")));
  CHECK(seconds("") == near(4 * 3 + 6 * 3));
  CHECK(seconds("layer, attn") == near(seconds(""))); // the model has no numbered blocks
  CHECK_THAT(error_of([&] { seconds("atn"); }), Contains("unknown module 'atn'") && Contains("attn"));
}

TEST_CASE("a line names captured modules that the model lacks", "[study][frameworks]") {
  const Study dense = study("model: small-transformer.yaml\nplatform: dgx-h100\ntraining: {launches: {each: 5 us, "
                            "captured: [attn, moe]}}\n");
  CHECK(dense.training.unheeded == std::vector<std::string>{"captured graphs of module moe (the model has none)"});
}

// Four layers with two products of eight experts each, under launches so slow that nothing else counts.
TEST_CASE("a host launches each expert of a mixture by itself where a framework does", "[study][frameworks]") {
  const auto seconds = [](const std::string& by_expert, int expert) {
    const std::string text =
        "model: small-mixture.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: 8, "
        "micro_batch_size: 1, precision: bf16, optimizer: sgd, launches: {each: 10 ms" +
        by_expert + "}, parallel: {tensor: 1, pipeline: 1, expert: " + std::to_string(expert) +
        "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
    return compare_text(text).comparison.runs.front().metrics.iteration.value;
  };
  // A product alone is launched once forward and twice backward; of a group of four each has two experts.
  constexpr double kLayers = 4, kProducts = 2, kLaunches = 3, kEach = 0.01;
  const double less = 7 * kLayers * kProducts * kLaunches * kEach; // seven of eight experts
  CHECK(seconds(", by_expert: true", 1) - seconds("", 1) == near(less).epsilon(1e-3));
  CHECK(seconds(", by_expert: true", 4) - seconds("", 4) == near(less / 7).epsilon(1e-3));
}

TEST_CASE("a recipe says what the host launches for operators of a type", "[study][frameworks]") {
  // Forward is of two products and two others, a kernel each; backward of the products is of two.
  CHECK(gelu_seconds(", launches: {each: 3 s, types: {elementwise: {forward: 7, backward: 5}}}") ==
        near(3 * (2 + 2 * 7) + 3 * (4 + 2 * 5)));
  CHECK_THAT(error_of([] { gelu_seconds(", launches: {each: 3 s, types: {gela: {forward: 7, backward: 5}}}"); }),
             Contains("unknown type of operators in 'launches.types' 'gela'; did you mean 'gelu'"));
  CHECK_THAT(error_of([] { gelu_seconds(", launches: {each: 3 s, types: {gelu: {forward: 7}}}"); }),
             Contains("backward"));
  CHECK_THAT(
      error_of([] { gelu_seconds(", launches: {each: 3 s, types: {gelu: {forward: 7, backward: 5, counting: 8}}}"); }),
      Contains("counting") && Contains("0 to 'forward'"));
}

TEST_CASE("kernels within a run are slower by the stated parts, products and others apart", "[study][frameworks]") {
  // Two products and two others, 3 s each with backward.
  CHECK(gelu_seconds(", kernel_speed: {matrix: 0.5}") == near(6 / 0.5 + 6));
  CHECK(gelu_seconds(", kernel_speed: {matrix: 0.8, other: 0.25}") == near(6 / 0.8 + 6 / 0.25));
  CHECK_THAT(error_of([] { gelu_seconds(", kernel_speed: {matrix: 1.01}"); }),
             Contains("matrix") && Contains("more than 0, at most 1"));
  CHECK_THAT(error_of([] { gelu_seconds(", kernel_speed: {matrix: 0}"); }), Contains("more than 0, at most 1"));
}

// Two products and two others, 3 s each with backward, on devices whose gradients take no time to reduce. Of two draws
// the slower one is 1/sqrt(pi) standard deviations above the mean.
TEST_CASE("replicas wait for the slowest device's products", "[study][frameworks]") {
  const auto seconds = [](int devices, const std::string& spread) {
    const std::string count = std::to_string(devices);
    const std::string text =
        "model: gelu.yaml\nplatform: {devices: " + count +
        ", bandwidth: 1000000 TB/s, latency: 1 ns}\nengine: analytic\ntraining: {global_batch: " + count +
        ", micro_batches: 1, optimizer: sgd, device_spread: " + spread +
        "}\ncompare: {strategies: [data-parallel], schedules: [gpipe]}\n";
    const Run run = compare_text(text).comparison.runs.front();
    REQUIRE(run.feasible);
    return run.metrics.iteration.value;
  };
  CHECK(seconds(2, "0") == near(12).epsilon(1e-6));
  CHECK(seconds(2, "0.1") == near(6 * (1 + 0.1 / std::sqrt(std::acos(-1.0))) + 6).epsilon(1e-6));
  CHECK(seconds(1, "0.1") == near(12).epsilon(1e-6));
  CHECK_THAT(error_of([&] { seconds(1, "0.2"); }), Contains("device_spread") && Contains("0 to 0.1"));
}

// An iteration of a product of 8 features with so many, and of what stands behind it.
double seconds_of(const std::string& features, const std::string& more, const std::string& training) {
  const std::string text = "model: {workload: {name: one, input: {shape: [8]}, layers: [{name: l, kind: linear, bias: "
                           "false, features: " +
                           features + "}" + more +
                           "]}}\nplatform: dgx-h100\ntraining: {global_batch: 1, optimizer: sgd" + training +
                           "}\ncompare: {strategies: [single], schedules: [gpipe]}\n";
  return compare_text(text).comparison.runs.front().metrics.iteration.value;
}

// At half the speed an iteration gains the product's time once, at a quarter three times.
TEST_CASE("products of rows that are not aligned are slower where a training says so", "[study][frameworks]") {
  const auto gains = [](const std::string& features, const std::string& precision, const std::string& key) {
    const auto at = [&](const std::string& speed) {
      return seconds_of(features, "", ", precision: " + precision + ", kernel_speed: {" + key + ": " + speed + "}");
    };
    return std::pair(at("0.5") - at("1"), at("0.25") - at("1"));
  };
  for (const auto& [features, precision, key] :
       {std::tuple("1022", "bf16", "rows_of_4_bytes"),
        {"1023", "bf16", "rows_of_2_bytes"},
        {"1023", "bf16", "rows_of_4_bytes"}, // what is not said for 2 bytes is as for 4
        {"1023", "fp32", "rows_of_4_bytes"},
        {"1020", "bf16", "rows_of_4_bytes"}}) {
    INFO(features << " " << precision << " " << key);
    const auto [half, quarter] = gains(features, precision, key);
    CHECK(half > 0);
    CHECK(quarter == near(3 * half).epsilon(1e-6));
  }
  for (const auto& [features, precision, key] : {std::tuple("1024", "bf16", "rows_of_4_bytes"),
                                                 {"1022", "bf16", "rows_of_2_bytes"},
                                                 {"1023", "fp32", "rows_of_2_bytes"},
                                                 {"1020", "fp32", "rows_of_4_bytes"}}) {
    INFO(features << " " << precision << " " << key);
    CHECK(gains(features, precision, key) == std::pair(0.0, 0.0));
  }
}

TEST_CASE("operators of a type may have a speed of their own", "[study][frameworks]") {
  const auto at = [](const std::string& speed) {
    return seconds_of("1024", ", {name: g, kind: gelu}", ", kernel_speed: {" + speed + "}");
  };
  CHECK(at("types: {gelu: 0.1}") == at("other: 0.1"));
  CHECK(at("other: 0.5, types: {gelu: 0.1}") == at("other: 0.1"));
  CHECK(at("types: {gelu: 0.1}") > at("types: {gelu: 1}"));
  CHECK(at("types: {linear: 0.1}") == at("matrix: 0.1"));
  CHECK_THAT(error_of([&] { at("types: {gela: 0.1}"); }),
             Contains("unknown type of operators in 'kernel_speed.types' 'gela'; did you mean 'gelu'"));
}

TEST_CASE("a step's overhead is paid once an iteration", "[study][frameworks]") {
  CHECK(gelu_seconds(", step_overhead: 5 s") == near(12 + 5));
  CHECK(gelu_seconds(", step_overhead: 5 s, micro_batches: 1") == near(12 + 5));
}

// Passes so short that hand-over, of 1 s, is all that counts: 1 s before a pass that gets a tensor, 1 s behind one that
// sends. One micro-batch goes through p stages and back by 2 (p - 1) transfers, each of which costs both ends. In a
// pipeline of two, each forward and each backward takes 1 s on either stage, so that 1F1B takes
// 2 (m + 1) s.
TEST_CASE("handing a tensor to another stage takes time of both devices", "[study][frameworks]") {
  const auto seconds = [](int pipeline, int micro_batches, const std::string& schedule, int tensor = 1,
                          const std::string& detail = "auto") {
    const std::string text = "model: small-transformer.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: "
                             "{global_batch: " +
                             std::to_string(micro_batches * 8 / (pipeline * tensor)) +
                             ", micro_batch_size: 1, precision: bf16, optimizer: sgd, "
                             "hand_over: 1 s, parallel: {pipeline: " +
                             std::to_string(pipeline) + ", tensor: " + std::to_string(tensor) +
                             "}}\ndetail: " + detail + "\n" + "compare: {strategies: [mesh], schedules: [" + schedule +
                             "]}\n";
    return compare_text(text).comparison.runs.front().metrics.iteration.value;
  };
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1"}) {
    INFO(schedule);
    CHECK(seconds(1, 1, schedule) < 0.1);
    CHECK(seconds(2, 1, schedule) == near(4).epsilon(0.02));
    CHECK(seconds(4, 1, schedule) == near(12).epsilon(0.02));
    CHECK(seconds(2, 8, schedule) == near(2 * 9).epsilon(0.02));
  }
  // Interleaved, each of two devices has two of four stages: of a micro-batch it sends and gets six tensors of twelve.
  CHECK(seconds(2, 8, "interleaved") > 6 * 8);
  for (const std::string detail : {"blocks", "all"}) { // exchanges inside a pass leave its hand-over where it is
    CHECK(seconds(2, 8, "1f1b", 2, detail) == near(2 * 9).epsilon(0.02));
  }
}

// TorchTitan divides scores among the ranks of a tensor group unless told otherwise, and Megatron-LM has a loss of its
// own.
TEST_CASE("a loss in single precision is PyTorch's parallel one where TorchTitan divides scores",
          "[study][frameworks]") {
  const auto kept = [](const std::string& loss, const std::string& rule, int tensor) {
    const Study read =
        study("model: gpt2\nplatform: dgx-h100\ntraining: {global_batch: 8, precision: bf16, loss: " + loss +
              ", parallel: {tensor: " + std::to_string(tensor) + ", tensor_rule: " + rule + "}}\n");
    return find_by_name(read.model->operators, "loss", "operator", {}).stash_elements;
  };
  const double single = kept("single", "megatron", 2);
  CHECK(kept("single", "torchtitan", 2) == near(single * 16 / 12));
  CHECK(kept("single-parallel", "megatron", 2) == near(single * 16 / 12));
  CHECK(kept("single", "torchtitan-whole-loss", 2) == near(single));
  CHECK(kept("single", "torchtitan", 1) == near(single));
  CHECK(kept("fused", "torchtitan", 2) == near(kept("fused", "megatron", 2)));
}

// One attention of a heads over s tokens, b samples: 16 bits, so 5 a s^2 b bytes are two and a half numbers a pair.
ModelGraph attention_model(bool drops) {
  return read_model(yaml::parse("{workload: {name: m, input: {shape: [64, 24]}, layers: [{name: qkv, kind: linear, "
                                "features: 72, bias: false}, {name: attention, kind: attention, heads: 3, "
                                "key_value_heads: 3, causal: true}" +
                                    std::string(drops ? ", {name: drop, kind: dropout}" : "") + "]}}",
                                "model"),
                    kFolders, {});
}

const Operator& attention_of(const ModelGraph& model) {
  return *std::find_if(model.operators.begin(), model.operators.end(),
                       [](const Operator& op) { return op.kind == KernelKind::attention; });
}

const AttentionRow& attention_named(std::string_view name) {
  return *std::find_if(kAttentions.begin(), kAttentions.end(),
                       [&](const AttentionRow& row) { return row.name == name; });
}

TEST_CASE("attention by separate kernels keeps and moves the scores of all pairs", "[study][frameworks]") {
  constexpr double kHeads = 3, kLength = 64, kWidth = 8, kPairs = kHeads * kLength * kLength;
  const AttentionRow& separate = attention_named("separate");
  for (const bool drops : {false, true}) {
    const ModelGraph fused = attention_model(drops);
    const Operator before = attention_of(fused);
    const ModelGraph model = with_attention(fused, separate);
    const Operator& after = attention_of(model);
    // Korthikanti et al. 2023: the softmax's result 2 a s^2 b bytes; with dropout its result 2 and its mask 1 more.
    CHECK(2 * (after.stash_elements - before.stash_elements) == near((drops ? 5 : 2) * kPairs));
    CHECK(after.forward.calls.size() == (drops ? 4U : 3U));
    CHECK(after.backward_input.calls.size() == (drops ? 6U : 5U));
    CHECK(after.forward.flops.value == near(2 * 2 * kPairs * kWidth + 5 * kPairs)); // two products, the softmax
    // Q, K and V in, the result out; scores written and read, softmax read and written; dropout 2.5 a pair.
    const double rows = kLength * kHeads * kWidth;
    CHECK(after.forward.moved_elements == near(4 * rows + 2 * kPairs + 2 * kPairs + (drops ? 2.5 * kPairs : 0)));
  }
}

// Of a causal sequence of n blocks n (n + 1) / 2 are computed whole; 64 tokens are less than one.
TEST_CASE("splash attention computes whole blocks, and a model counts what the mask leaves", "[study][frameworks]") {
  const AttentionRow& splash = attention_named("splash");
  REQUIRE(splash.block == 2048);
  for (const auto& [tokens, part] : {std::pair{64, 1.0}, {2048, 1.0}, {4096, 3.0 / 4}, {8192, 10.0 / 16}}) {
    const ModelGraph fused =
        read_model(yaml::parse("{workload: {name: m, input: {shape: [" + std::to_string(tokens) +
                                   ", 24]}, layers: [{name: qkv, kind: linear, features: 72, bias: false}, {name: "
                                   "attention, kind: attention, heads: 3, key_value_heads: 3, causal: true}]}}",
                               "model"),
                   kFolders, {});
    const Operator before = attention_of(fused), after = attention_of(with_attention(fused, splash));
    const double more = part / ((1 + 1.0 / tokens) / 2);
    CAPTURE(tokens);
    CHECK(after.forward.flops.value == near(more * before.forward.flops.value));
    CHECK(after.backward_input.flops.value == near(more * before.backward_input.flops.value));
    CHECK(model_flops(with_attention(fused, splash)).value == near(model_flops(fused).value));
  }
}

// Scaling and mask read and write every pair's score, and only the scaling has a gradient; each of the four tensors
// that heads interleave is read and written once, as is its gradient.
TEST_CASE("eager attention scales, masks and copies by kernels of their own", "[study][frameworks]") {
  constexpr double kHeads = 3, kLength = 64, kWidth = 8, kPairs = kHeads * kLength * kLength;
  constexpr double kRows = kLength * kHeads * kWidth;
  const ModelGraph fused = attention_model(true);
  const Operator separate = attention_of(with_attention(fused, attention_named("separate")));
  const Operator eager = attention_of(with_attention(fused, attention_named("eager")));
  CHECK(eager.forward.moved_elements - separate.forward.moved_elements == near(2 * (2 * kPairs + 4 * kRows)));
  CHECK(eager.backward_input.moved_elements - separate.backward_input.moved_elements == near(2 * (kPairs + 4 * kRows)));
  CHECK(eager.forward.kernels == separate.forward.kernels + 6);
  CHECK(eager.forward.calls.size() == separate.forward.calls.size() + 6);
  CHECK(eager.backward_input.calls.size() == separate.backward_input.calls.size() + 5);
  CHECK(eager.stash_elements == separate.stash_elements);
}

// Four samples of three heads are twelve, which three ranks divide into four each, and two into six. Steps are a kernel
// each in place of one: in elements of 16 bits a cast moves 1 and 2, the other three and its inverse 2 and 2, 2 and 1.
TEST_CASE("Megatron-LM's softmax runs in steps where heads and samples make no blocks of four", "[study][frameworks]") {
  constexpr double kPairs = 3 * 64 * 64, kSteps = 3 + 3 * 4 + 3, kFused = 2;
  const ModelGraph fused = attention_model(true);
  const AttentionRow& megatron = attention_named("megatron");
  const Operator separate = attention_of(with_attention(fused, attention_named("separate")));
  for (const RankHeads& rank : {RankHeads{}, RankHeads{1, 4}, RankHeads{3, 4}}) {
    CHECK(attention_of(with_attention(fused, megatron, rank)).forward.moved_elements ==
          separate.forward.moved_elements);
  }
  for (const RankHeads& rank : {RankHeads{1, 1}, RankHeads{2, 4}}) {
    const Operator steps = attention_of(with_attention(fused, megatron, rank));
    CHECK(steps.forward.moved_elements - separate.forward.moved_elements == near((kSteps - kFused) * kPairs));
    CHECK(steps.backward_input.moved_elements - separate.backward_input.moved_elements ==
          near((kSteps - kFused) * kPairs));
    CHECK(steps.forward.kernels == separate.forward.kernels + 4);
    CHECK(steps.backward_input.kernels == separate.backward_input.kernels + 4);
    CHECK(steps.stash_elements - separate.stash_elements == near(kPairs)); // the result in fp32
    CHECK(steps.forward.flops == separate.forward.flops);
  }
  // Others have no blocks, whatever heads ranks have.
  for (const char* name : {"separate", "eager"}) {
    const AttentionRow& row = attention_named(name);
    CHECK(attention_of(with_attention(fused, row, {2, 1})).forward.kernels ==
          attention_of(with_attention(fused, row)).forward.kernels);
  }
}

// People count two products over every pair, whatever kernels do.
TEST_CASE("a model's FLOPs are the same by any kernels of attention", "[study][frameworks]") {
  for (const bool drops : {false, true}) {
    const ModelGraph fused = attention_model(drops);
    for (const AttentionRow& row : kAttentions) {
      CAPTURE(row.name);
      CHECK(model_flops(with_attention(fused, row)).value == near(model_flops(fused).value));
    }
  }
}

TEST_CASE("attention with a name of fits calls these kernels and changes nothing else", "[study][frameworks]") {
  const ModelGraph fused = attention_model(false);
  const ModelGraph named = with_attention(fused, kAttentions[1]);
  CHECK(attention_of(named).forward.calls.front().variant == "flash-1");
  CHECK(attention_of(named).forward.flops == attention_of(fused).forward.flops);
  CHECK(attention_of(named).stash_elements == attention_of(fused).stash_elements);
}

// Three heads of 8 features, by kernels that take heads of 4.
TEST_CASE("wide heads take as long as so many more narrow ones", "[study][frameworks]") {
  const ModelGraph fused = attention_model(false);
  const Operator narrow = attention_of(with_attention(fused, {.name = "n", .variant = "v", .widest = 4}));
  const Operator wide = attention_of(with_attention(fused, {.name = "n", .variant = "v", .widest = 8}));
  const auto& shape = attention_of(fused).forward.calls.front().shape;
  for (const Pass& pass : {narrow.forward, narrow.backward_input}) {
    const auto& told = pass.calls.front().shape;
    CHECK(told[2] == 6);
    CHECK(told[3] == 2 * shape[3]); // of keys and values
    CHECK(told[4] == 4);
  }
  CHECK(wide.forward.calls.front().shape == shape);
  CHECK(attention_named("triton-2022").widest == 64);
}

std::string plain_study(const std::string& training) {
  return "model: gelu.yaml\nplatform: {devices: 2, latency: 1 us}\ntraining: {global_batch: 4, " + training +
         "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
}

TEST_CASE("a recipe stands under what the study says", "[study][frameworks]") {
  const Training recipe = study(plain_study("framework: megatron-lm-2022")).training;
  CHECK(recipe.framework == "megatron-lm-2022");
  CHECK(recipe.attention->name == "megatron");
  CHECK(recipe.clip_gradients);
  const Training own =
      study(plain_study("framework: megatron-lm-2022, attention: fused, clip_gradients: false")).training;
  CHECK(own.attention->name == "fused");
  CHECK_FALSE(own.clip_gradients);
  // Degrees of a recipe hold where a study has degrees of its own, and gathers only where there is something to gather.
  const std::string two = "micro_batch_size: 1, framework: nemo-2025, parallel: {pipeline: 1, zero: ";
  CHECK(study(plain_study(two + "1}")).training.sharding.zero == Zero::states);
  CHECK(study(plain_study(two + "0}")).training.sharding.zero == Zero::none);
  CHECK_FALSE(study(plain_study("framework: nemo-2025")).training.parallel);
  CHECK_THAT(error_of([] { study(plain_study("framework: megatron-lm-2202")); }),
             Contains("unknown framework 'megatron-lm-2202'") && Contains("megatron-lm-2022"));
}

TEST_CASE("every shipped recipe can be trained by, and says where its constants come from", "[study][frameworks]") {
  const std::vector<std::string> names = shipped_names(kFolders, "workloads/frameworks");
  REQUIRE(names.size() >= 10);
  for (const std::string& name : names) {
    INFO(name);
    const auto file = find_file(kFolders, "workloads/frameworks", name, {});
    const FrameworkRecipe recipe = read_framework(yaml::load(file));
    CHECK(recipe.name == name);
    CHECK_FALSE(recipe.sources.empty());
    const Training training = study(plain_study("framework: " + name)).training;
    const KernelSpeed& speed = training.kernel_speed;
    // Plausible: a long run of products is 6 to 14 % slower than a burst; half the bandwidth is the least measured of
    // unfused kernels. More says that a constant stands for something else.
    CHECK(speed.matrix >= 0.8);
    CHECK(speed.other >= 0.4);
    CHECK(training.launches.each.value <= 40e-6);
    CHECK(training.step_overhead.value <= 0.2);
    CHECK(training.hand_over.value <= 1e-3);
    CHECK(training.device_spread == 0.015); // published, and the same for all
  }
}

TEST_CASE("a recipe's file is checked", "[study][frameworks]") {
  const auto error = [](const std::string& text) {
    return error_of([&] { read_framework(yaml::parse(text, "f.yaml")); });
  };
  const std::string front = "name: f\ndescription: d\nsources: s\n";
  CHECK_THAT(error(front + "training: 3\n"), Contains("f.yaml:4:11: 'training' must be a mapping"));
  CHECK_THAT(error(front + "training: {framework: g}\n"), Contains("a recipe rests on no other"));
  CHECK_THAT(error(front + "training: {}\nfoo: 1\n"), Contains("f.yaml:5:1: unknown key 'foo'"));
  CHECK_THAT(error(front + "training: {}\ncalibrated_on: [{architecture: gpt, layers: 0, hidden: 8, heads: 2}]\n"),
             Contains("f.yaml:5:") && Contains("layers"));
}

TEST_CASE("a study may write its model and its nodes in itself", "[study][input]") {
  const std::string text =
      "model: {workload: {name: inner, input: {shape: [16]}, layers: [{name: l, kind: linear, "
      "features: 16, bias: false}]}}\nplatform: {name: pair, nodes: [{name: n, count: 2, devices: "
      "[{type: a100-sxm-80gb, count: 1}], links: [], host: {cores: 4, core_speed: 1 GFLOP/s, memory: "
      "1 GB, memory_bandwidth: 1 GB/s, disk_bandwidth: 1 GB/s, power: {idle: 1 W, core_busy: 1 W, "
      "core_spin: 1 W}}}], network: {topology: switch, nic: device, bandwidth: 1 GB/s, latency: 1 us}}\n"
      "compare: {strategies: [single], schedules: [gpipe]}\n";
  const Study read = study(text);
  CHECK(read.model->name == "inner");
  CHECK(read.platform.devices.size() == 2);
  CHECK_THAT(error_of([&] {
               study("model: {workload: {name: inner, input: {shape: [16]}, layers: [{name: l, kind: "
                     "lineal}]}}\nplatform: {devices: 1, latency: 1 us}\n");
             }),
             Contains("lineal"));
}

} // namespace
} // namespace stagecraft::test
