// Recompute as a study's choice: time and peak memory of every variant by hand, under every schedule and engine.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include "sim/study/compare/replay_prepared.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// Stage 0 is a and g, stage 1 is b and h: F 2 s and B 4 s each of four micro-batches, nothing on the way.
std::string gelu_study(const std::string& recompute, const std::string& schedule, const std::string& more = "") {
  return "model: gelu.yaml\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 4, optimizer: sgd, "
         "recompute: " +
         recompute + "}\ncompare: {strategies: [uniform], schedules: [" + schedule + "]}\n" + more;
}

Run run_of(const std::string& recompute, const std::string& schedule) {
  return compare_text(gelu_study(recompute, schedule)).comparison.runs.front();
}

struct Variant {
  const char *recompute, *schedule;
  double seconds;
  double first_mb, second_mb; // peaks in 1e6 B, but for weights, gradients and the 8 of buffers
};

// R takes 2 s where all of a stage runs again, 1 s where its element-wise operator does.
// Lazy, every stage works as if B took so much longer: (M + P - 1) (F + R + B) = 5 (6 + R). Early, the R of the last B
// to end has been done while its gradient was on the way: R less, at either order.
// 1F1B, skipped: stage 1 never runs R, so F0 2-4 B0 4-8 F1 8-10 B1 10-14 F2 14-16 B2 16-20 F3 22-24 B3 24-28, and
// stage 0 F0 0-2 F1 2-4 R0 4-6 B0 8-12 F2 12-14 R1 14-16 B1 16-20 F3 20-22 R2 22-24 B2 24-28 R3 28-30 B3 30-34.
// Where only the element-wise run again, stage 0 R0 4-5 B0 8-12 F2 12-14 R1 14-15 B1 15-19 F3 19-21 R2 21-22 B2 22-26
// R3 26-27 B3 27-31.
// The last not recomputed: stage 1 ends F3 26-28 B3 28-32, stage 0 has nothing to do before its B3 at 32-36; GPipe
// begins with that one: stage 1 B3 10-14, then three times 6 s until 32, stage 0 B3 14-18, then R2 18-20 B2 20-24,
// R1 24-26 B1 26-30, R0 30-32 B0 32-36.
// Memory: stage 0 keeps 20 of a micro-batch, or with full recompute nothing and 20 while one is brought back; stage 1
// keeps the 4 that come in instead. Element-wise alone: 4 of the product and 4 between the two, and 16 brought back.
// GPipe has four in flight, 1F1B two and one. Under 1F1B stage 0 holds all of the last while it brings back the one
// before.
const std::vector<Variant> kVariants = {
    {"none", "gpipe", 30, 80, 80},
    {"none", "1f1b", 30, 40, 20},
    {"full", "gpipe", 38, 20, 16 + 20},
    {"full", "1f1b", 38, 20, 4 + 20},
    {"{when: lazy}", "gpipe", 40, 20, 16 + 20},
    {"{when: lazy}", "1f1b", 40, 20, 4 + 20},
    {"{kinds: [elementwise]}", "gpipe", 34, 32 + 16, 32 + 16},
    {"{kinds: elementwise, when: lazy}", "gpipe", 35, 32 + 16, 32 + 16},
    {"{operators: [g, h]}", "1f1b", 34, 16 + 16, 8 + 16},
    {"{operators: [g, h], when: lazy}", "1f1b", 35, 16 + 16, 8 + 16},
    {"{skip_after_forward: true}", "1f1b", 34, 20, 20},
    {"{operators: g, kinds: elementwise, skip_after_forward: true}", "1f1b", 31, 16 + 16, 20},
    {"{what: full, except_last: true}", "1f1b", 36, 20 + 20, 4 + 20},
    {"{what: full, except_last: true}", "gpipe", 36, 20, 12 + 20},
};

TEST_CASE("time and peak memory of each way to recompute", "[study][recompute]") {
  for (const Variant& variant : kVariants) {
    CAPTURE(variant.recompute, variant.schedule);
    const Run run = run_of(variant.recompute, variant.schedule);
    REQUIRE(run.feasible);
    CHECK(run.metrics.iteration.value == near(variant.seconds));
    const double fixed = 1000 * (4 + 4) + 8e6;
    CHECK(run.metrics.peak_memory[0].value == near(fixed + variant.first_mb * 1e6));
    CHECK(run.metrics.peak_memory[1].value == near(fixed + variant.second_mb * 1e6));
  }
}

// One device and two micro-batches under GPipe, so two are in flight. In elements, of 4 B each: without recompute a
// micro-batch holds the stash of all, 3 + 100 + 50 + 70 + 40 + 5. Block by block it holds 3 + 5 of the two outside, and
// what each segment reads, 10 and 30, or both blocks 10; one segment at a time is brought back, 150 and 110, or 260.
TEST_CASE("block by block a stage keeps each block's input and brings one block back", "[study][recompute]") {
  const auto run = [](const std::string& recompute) {
    return compare_text("model: blocks.yaml\nplatform: pcie-v100\nengine: analytic\ntraining: {global_batch: 2, "
                        "micro_batches: 2, optimizer: sgd, recompute: " +
                        recompute + "}\ncompare: {strategies: [single], schedules: [gpipe]}\n")
        .comparison.runs.front();
  };
  const Run none = run("none");
  REQUIRE(none.feasible);
  const double fixed = none.metrics.peak_memory[0].value - 4 * 2 * 268;
  const auto held = [&](const Run& one) { return (one.metrics.peak_memory[0].value - fixed) / 4; };
  CHECK(held(run("blocks")) == near(2 * (3 + 5 + 10 + 30) + 150));
  CHECK(held(run("{blocks: 1}")) == held(run("blocks")));
  CHECK(held(run("{blocks: 2}")) == near(2 * (3 + 5 + 10) + 260));
  CHECK(held(run("{blocks: 7}")) == held(run("{blocks: 2}"))); // all there are
  CHECK(held(run("full")) == near(268));                       // nothing comes in, and all is brought back
  // All blocks run again, whatever is kept.
  const auto again = [&](const Run& one) { return (one.metrics.busy[0] - none.metrics.busy[0]).value; };
  CHECK(again(run("blocks")) > 0);
  CHECK(again(run("{blocks: 2}")) == near(again(run("blocks"))));
  CHECK(again(run("{operators: [layer.0.a, layer.0.b, layer.1.a, layer.1.b]}")) == near(again(run("blocks"))));
}

// Two micro-batches in flight on one device, in elements of 4 B: all stashes are 3 + 10 + … + 10 = 233. Three rows keep
// what comes into the second and the third, 30 and 60 (the model's input has no size), and bring back the largest of
// 33, 120 and 80. Six operators at a time keep 60 and bring back 153.
TEST_CASE("a model without numbered blocks keeps what comes into each of the square root of its operators",
          "[study][recompute]") {
  const auto run = [](const std::string& recompute) {
    return compare_text("model: nine.yaml\nplatform: pcie-v100\nengine: analytic\ntraining: {global_batch: 2, "
                        "micro_batches: 2, optimizer: sgd, recompute: " +
                        recompute + "}\ncompare: {strategies: [single], schedules: [gpipe]}\n")
        .comparison.runs.front();
  };
  const Run none = run("none");
  REQUIRE(none.feasible);
  const double fixed = none.metrics.peak_memory[0].value - 4 * 2 * 233;
  const auto held = [&](const Run& one) { return (one.metrics.peak_memory[0].value - fixed) / 4; };
  CHECK(held(run("blocks")) == near(2 * (30 + 60) + 120));
  CHECK(held(run("{blocks: 2}")) == near(2 * 60 + 153));
  const auto again = [&](const Run& one) { return (one.metrics.busy[0] - none.metrics.busy[0]).value; };
  CHECK(again(run("blocks")) == near(again(run("{what: full, when: lazy}"))));
  CHECK(again(run("{first: 1}")) == near(again(run("blocks")) / 3));
}

// A product, an activation and a product of 4 tokens, in elements: they keep 32, 64 and 64 of a micro-batch. Where the
// activation runs again it makes what the second product keeps: 32 stay, and the 64 that the activation reads; 64 and
// 64 are made again, of one micro-batch at a time.
TEST_CASE("what an operator that runs again makes is not kept for those that read it", "[study][recompute]") {
  const auto run = [](const std::string& recompute, const std::string& more = "") {
    return compare_text("model: {workload: {name: products, input: {shape: [4, 8]}, layers: [{name: layer.0.up, kind: "
                        "linear, features: 16}, {name: layer.0.gelu, kind: gelu}, {name: layer.0.down, kind: linear, "
                        "features: 8}]}}\nplatform: pcie-v100\nengine: analytic\ntraining: {global_batch: 4, "
                        "micro_batches: 4, optimizer: sgd, recompute: " +
                        recompute + more + "}\ncompare: {strategies: [single], schedules: [gpipe]}\n")
        .comparison.runs.front();
  };
  const Run none = run("none");
  REQUIRE(none.feasible);
  const double fixed = none.metrics.peak_memory[0].value - 4 * 4 * (32 + 64 + 64);
  const auto held = [&](const Run& one) { return (one.metrics.peak_memory[0].value - fixed) / 4; };
  CHECK(held(run("{kinds: elementwise}")) == near(4 * (32 + 64) + 64 + 64));
  CHECK(held(run("{operators: layer.0.gelu, when: early}")) == held(run("{kinds: elementwise}")));
  CHECK(held(run("{operators: layer.0.up}")) == near(4 * (32 + 64) + 32 + 64)); // it reads 32 and makes what gelu keeps
  CHECK(held(run("{operators: [layer.0.up, layer.0.gelu]}")) == near(4 * 32 + 32 + 64 + 64));
}

TEST_CASE("a line names the modules that the model lacks", "[study][recompute]") {
  const Study dense = study("model: small-transformer.yaml\nplatform: dgx-h100\ntraining: {recompute: {modules: "
                            "[core_attn, moe]}}\n");
  CHECK(dense.training.unheeded == std::vector<std::string>{"recompute of module moe (the model has none)"});
}

// Attention over 4 tokens of 8 features, in elements: it keeps the 96 of q, k and v and a number for each token of both
// heads, and the products before and behind it keep their inputs of 32.
TEST_CASE("an attention that runs again keeps its output", "[study][recompute]") {
  const auto run = [](const std::string& recompute) {
    return compare_text(
               "model: {workload: {name: attention, input: {shape: [4, 8]}, layers: [{name: layer.0.qkv, kind: "
               "linear, features: 24}, {name: layer.0.attention, kind: attention, heads: 2}, {name: "
               "layer.0.out, kind: linear, features: 8}]}}\nplatform: pcie-v100\nengine: analytic\ntraining: "
               "{global_batch: 4, micro_batches: 4, optimizer: sgd, recompute: " +
               recompute + "}\ncompare: {strategies: [single], schedules: [gpipe]}\n")
        .comparison.runs.front();
  };
  const Run none = run("none");
  REQUIRE(none.feasible);
  const double fixed = none.metrics.peak_memory[0].value - 4 * 4 * (32 + 96 + 8 + 32);
  const auto held = [&](const Run& one) { return (one.metrics.peak_memory[0].value - fixed) / 4; };
  CHECK(held(run("{kinds: attention}")) == near(4 * (32 + 96 + 32) + 96 + 8));
  CHECK(held(run("{operators: layer.0.qkv}")) == near(4 * (32 + 8 + 32) + 32 + 96)); // it makes q, k and v again
}

// Only layer.0 of the two runs again: its input of 10 is kept and its 150 brought back; layer.1 keeps its 70 + 40,
// which has its input.
TEST_CASE("only the first blocks of a stage run again where the study says so", "[study][recompute]") {
  const auto run = [](const std::string& recompute) {
    return compare_text("model: blocks.yaml\nplatform: pcie-v100\nengine: analytic\ntraining: {global_batch: 2, "
                        "micro_batches: 2, optimizer: sgd, recompute: " +
                        recompute + "}\ncompare: {strategies: [single], schedules: [gpipe]}\n")
        .comparison.runs.front();
  };
  const Run none = run("none"), blocks = run("blocks"), first = run("{first: 1}");
  const double fixed = none.metrics.peak_memory[0].value - 4 * 2 * 268;
  const auto held = [&](const Run& one) { return (one.metrics.peak_memory[0].value - fixed) / 4; };
  CHECK(held(first) == near(2 * (3 + 5 + 10 + 70 + 40) + 150));
  CHECK(held(run("{blocks: 2, first: 1}")) == held(first)); // one is all that runs again
  CHECK(held(run("{first: 2}")) == held(blocks));
  CHECK(held(run("{first: 7}")) == held(blocks));
  const auto again = [&](const Run& one) { return (one.metrics.busy[0] - none.metrics.busy[0]).value; };
  CHECK(again(first) == near(again(blocks) / 2)); // the layers are alike
  CHECK(again(run("{first: 2}")) == near(again(blocks)));
}

// Four layers on two ranks of two stages: each stage has one layer. On two ranks of one stage, each has two.
TEST_CASE("the first blocks are those of each stage, also of several on one rank", "[study][recompute]") {
  const auto recomputed = [](const std::string& schedule, const std::string& interleave) {
    const Run run =
        compare_text("model: small-transformer.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: "
                     "{global_batch: 8, micro_batches: 4, precision: bf16, recompute: {first: 1}, parallel: "
                     "{pipeline: 2, data: 1, tensor: 4" +
                     interleave + "}}\ncompare: {strategies: [mesh], schedules: [" + schedule + "]}\n")
            .comparison.runs.front();
    REQUIRE(run.feasible);
    std::vector<std::string> blocks;
    for (const RunStage& stage : run.stages) {
      REQUIRE(stage.recomputed.size() == 11);
      blocks.push_back(stage.recomputed.front().substr(0, stage.recomputed.front().rfind('.')));
    }
    return blocks;
  };
  CHECK(recomputed("interleaved", ", interleave: 2") ==
        std::vector<std::string>{"layer.0", "layer.1", "layer.2", "layer.3"});
  CHECK(recomputed("1f1b", "") == std::vector<std::string>{"layer.0", "layer.2"});
}

TEST_CASE("every strategy runs the first blocks of its stages again", "[study][recompute][conformance]") {
  const Comparison first = compare_text("model: small-transformer.yaml\nplatform: dgx-h100\nengine: analytic\n"
                                        "training: {global_batch: 16, micro_batches: 4, precision: bf16, recompute: "
                                        "{first: 1}}\ncompare: {strategies: all, schedules: [1f1b, interleaved]}\n")
                               .comparison;
  int compared = 0;
  for (const Run& run : first.runs) {
    CAPTURE(run.strategy, run.schedule, run.why_not);
    for (std::size_t s = 0; run.feasible && run.strategy != "piper" && s < run.stages.size(); ++s) {
      std::set<std::string> blocks, again; // piper may recompute more
      const auto add = [](const std::string& name, std::set<std::string>& to) {
        if (name.starts_with("layer.")) {
          to.insert(name.substr(0, 7));
        }
      };
      std::for_each(run.stages[s].operators.begin(), run.stages[s].operators.end(),
                    [&](const std::string& name) { add(name, blocks); });
      std::for_each(run.stages[s].recomputed.begin(), run.stages[s].recomputed.end(),
                    [&](const std::string& name) { add(name, again); });
      CHECK(again.size() == std::min<std::size_t>(1, blocks.size()));
      CHECK((again.empty() || *again.begin() == *blocks.begin()));
      ++compared;
    }
  }
  CHECK(compared > 20);
}

// A GPT-2 whose blocks are cut by a stage: each stage brings back its own part of a block, never more than none holds.
TEST_CASE("every schedule and strategy runs block by block within memory", "[study][recompute][conformance]") {
  const auto runs = [](const std::string& recompute) {
    return compare_text("model: small-transformer.yaml\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: "
                        "16, micro_batches: 4, precision: bf16, optimizer: adam, recompute: " +
                        recompute + "}\ncompare: {strategies: all, schedules: all}\n")
        .comparison;
  };
  const Comparison blocks = runs("blocks"), none = runs("none");
  int compared = 0;
  for (const Run& run : blocks.runs) {
    CAPTURE(run.strategy, run.schedule, run.why_not);
    const Run& without = find_run(none, run.strategy, run.schedule, run.micro_batches);
    if (run.schedule == "1f1b" || run.schedule == "gpipe") { // memory is no matter here
      CHECK(run.feasible == without.feasible);
    }
    if (!run.feasible || !without.feasible) {
      continue;
    }
    CHECK(run.lower_bound.value <= run.metrics.iteration.value * (1 + 1e-9));
    if (run.strategy == "mesh" || run.strategy == "uniform") { // the same stages
      CHECK(run.metrics.iteration >= without.metrics.iteration);
      ++compared;
    }
  }
  CHECK(compared > 10);
}

// The products' weight gradients need their stash of 4 each, the element-wise none: between B and W a stage holds 4
// of 20. zb-h1: stage 0 F0 F1 B0 W0 F2 … holds two at F1; stage 1 F0 B0 F1 B1 W0 F2 B2 W1 … one and one that waits for
// W. zb-h2: stage 0 F0 F1 F2 B0 …; stage 1 F0 B0 F1 B1 F2 B2 W0 … one and two that wait.
TEST_CASE("a study's stages hold until W what W needs", "[study][memory]") {
  const double fixed = 1000 * (4 + 4) + 8e6;
  const auto peaks = [&](const char* schedule) {
    std::vector<double> megabytes;
    for (const Bytes peak : run_of("none", schedule).metrics.peak_memory) {
      megabytes.push_back(std::round((peak.value - fixed) / 1e6));
    }
    return megabytes;
  };
  CHECK(peaks("zb-h1") == std::vector<double>{40, 20 + 4});
  CHECK(peaks("zb-h2") == std::vector<double>{60, 20 + 4 + 4});
}

TEST_CASE("a plan says itself what it recomputes; what the training asks beside it is said not to be done",
          "[study][recompute]") {
  const auto note = [](const std::string& asked, Recompute of_plan) {
    Study read = study(gelu_study(asked, "1f1b"));
    Plan plan{.strategy = "given"};
    plan.stages = {{.operators = {0, 1}, .devices = {0}, .recompute = of_plan},
                   {.operators = {2, 3}, .devices = {1}, .recompute = of_plan}};
    read.plans = {plan};
    read.strategies.clear();
    ScheduleCounts counts;
    StudyMemo memo(read, counts);
    return compare(memo).comparison.runs.front().note;
  };
  const std::string unheeded = " is not carried out: the plan says itself what its stages recompute";
  CHECK(note("none", Recompute::none).empty());
  CHECK(note("full", Recompute::none) == "training.recompute full" + unheeded);
  CHECK(note("full", Recompute::full).empty());
  CHECK(note("none", Recompute::full).empty()); // nobody asked for anything
  CHECK(note("{kinds: [elementwise]}", Recompute::full) == "training.recompute selective" + unheeded);
}

TEST_CASE("results say what was recomputed and when", "[study][recompute]") {
  CHECK(to_text(run_of("none", "1f1b").recompute) == "none");
  CHECK(to_text(run_of("full", "1f1b").recompute) == "full");
  const Run run = run_of("{kinds: [elementwise], when: lazy, skip_after_forward: true, except_last: true}", "1f1b");
  CHECK(to_text(run.recompute) == "selective, lazy, not right after its forward, not of the last micro-batch");
  CHECK(run.stages[0].recompute == "selective");
  CHECK(run.stages[0].recomputed == std::vector<std::string>{"g"});
  CHECK(run.stages[1].recomputed == std::vector<std::string>{"h"});
  const Run first = run_of("{operators: [a]}", "1f1b"); // none of stage 1
  CHECK(first.recompute.what == "selective");
  CHECK(first.stages[1].recompute == "none");
}

TEST_CASE("several choices are an axis of a comparison", "[study][recompute]") {
  const Comparison comparison =
      compare_text(gelu_study("[none, full, {when: lazy}, {kinds: [elementwise]}]", "1f1b")).comparison;
  std::vector<std::pair<std::string, double>> ranked;
  for (const Run& run : comparison.runs) {
    ranked.emplace_back(to_text(run.recompute), std::round(run.metrics.iteration.value));
  }
  CHECK(ranked ==
        std::vector<std::pair<std::string, double>>{{"none", 30}, {"selective", 34}, {"full", 38}, {"full, lazy", 40}});
}

// On one device of 60 MB, all of 20 + 20 a micro-batch: four are 160. With the element-wise recomputed 4 (8 + 8) + 32
// is 96; with all of it 40.
TEST_CASE("memory decides what must be recomputed", "[study][recompute]") {
  const auto one_device = [](const char* memory) {
    return compare_text("model: gelu.yaml\nplatform: {devices: 1, memory: " + std::string(memory) +
                        "}\ntraining: {global_batch: 4, micro_batches: 4, optimizer: sgd, recompute: [none, full, "
                        "{kinds: [elementwise]}]}\ncompare: {strategies: [single], schedules: [gpipe]}\n")
        .comparison;
  };
  const auto feasible = [](const Comparison& comparison) {
    std::vector<std::string> names;
    for (const Run& run : comparison.runs) {
      if (run.feasible) {
        names.push_back(run.recompute.what);
      }
    }
    return names;
  };
  CHECK(feasible(one_device("161 MB")) == std::vector<std::string>{"none", "selective", "full"});
  CHECK(feasible(one_device("97 MB")) == std::vector<std::string>{"selective", "full"});
  CHECK(feasible(one_device("95 MB")) == std::vector<std::string>{"full"});
  CHECK(feasible(one_device("39 MB")).empty());
}

// All work is done once, and R as often as the rule says; nobody shares a link, so engines agree.
TEST_CASE("every schedule recomputes under every rule, in every engine", "[study][recompute]") {
  for (const char* rule : {"full", "{when: lazy}", "{kinds: elementwise}", "{skip_after_forward: true}",
                           "{except_last: true, when: lazy}"}) {
    std::vector<Comparison> of_engines;
    for (const EngineRow& engine : kEngines) {
      of_engines.push_back(compare_text("model: gelu.yaml\nplatform: {devices: 2}\ntraining: {global_batch: 4, "
                                        "micro_batches: 4, step: local, recompute: " +
                                        std::string(rule) + "}\nengine: " + std::string(engine.name) + "\n" +
                                        "compare: {strategies: [uniform], schedules: all}\n")
                               .comparison);
    }
    std::size_t feasible = 0;
    for (const ScheduleRow& row : schedules()) {
      const Run& expected = find_run(of_engines.front(), "uniform", row.name, 4);
      CAPTURE(rule, row.name, expected.why_not);
      feasible += expected.feasible ? 1 : 0;
      for (const Comparison& other : of_engines) {
        const Run& run = find_run(other, "uniform", row.name, 4);
        REQUIRE(run.feasible == expected.feasible);
        if (run.feasible) {
          CHECK(run.metrics.iteration.value == near(expected.metrics.iteration.value));
          CHECK(run.metrics.peak_memory == expected.metrics.peak_memory);
        }
      }
      if (expected.feasible) {
        double busy = 0;
        for (const Seconds one : expected.metrics.busy) {
          busy += one.value;
        }
        const double again = rule == std::string("{kinds: elementwise}") ? 2 * 4 : 4 * 4;
        const bool skips = std::string(rule).find("true") != std::string::npos;
        CHECK((skips ? busy <= 48 + again + 1e-6 : busy == near(48 + again)));
      }
    }
    CHECK(feasible >= schedules().size() - 3); // two devices are few for some
  }
}

TEST_CASE("a plan says what it recomputes, the study when", "[study][recompute]") {
  const Study read = study(gelu_study("[none, full, {when: lazy}]", "1f1b"));
  Plan plan{.stages = {{.operators = {0, 1}, .devices = {0}, .recompute = Recompute::full},
                       {.operators = {2, 3}, .devices = {1}, .recompute = Recompute::full}}};
  plan.strategy = "given";
  Study with_plan = study(gelu_study("[none, full, {when: lazy}]", "1f1b"));
  with_plan.strategies.clear();
  with_plan.plans.push_back(plan);
  ScheduleCounts counts;
  StudyMemo memo(with_plan, counts);
  const Comparison comparison = compare(memo).comparison;
  REQUIRE(comparison.runs.size() == 2); // none and full are the same to it
  CHECK(comparison.runs[0].metrics.iteration.value == near(38));
  CHECK(comparison.runs[1].metrics.iteration.value == near(40));
}

TEST_CASE("an order with its own recompute is kept as it is, and needs a plan that recomputes", "[study][recompute]") {
  // One device, four operators of 4 s and 8 s in all, two micro-batches; only the first runs again, in 4 s.
  Schedule orders{.name = "mine", .stages = 1, .micro_batches = 2};
  orders.orders = {{{TaskKind::forward, 0, 0},
                    {TaskKind::forward, 1, 0},
                    {TaskKind::recompute, 0, 0},
                    {TaskKind::backward, 0, 0},
                    {TaskKind::backward, 1, 0}}};
  const auto replayed = [&](const char* recompute) {
    const Study read = study("model: gelu.yaml\nplatform: {devices: 1}\ntraining: {global_batch: 2, micro_batches: 2, "
                             "optimizer: sgd, recompute: " +
                             std::string(recompute) + "}\n");
    ScheduleCounts counts;
    StudyMemo memo(read, counts);
    const Scenario scenario{
        .strategy = &find_by_name(strategies(), "single", "strategy", {}), .orders = &orders, .micro_batches = 2};
    return run_scenario(memo, scenario).run;
  };
  CHECK(replayed("full").metrics.iteration.value == near(2 * 12 + 4));
  CHECK(replayed("none").why_not ==
        "the schedule recomputes stage 0, the plan does not; allowed: training.recompute, or recompute of the plan's "
        "stage");
}

// GPT of 40 layers of 1536 features, eight samples of 1024 tokens at a time on one V100 of 32 GB (Shoeybi et al. 2019,
// weak scaling). Of a layer backward needs 34 s b h + 5 a s^2 b bytes, 40 times 1.0 GiB, unless its blocks run again.
TEST_CASE("Megatron-LM's GPT of 1.2 billion parameters fits the V100 that it was trained on, by recompute",
          "[study][memory]") {
  const std::string text =
      "model:\n  workload:\n    name: gpt\n    input: {shape: [1024]}\n    blocks:\n      - name: layer\n"
      "        layers:\n"
      "          - {name: norm1, kind: layer_norm}\n"
      "          - {name: qkv, kind: linear, features: 4608}\n"
      "          - {name: attention, kind: attention, heads: 16, causal: true}\n"
      "          - {name: projection, kind: linear, features: 1536}\n"
      "          - {name: add1, kind: add, inputs: [$input, projection]}\n"
      "          - {name: norm2, kind: layer_norm}\n"
      "          - {name: expand, kind: linear, features: 6144}\n"
      "          - {name: gelu, kind: gelu}\n"
      "          - {name: contract, kind: linear, features: 1536}\n"
      "          - {name: add2, kind: add, inputs: [add1, contract]}\n"
      "    layers:\n"
      "      - {name: embedding, kind: embedding, vocabulary: 51200, positions: 1024, features: 1536}\n"
      "      - {block: layer, name: layer, repeat: 40}\n"
      "      - {name: norm, kind: layer_norm}\n"
      "      - {name: head, kind: linear, features: 51200, bias: false, tied: true}\n"
      "      - {name: loss, kind: cross_entropy}\n"
      "platform: {name: one, nodes: [{name: n, devices: [{type: v100-sxm3-32gb, count: 1}], host: {cores: 16, "
      "core_speed: 30 GFLOP/s, memory: 256 GiB, memory_bandwidth: 100 GB/s, disk_bandwidth: 2 GB/s, power: {idle: 1 W, "
      "core_busy: 1 W, core_spin: 1 W}}}]}\n"
      "training: {framework: megatron-lm-2021, optimizer: adam, precision: fp16, global_batch: 8, micro_batch_size: 8, "
      "parallel: {tensor: 1, pipeline: 1}}\n"
      "compare: {strategies: [mesh], schedules: [1f1b]}\n";
  constexpr double kWeights = 51200 * 1536 + 1024 * 1536 + 40 * 12 * 1536.0 * 1536.0; // 1.21 billion, but for biases
  const Study read = study(text);
  double parameters = 0;
  for (const Operator& op : read.model->operators) {
    parameters += op.parameters;
  }
  CHECK(parameters == Approx(kWeights).epsilon(1e-3));
  const auto run = [&](const std::string& recompute) {
    return compare_text(text, {{"training.recompute", recompute}}).comparison.runs.front();
  };
  CHECK(run("blocks").why_not.empty());
  CHECK_THAT(run("none").why_not, Catch::Contains("32.00 GiB"));
}

} // namespace
} // namespace stagecraft::test
