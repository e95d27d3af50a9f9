// Given degrees in a study: what a pipeline of groups costs by hand, under every strategy that can make one, and what
// is refused.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/workload/blocks.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// Four operators of F 1 s and B 2 s a sample, so that a stage of two takes 6 s a sample.
std::string chain_on_four(const std::string& parallel, const std::string& batch, const std::string& compare) {
  return chain_study("training: {" + batch + ", parallel: " + parallel + "}\ncompare: " + compare + "\n",
                     "{devices: 4}");
}

// The transformer layers of a GPT-2 on one node of eight V100.
std::string gpt2(const std::string& parallel, const std::string& strategies, const std::string& batch) {
  return "model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {" + batch +
         ", precision: fp16, optimizer: adam, parallel: " + parallel + "}\ncompare: {strategies: " + strategies +
         ", schedules: [1f1b]}\n";
}

const Run& only(const ComparisonResult& result) {
  REQUIRE(result.comparison.runs.size() == 1);
  return result.comparison.runs.front();
}

// How many of the blocks "layer.N" each stage has.
std::vector<int> layers_of(const Run& run) {
  std::vector<int> counts;
  for (const RunStage& stage : run.stages) {
    std::set<std::string> layers;
    for (const std::string& name : stage.operators) {
      if (name.starts_with("layer.")) {
        layers.insert(name.substr(0, name.find('.', 6)));
      }
    }
    counts.push_back(static_cast<int>(layers.size()));
  }
  return counts;
}

// Two replicas of two stages, two micro-batches of two samples: each replica has one sample of each, so a stage takes
// 6 s and the pipeline (2 + 2 - 1) 6 s. Without replicas a micro-batch has both samples: (2 + 4 - 1) stages of 6 s.
TEST_CASE("replicas of a pipeline share every micro-batch", "[study][mesh]") {
  const std::string compare = "{strategies: [mesh], schedules: [1f1b]}";
  const std::string batch = "global_batch: 4, micro_batches: 2, optimizer: sgd";
  const Run two = only(compare_text(chain_on_four("{pipeline: 2}", batch, compare)));
  REQUIRE(two.feasible);
  CHECK(two.metrics.iteration.value == near(18));
  REQUIRE(two.stages.size() == 2);
  CHECK(two.stages[0].data_parallel == 2);
  CHECK(two.stages[0].devices.size() == 2);
  const Run four = only(compare_text(chain_on_four("{data: 1}", batch, compare)));
  CHECK(four.stages.size() == 4);
  CHECK(four.metrics.iteration.value == near((2 + 4 - 1) * 6));
}

TEST_CASE("ranks stand in the order that the study asks for", "[study][mesh]") {
  const auto first_stage = [](const std::string& order) {
    return only(compare_text(chain_on_four("{pipeline: 2, data: 2, order: " + order + "}",
                                           "global_batch: 4, micro_batches: 2",
                                           "{strategies: [mesh], schedules: [gpipe]}")))
        .stages[0]
        .devices;
  };
  const Study all = study(chain_study("", "{devices: 4}"));
  const auto name = [&](int device) { return all.platform.devices[device].name; };
  CHECK(first_stage("tensor-data-pipeline") == std::vector<std::string>{name(0), name(1)});
  CHECK(first_stage("tensor-pipeline-data") == std::vector<std::string>{name(0), name(2)});
}

// 12 layers: 5 stages get 2, and the two left over go to the middle: 2 3 3 2 2 from the third of five on.
TEST_CASE("mesh gives every stage as many layers, those left over to the middle", "[study][mesh]") {
  const Run eight = only(compare_text(gpt2("{data: 1}", "[mesh]", "global_batch: 8, micro_batches: 8")));
  REQUIRE(eight.feasible);
  CHECK(layers_of(eight) == std::vector<int>{1, 1, 2, 2, 2, 2, 1, 1}); // 12 = 8 + 4, from stage (8 - 4) / 2 on
  CHECK(eight.stages.front().operators.front() == "embedding");
  CHECK(eight.stages.back().operators.back() == "loss");
}

// Every group has the same devices and links, so what a strategy minimises over groups is what the whole plan has,
// where no cut falls between an operator and the one that gathers for it.
TEST_CASE("the least bottleneck over groups is the bottleneck of the plan", "[study][mesh]") {
  for (const auto& [parallel, micro_batches] :
       {std::pair{"{tensor: 2, data: 2}", 4}, std::pair{"{tensor: 2, sequence: true, data: 2}", 8},
        std::pair{"{tensor: 4, sequence: true, data: 1}", 8}, std::pair{"{data: 4}", 4}}) {
    CAPTURE(parallel);
    const std::string batch = "global_batch: 16, micro_batches: " + std::to_string(micro_batches);
    const Run run = only(compare_text(gpt2(parallel, "[optimal]", batch)));
    REQUIRE(run.feasible);
    REQUIRE(run.objective);
    CHECK(run.objective->value.value == near(run.bottleneck.value));
    CHECK(run.bottleneck.value > 0);
  }
}

// Two samples at a time it cuts between queries, keys and values and the attention that reads them, which then has to
// gather them; a search over times of operators does not see what only a border exchanges.
TEST_CASE("what only a stage's border exchanges comes on top of the least bottleneck", "[study][mesh]") {
  const Run run = only(
      compare_text(gpt2("{tensor: 4, sequence: true, data: 1}", "[optimal]", "global_batch: 16, micro_batches: 4")));
  REQUIRE(run.objective);
  REQUIRE(run.stages.size() == 2);
  CHECK(run.bottleneck.value > run.objective->value.value);
  // `optimal` itself cuts behind the product that divides heads, which its stage would then compute whole: 1.1 % more.
  CHECK(run.stages.back().operators.front() == "layer.7.qkv");
  CHECK(run.bottleneck.value < 1.01 * run.objective->value.value);
}

// What such a stage begins with reads what only the product before it divides. `dynamic` keeps the plan that it
// measured; the stages of `eft` are single operators, which leave no other place to cut.
const std::set<std::string_view> kCutAnywhere = {"dynamic", "eft"};

TEST_CASE("no planner over tensor groups cuts between a product and what it divides", "[study][mesh][conformance]") {
  const auto asked = [](const std::string& degrees, const std::string& recompute, const std::string& schedules) {
    return compare_text("model: gpt2\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: 16, "
                        "micro_batches: 4, precision: bf16, optimizer: adam, recompute: " +
                        recompute + ", parallel: {" + degrees +
                        "}}\ncompare: {strategies: all, schedules: " + schedules + "}\n");
  };
  for (const auto& [degrees, recompute] : {std::pair("tensor: 2, sequence: true, data: 2, pipeline: 2", "none"),
                                           std::pair("tensor: 2, data: 1, pipeline: 4", "selective"),
                                           std::pair("tensor: 4, sequence: true, pipeline: 2", "{first: 1}")}) {
    const ComparisonResult result = asked(degrees, recompute, "[1f1b, zb-v]");
    // Plans do not depend on which schedule is asked for first.
    const ComparisonResult turned = asked(degrees, recompute, "[zb-v, 1f1b]");
    int stages = 0;
    for (const Run& run : result.comparison.runs) {
      CAPTURE(degrees, recompute, run.strategy, run.schedule);
      const Run& same = find_run(turned.comparison, run.strategy, run.schedule, run.micro_batches);
      CHECK(same.feasible == run.feasible);
      CHECK((!run.feasible || same.metrics.iteration == run.metrics.iteration));
      for (std::size_t at = 1; run.feasible && !kCutAnywhere.contains(run.strategy) && at < run.stages.size(); ++at) {
        const std::string& first = run.stages[at].operators.front();
        CAPTURE(first);
        for (const char* const divided : {".attention", ".projection", ".gelu", ".contract"}) {
          CHECK_FALSE(first.ends_with(divided));
        }
        ++stages;
      }
    }
    CHECK(stages > 20);
  }
}

// Those of which a device has the whole model, and the reference, which asks others.
const std::set<std::string_view> kNotOverGroups = {"single", "data-parallel", "framework", "best-known"};

TEST_CASE("every strategy that cuts the model keeps the degrees, no other has a plan", "[study][mesh][conformance]") {
  std::string names;
  for (const StrategyRow& row : strategies()) {
    names += (names.empty() ? "[" : ", ") + std::string(row.name);
  }
  const ComparisonResult result =
      compare_text(gpt2("{tensor: 2, sequence: true, data: 2}", names + "]", "global_batch: 16, micro_batches: 4"));
  for (const StrategyRow& row : strategies()) {
    CAPTURE(row.name);
    const Run& run = find_run(result.comparison, row.name, "1f1b", 4);
    CHECK(run.feasible != kNotOverGroups.contains(row.name));
    if (!run.feasible) {
      CHECK_THAT(run.why_not, Catch::Contains("makes no pipelines of groups, as training.parallel asks for"));
      continue;
    }
    std::size_t operators = 0;
    for (const RunStage& stage : run.stages) {
      CHECK(stage.tensor_parallel == 2);
      CHECK(stage.sequence_parallel);
      CHECK(stage.streams == 1);
      CHECK(stage.data_parallel % 2 == 0); // a strategy may give several groups to a stage
      operators += stage.operators.size();
    }
    CHECK(operators == static_cast<std::size_t>(study(gpt2("{}", "[mesh]", "global_batch: 1")).model->size()));
    CHECK(run.lower_bound.value <= run.metrics.iteration.value * (1 + 1e-9));
  }
}

// `eft` and `heft`, which fill a group before they take the next, have no room on these eight.
TEST_CASE("under Llama-3 8B every strategy of pipelines plans with given degrees", "[study][mesh][conformance]") {
  for (const char* zero : {"1", "3"}) { // units of weights are gathered by more replicas than a planner sees devices
    const ComparisonResult result = compare_text(
        "model: llama3-8b\nplatform: dgx-h100\nengine: analytic\ntraining: {global_batch: 16, micro_batches: 4, "
        "precision: bf16, optimizer: adam, parallel: {tensor: 2, sequence: true, data: 2, zero: " +
        std::string(zero) + "}}\ncompare: {strategies: all, schedules: [1f1b]}\n");
    for (const StrategyRow& row : strategies()) {
      if (kNotOverGroups.contains(row.name) || row.name == "eft" || row.name == "heft") {
        continue;
      }
      CAPTURE(row.name, zero);
      const Run& run = find_run(result.comparison, row.name, "1f1b", 4);
      CHECK(run.why_not.empty());
      for (const RunStage& stage : run.stages) {
        CHECK(stage.tensor_parallel == 2);
      }
    }
  }
}

// A micro-batch of four samples on two replicas of two devices each. In two stages, each of which takes 12 s for its
// replica's two samples, it is through after 24 s; whole on all four, a sample each, after 4 x 3 s.
TEST_CASE("a strategy that chooses degrees chooses how many groups a stage has", "[study][mesh]") {
  for (const char* strategy : {"amp", "piper"}) {
    CAPTURE(strategy);
    const std::string compare = "{strategies: [" + std::string(strategy) + "], schedules: [1f1b]}";
    const Run whole =
        only(compare_text(chain_on_four("{data: 2}", "global_batch: 4, micro_batches: 1, optimizer: sgd", compare)));
    REQUIRE(whole.stages.size() == 1);
    CHECK(whole.stages.front().data_parallel == 4);
    CHECK(whole.metrics.iteration.value == near(12));
    // Of two samples a micro-batch, four replicas would have halves.
    const Run two =
        only(compare_text(chain_on_four("{data: 2}", "global_batch: 4, micro_batches: 2, optimizer: sgd", compare)));
    REQUIRE(two.stages.size() == 2);
    CHECK(two.stages.front().data_parallel == 2);
    CHECK(two.metrics.iteration.value == near(18));
  }
}

// A search may choose what any rule does, so on the same devices it takes no longer, with all that an iteration has.
TEST_CASE("a mesh is laid out by the rule that the study names", "[study][mesh]") {
  const auto run_of = [](const std::string& rule) {
    const Run run = only(compare_text(gpt2("{tensor: 4, data: 2, tensor_rule: " + rule + "}", "[mesh]",
                                           "global_batch: 16, micro_batches: 4, exchange_beside: false")));
    REQUIRE(run.feasible);
    CHECK(run.stages.front().tensor_rule == rule.substr(0, rule.find(',')));
    CHECK(run.lower_bound.value <= run.metrics.iteration.value * (1 + 1e-9));
    CHECK(run.bottleneck.value > 0);
    return run.metrics.iteration.value;
  };
  for (const std::string sequence : {"false", "true"}) {
    const double found = run_of("search, sequence: " + sequence);
    for (const TensorRuleRow& row : kTensorRules) {
      CAPTURE(row.name, sequence);
      CHECK(found <= run_of(std::string(row.name) + ", sequence: " + sequence) * (1 + 1e-9));
    }
  }
  CHECK(run_of("torchtitan") == near(run_of("megatron, sequence: true"))); // every product of GPT-2 has a partner
  CHECK(run_of("torchtitan") < run_of("torchtitan-whole-loss"));
}

// Of 124 M parameters in fp16 with Adam a device holds 2 + 2 bytes each, and 12 more for the optimiser, which eight
// replicas share. A ring's reduce-scatter and all-gather are its all-reduce, and each steps an eighth.
TEST_CASE("replicas that share the optimiser hold and step an eighth of it", "[study][mesh][zero]") {
  const auto run_of = [](const std::string& zero) {
    return only(compare_text("model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 8, "
                             "precision: fp16, optimizer: adam, all_reduce: ring, parallel: {data: 8" +
                             zero + "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n"));
  };
  const Run whole = run_of("");
  const Run shared = run_of(", zero: 1");
  REQUIRE(whole.feasible);
  REQUIRE(shared.feasible);
  const double parameters = totals_of(*study(gpt2("{}", "[mesh]", "global_batch: 1")).model).parameters;
  for (std::size_t device = 0; device < 8; ++device) {
    CHECK((whole.metrics.peak_memory[device] - shared.metrics.peak_memory[device]).value ==
          near(12 * parameters * 7 / 8));
  }
  // A step reads weight, gradient and states, and writes weight and states: 3 * 2 + 2 * 12 bytes a parameter.
  const double bandwidth = study(gpt2("{}", "[mesh]", "global_batch: 1")).platform.types.front().memory_bandwidth.value;
  const double saved = (whole.metrics.iteration - shared.metrics.iteration).value;
  CHECK(saved == Approx(30 * parameters * 7 / 8 / bandwidth).epsilon(1e-6));
  CHECK(shared.estimate.value == Approx(shared.metrics.iteration.value).epsilon(1e-6));
}

// Of a parameter in fp16 with Adam a device holds 2 B of weight, 2 of gradient and 12 of the optimiser, or its eighth
// of each; and of GPT-2's units, of which the embedding is the largest and stands beside a block, two at a time.
TEST_CASE("replicas hold their part of what they share, and the units at hand", "[study][mesh][zero]") {
  const auto run_of = [](const std::string& keys) {
    return only(compare_text("model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 8, "
                             "precision: fp16, optimizer: adam, parallel: {data: 8, " +
                             keys + "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n"));
  };
  const Study asked = study(gpt2("{}", "[mesh]", "global_batch: 1"));
  const double parameters = totals_of(*asked.model).parameters;
  double embedding = 0, block = 0;
  for (const Operator& op : asked.model->operators) {
    block += is_in_numbered_block(op.name) ? op.parameters / 12 : 0;
    embedding += op.kind == KernelKind::embedding ? op.parameters : 0;
  }
  const double two = 2 * (embedding + block); // bytes of weights, and of gradients
  const double whole = run_of("zero: 0").metrics.peak_memory[0].value;
  const auto saved = [&](const std::string& keys) { return whole - run_of(keys).metrics.peak_memory[0].value; };
  const double shared = 7.0 / 8 * parameters;
  CHECK(saved("zero: 1") == near(12 * shared));
  CHECK(saved("zero: 1, gather: before-use") == near(12 * shared));
  CHECK(saved("zero: 2, reduce: last-micro-batch") == near(12 * shared));
  CHECK(saved("zero: 3, reshard: after-step, reduce: last-micro-batch") == near(12 * shared));
  CHECK(saved("zero: 3, reshard: after-backward") == near(14 * shared - two));
  CHECK(saved("zero: 3") == near(16 * shared - 2 * two));
  CHECK(saved("zero: 3, shard: 4") == near(16 * 0.75 * parameters - 2 * two));
  CHECK(saved("zero: 3, prefetch: 0") == near(16 * shared - two - 2 * embedding));
}

TEST_CASE("a recipe's rules of gathering give way to degrees that gather nothing so", "[study][mesh][zero]") {
  for (const char* recipe : {"llm-foundry", "megatron-bridge", "torchtitan"}) {
    for (const char* zero : {"0", "1", "2", "3", "1, gather: after-step", "1, gather: before-use"}) {
      INFO(recipe << ", zero " << zero);
      CHECK(only(compare_text(
                     std::string("model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {framework: ") +
                     recipe + ", global_batch: 8, precision: fp16, parallel: {data: 8, zero: " + zero +
                     "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n"))
                .feasible);
    }
  }
}

// 2 B more of each parameter, in memory, in a ring's 7/8 each way over the slowest link, and read by the step.
TEST_CASE("gradients of 16-bit trainings can be accumulated in single precision", "[study][mesh]") {
  const auto run_of = [](const std::string& keys) {
    return only(compare_text("model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 8, "
                             "precision: fp16, optimizer: adam, all_reduce: ring" +
                             keys + ", parallel: {data: 8}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n"));
  };
  const Run half = run_of(""), single = run_of(", gradient_precision: fp32");
  CHECK(run_of(", gradient_precision: fp16").metrics.iteration.value == near(half.metrics.iteration.value));
  const Study asked = study(gpt2("{}", "[mesh]", "global_batch: 1"));
  const double parameters = totals_of(*asked.model).parameters;
  CHECK((single.metrics.peak_memory[0] - half.metrics.peak_memory[0]).value == near(2 * parameters));
  Router router(asked.platform);
  const auto reduced = [&](double bytes) {
    const std::vector<Way> ways = ways_of(CollectiveKind::all_reduce, {0, 1, 2, 3, 4, 5, 6, 7}, router, "ring");
    return seconds_of(fastest_of(ways, Bytes{bytes}).flows, Bytes{bytes});
  };
  const Seconds read = Bytes{2 * parameters} / asked.platform.types.front().memory_bandwidth;
  CHECK((single.metrics.iteration - half.metrics.iteration).value ==
        Approx((reduced(4 * parameters) - reduced(2 * parameters) + read).value).epsilon(1e-6));
  CHECK_THAT(error_of([&] { run_of(", gradient_precision: bf16"); }), Catch::Contains("allowed: fp16, fp32"));
}

// All that is gathered and reduced once an iteration, by unit or not, is as much; by unit some of it is hidden.
TEST_CASE("parameters gathered before their use come beside the first forward", "[study][mesh][zero]") {
  const auto run_of = [](const std::string& keys) {
    return only(compare_text("model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 8, "
                             "precision: fp16, optimizer: adam, gradient_bucket: 25 MB, all_reduce: ring, parallel: "
                             "{data: 8, " +
                             keys + "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n"));
  };
  const Run at_once = run_of("zero: 1"), before_use = run_of("zero: 1, gather: before-use");
  CHECK(before_use.metrics.iteration < at_once.metrics.iteration);
  CHECK(before_use.estimate.value == near(before_use.metrics.iteration.value));
  const Run weights = run_of("zero: 3, reshard: after-step, reduce: last-micro-batch");
  CHECK(weights.estimate.value == near(weights.metrics.iteration.value));
  CHECK(weights.stages.front().zero == 3);
}

// GPT-2 in fp16 with Adam, adapters of rank 8: a device holds 2 B of each frozen parameter, and 2 + 2 + 4 + 8 of each
// trained one; the gradients that replicas reduce are the adapters' alone.
TEST_CASE("frozen weights take memory, and have neither gradients nor states", "[study][mesh][lora]") {
  const auto run_of = [](const std::string& model) {
    return only(compare_text("model: " + model +
                             "\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 8, precision: fp16, "
                             "optimizer: adam, recompute: full, parallel: {data: 8}}\ncompare: {strategies: [mesh], "
                             "schedules: [1f1b]}\n"));
  };
  const std::string adapted = "{file: gpt2, lora: 8}";
  const Run run = run_of(adapted);
  REQUIRE(run.feasible);
  const Study asked = study("model: " + adapted + "\nplatform: nvlink-v100\ntraining: {precision: fp16}\n");
  const ModelTotals totals = totals_of(*asked.model);
  CHECK(totals.frozen == 124439808);
  // Adapters of 768 -> 2304, 768 -> 768, 768 -> 3072 and back in 12 layers.
  CHECK(totals.parameters == 12 * 8 * (768 + 2304 + 768 + 768 + 2 * (768 + 3072)));
  double resident = 0;
  for (const Operator& op : asked.model->operators) {
    resident += op.resident_bytes;
  }
  CHECK(resident == near(2 * totals.frozen));
  CHECK(run.metrics.peak_memory[0].value > 2 * totals.frozen + 16 * totals.parameters);
  CHECK(run.metrics.peak_memory[0] < run_of("gpt2").metrics.peak_memory[0]);
  CHECK((run_of("gpt2").metrics.peak_memory[0] - run.metrics.peak_memory[0]).value ==
        Approx(14 * totals.frozen - 16 * totals.parameters).epsilon(0.2)); // and what the products keep
  CHECK(run.lower_bound <= run.metrics.iteration);
}

TEST_CASE("a schedule without a pause between iterations has no place to gather parameters", "[study][mesh][zero]") {
  const ComparisonResult result = compare_text(
      "model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 16, micro_batches: 4, "
      "precision: fp16, parallel: {data: 4, pipeline: 2, zero: 1}}\ncompare: {strategies: [mesh], "
      "schedules: [1f1b, pipedream, pipedream-2bw]}\n");
  for (const Run& run : result.comparison.runs) {
    CAPTURE(run.schedule);
    CHECK(run.feasible == (run.schedule == "1f1b"));
    if (!run.feasible) {
      CHECK_THAT(run.why_not,
                 Catch::Contains("replicas that share the optimiser gather parameters between iterations"));
    }
  }
}

TEST_CASE("all strategies are those that cut the model where degrees are given, and mesh is none of them where not",
          "[study][mesh]") {
  const Study given = study(gpt2("{tensor: 2}", "all", "global_batch: 8"));
  CHECK(given.strategies.size() == strategies().size() - kNotOverGroups.size());
  for (const StrategyRow* row : given.strategies) {
    CHECK_FALSE(kNotOverGroups.contains(row->name));
  }
  const auto is_mesh = [](const StrategyRow* row) { return row->name == "mesh"; };
  CHECK(std::any_of(given.strategies.begin(), given.strategies.end(), is_mesh));
  const Study free = study(chain_study(""));
  CHECK(std::none_of(free.strategies.begin(), free.strategies.end(), is_mesh));
}

// Six operators of F 1 s and B 2 s. In equal shares both stages have three, so that two micro-batches take (2 + 2 - 1)
// 9 s. With one and five under 1F1B the second stage begins at 1, has F and B of 5 and 10 s twice, and the first one
// then a B of 2 s.
TEST_CASE("mesh gives each stage the layers that the study gives it", "[study][mesh][layout]") {
  const auto seconds = [](const std::string& layers) {
    const Run run = only(compare_text(
        "model: blocks.yaml\nplatform: {devices: 2}\ncost_model: constant\ntraining: {global_batch: 2, micro_batches: "
        "2, optimizer: sgd, parallel: {data: 1" +
        layers + "}}\ncompare: {strategies: mesh, schedules: 1f1b}\n"));
    REQUIRE(run.feasible);
    return run.metrics.iteration.value;
  };
  CHECK(seconds("") == near(3 * 9));
  CHECK(seconds(", layers: \"Et|tL\"") == near(3 * 9));
  CHECK(seconds(", layers: \"E|ttL\"") == near(1 + 2 * (5 + 10) + 2));
}

// A sample takes 3 s of each layer and of what is before them, and 12 s of the head. In equal shares the last stage
// takes 6 + 12; with one layer it takes 15, and of the 24 s in front stages of 6, 9 and 9 are the most equal, in
// whatever order: with more layers behind, where fewer micro-batches are in flight. On two devices 3 + 15 and 9 + 12,
// rather than 3 + 18 and 6 + 12. Eight stages have a layer each, whatever it takes.
TEST_CASE("mesh gives stages whole layers by their time", "[study][mesh][layout]") {
  const auto run_of = [](int devices, const std::string& more) {
    return only(compare_text("model: heavy-head.yaml\nplatform: {devices: " + std::to_string(devices) +
                             "}\ntraining: {global_batch: 4, micro_batches: 4, optimizer: sgd, parallel: {data: 1" +
                             more + "}}\ncompare: {strategies: mesh, schedules: 1f1b}\n"));
  };
  CHECK(layers_of(run_of(4, "")) == std::vector<int>{2, 2, 2, 2});
  CHECK(layers_of(run_of(4, ", layers: by-time")) == std::vector<int>{1, 3, 3, 1});
  CHECK(layers_of(run_of(2, ", layers: By-Time")) == std::vector<int>{5, 3});
  CHECK(layers_of(run_of(8, ", layers: by-time")) == std::vector<int>(8, 1));
  CHECK(run_of(4, ", layers: by-time").metrics.iteration.value < run_of(4, "").metrics.iteration.value);
  CHECK_THAT(run_of(9, ", layers: by-time").why_not, Catch::Contains("at most 8 stages"));
}

TEST_CASE("the pipeline's ranks and their stages follow from the layers", "[study][mesh][layout]") {
  const Run four = only(
      compare_text(gpt2("{layers: \"E,t*2|t*4|(t*3|)*1,t*3,L\"}", "[mesh]", "global_batch: 16, micro_batches: 4")));
  REQUIRE(four.feasible);
  CHECK(layers_of(four) == std::vector<int>{2, 4, 3, 3});
  CHECK(four.stages.front().operators.front() == "embedding");
  CHECK(four.stages.back().operators.back() == "loss");
  CHECK(four.stages.front().data_parallel == 2); // 8 devices

  const auto interleaved = [](const std::string& more, const std::string& schedules) {
    return compare_text("model: gpt2\nplatform: nvlink-v100\nengine: analytic\ntraining: {global_batch: 8, "
                        "micro_batches: 4, precision: fp16, parallel: {layers: \"Et|tt|t|tt|tt|t|tt|tL\", " +
                        more + "}}\ncompare: {strategies: [mesh], schedules: " + schedules + "}\n");
  };
  for (const char* more : {"pipeline: 4", "interleave: 2", "pipeline: 4, interleave: 2, data: 2"}) {
    CAPTURE(more);
    const Run run = only(interleaved(more, "[interleaved]"));
    REQUIRE(run.feasible);
    CHECK(layers_of(run) == std::vector<int>{1, 2, 1, 2, 2, 1, 2, 1});
    for (int s = 0; s < 4; ++s) { // stage s on rank s mod 4
      CHECK(run.stages[s].devices == run.stages[s + 4].devices);
    }
  }
  const Run plain = only(interleaved("pipeline: 4", "[1f1b]"));
  CHECK(plain.why_not ==
        "training.parallel.layers has 8 stages, and the schedule runs 1 on each of 4 ranks; allowed: a "
        "schedule that runs 2");
}

TEST_CASE("where layers are given, mesh takes them and no other strategy has a plan", "[study][mesh][layout]") {
  const std::string layers = "{pipeline: 2, layers: \"E,t*7|t*5,L\"}";
  const Study all = study(gpt2(layers, "all", "global_batch: 8"));
  REQUIRE(all.strategies.size() == 1);
  CHECK(all.strategies.front()->name == "mesh");
  for (const StrategyRow& row : strategies()) {
    CAPTURE(row.name);
    if (row.name != "mesh") {
      const Run run = only(compare_text(gpt2(layers, "[" + std::string(row.name) + "]", "global_batch: 8")));
      CHECK_FALSE(run.feasible);
      CHECK_THAT(run.why_not, Catch::Contains(row.keeps_degrees() ? "chooses the layers of each stage, which "
                                                                    "training.parallel.layers gives; allowed: mesh"
                                                                  : "makes no pipelines of groups"));
    }
  }
}

TEST_CASE("a stage of E or L alone needs something to hold", "[study][mesh][layout]") {
  const auto error = [](const std::string& layers) {
    return error_of([&] {
      study("model: bare.yaml\nplatform: {devices: 2}\ncost_model: constant\ntraining: {parallel: {layers: \"" +
            layers + "\"}}\n");
    });
  };
  CHECK(error("Et|tL").empty());
  CHECK(error("E|ttL") ==
        "study.yaml:4:31: stage 0 of 'layers' is E, and 'bare' has nothing before its numbered blocks; "
        "allowed: at least one t in that stage");
  CHECK_THAT(error("Ett|L"), Catch::Contains("stage 1 of 'layers' is L, and 'bare' has nothing behind its numbered"));
}

// The same layout as Megatron-LM's arguments, whose ranks stand likewise, and through both forms of plan files.
TEST_CASE("a plan of given layers is that of Megatron-LM's arguments, and is read back as it was written",
          "[study][mesh][layout]") {
  const std::string layout = "E,t*2|t*4|t*3|t*3,L";
  const Study asked = study(
      gpt2("{tensor: 2, sequence: true, layers: \"" + layout + "\"}", "[mesh]", "global_batch: 16, micro_batches: 4"));
  ScheduleCounts counts;
  StudyMemo memo(asked, counts);
  const Plan plan = compare(memo).prepared.front().plan;
  REQUIRE(plan.stages.size() == 4);
  const auto same = [&](const std::string& text, const char* format) {
    const Plan read = read_plan_text({text, "file", *asked.model, asked.platform}, format);
    REQUIRE(read.stages.size() == plan.stages.size());
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      CHECK(read.stages[s].operators == plan.stages[s].operators);
      CHECK(read.stages[s].devices == plan.stages[s].devices);
      CHECK(read.stages[s].axes() == plan.stages[s].axes());
    }
  };
  same(
      "WORLD_SIZE=8\n--num-layers 12 --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size "
      "4 --pipeline-model-parallel-layout \"" +
          layout + "\"\n",
      "megatron");
  for (const char* format : {"stagecraft", "megatron"}) {
    CAPTURE(format);
    const WrittenPlan written = write_plan(find_by_name(plan_formats(), format, "plan format", {}),
                                           {plan, *asked.model, asked.platform, asked.training, 4});
    REQUIRE(std::holds_alternative<std::string>(written));
    same(std::get<std::string>(written), format);
  }
}

// a and b on two devices take F 1 and B 2 s a sample, c and d on one F 2 and B 4 s; links cost nothing. Under 1F1B the
// second stage begins at 1, is busy for 2 x 6 s, and the first one then has its last B.
TEST_CASE("ranks of the pipeline have tensor groups of their own", "[study][mesh][ranks]") {
  const auto run_of = [](const std::string& parallel, const std::string& devices) {
    return only(compare_text(chain_study("training: {global_batch: 2, micro_batches: 2, optimizer: sgd, parallel: " +
                                             parallel + "}\ncompare: {strategies: mesh, schedules: 1f1b}\n",
                                         "{devices: " + devices + "}")));
  };
  const Run uneven = run_of("{data: 1, ranks: [{tensor: 2}, {}]}", "3");
  REQUIRE(uneven.feasible);
  CHECK(uneven.metrics.iteration.value == near(1 + 2 * 6 + 2));
  CHECK(uneven.stages[0].tensor_parallel == 2);
  CHECK(uneven.stages[1].tensor_parallel == 1);
  CHECK(uneven.lower_bound.value <= uneven.metrics.iteration.value);
  CHECK(run_of("{data: 1, ranks: [{tensor: 2}, {tensor: 2}]}", "4").metrics.iteration ==
        run_of("{data: 1, tensor: 2, pipeline: 2}", "4").metrics.iteration);
  CHECK(run_of("{ranks: [{tensor: 2}, {}]}", "4").why_not ==
        "training.parallel: ranks of 2 + 1 = 3 does not divide 4 devices; nearest that do: 2 or 4");
  const Run heads = only(compare_text(gpt2("{ranks: [{tensor: 3}, {tensor: 5}]}", "[mesh]", "global_batch: 8")));
  CHECK_THAT(heads.why_not, Catch::StartsWith("rank 1 of the pipeline: 2304 output features do not divide over 5"));
}

TEST_CASE("ranks and layers of several sizes go together, and into a plan file", "[study][mesh][ranks]") {
  const Study asked = study(gpt2("{sequence: true, layers: \"E,t*2|t*7|t*3,L\", ranks: [{tensor: 1}, {tensor: 2}, {}]}",
                                 "[mesh]", "global_batch: 16, micro_batches: 4"));
  ScheduleCounts counts;
  StudyMemo memo(asked, counts);
  const ComparisonResult result = compare(memo);
  REQUIRE(only(result).feasible);
  CHECK(layers_of(only(result)) == std::vector<int>{2, 7, 3});
  const Plan& plan = result.prepared.front().plan;
  CHECK(plan.stages[0].devices == std::vector<DeviceId>{0, 1}); // of two replicas
  CHECK(plan.stages[1].devices == std::vector<DeviceId>{2, 3, 4, 5});
  CHECK(plan.stages[1].sequence_parallel);
  CHECK_FALSE(plan.stages[2].sequence_parallel); // one device shares nothing
  const auto write = [&](const char* format) {
    return write_plan(find_by_name(plan_formats(), format, "plan format", {}),
                      {plan, *asked.model, asked.platform, asked.training, 4});
  };
  const WrittenPlan written = write("stagecraft");
  REQUIRE(std::holds_alternative<std::string>(written));
  const Plan read =
      read_plan_text({std::get<std::string>(written), "file", *asked.model, asked.platform}, "stagecraft");
  CHECK(read.stages == plan.stages);
  CHECK(std::holds_alternative<Infeasible>(write("megatron"))); // which has one mesh for all
}

// Shares of 64 samples in proportion to the speed of V100 and A100 at the whole model, in whole samples: what is left
// over goes to the largest remainders, here all of one type.
TEST_CASE("replicas share samples by their speed", "[study][mesh][shares]") {
  const auto text = [](const std::string& shares, const std::string& batch) {
    return "model: gpt2\nplatform: two-generations\nengine: analytic\ntraining: {" + batch +
           ", precision: fp16, parallel: {data: 8, shares: " + shares +
           "}}\ncompare: {strategies: mesh, schedules: accumulate}\n";
  };
  const Study asked = study(text("by-speed", "global_batch: 64"));
  ScheduleCounts counts;
  StudyMemo memo(asked, counts);
  const ComparisonResult result = compare(memo);
  REQUIRE(only(result).feasible);
  const Plan& plan = result.prepared.front().plan;
  const Problem& problem = memo.costs.problem(1, 0);
  double old_seconds = 0, new_seconds = 0; // of devices 0 to 3, and 4 to 7
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    old_seconds += problem.seconds(problem.type_index(0), op);
    new_seconds += problem.seconds(problem.type_index(4), op);
  }
  const double of_old = 64 / (4 + 4 * old_seconds / new_seconds);
  REQUIRE(plan.stages[0].shares.size() == 8);
  double all = 0;
  for (std::size_t replica = 0; replica < 8; ++replica) {
    const double samples = plan.stages[0].shares[replica] * 64;
    const double exact = replica < 4 ? of_old : 16 - of_old;
    CHECK(samples == near(std::round(samples)));
    CHECK(std::abs(samples - exact) < 1);
    all += samples;
  }
  CHECK(all == near(64));
  CHECK(only(result).metrics.iteration < only(compare_text(text("equal", "global_batch: 64"))).metrics.iteration);
  CHECK(only(compare_text(text("by-speed", "global_batch: 8, micro_batches: 2"))).why_not ==
        "replica 0 would get none of the 4 samples of a micro-batch; allowed: fewer micro-batches, or fewer replicas");
}

TEST_CASE("no strategy but mesh follows uneven degrees", "[study][mesh][ranks]") {
  for (const auto& [degrees, why] : std::vector<std::pair<std::string, std::string>>{
           {"{ranks: [{tensor: 2}, {tensor: 6}]}",
            "makes groups of one size, and training.parallel.ranks gives several"},
           {"{data: 8, shares: by-speed}", "training.parallel.shares says how; allowed: mesh"}}) {
    CHECK(study(gpt2(degrees, "all", "global_batch: 8")).strategies.size() == 1);
    CHECK_THAT(only(compare_text(gpt2(degrees, "[optimal]", "global_batch: 8"))).why_not, Catch::Contains(why));
  }
}

TEST_CASE("what does not divide is refused with the nearest that does", "[study][mesh]") {
  const auto why = [](const std::string& parallel, const std::string& batch) {
    return only(compare_text(gpt2(parallel, "[mesh]", batch))).why_not;
  };
  CHECK(why("{tensor: 3}", "global_batch: 8") ==
        "training.parallel: tensor 3 = 3 does not divide 8 devices; nearest that do: 2 or 4");
  CHECK(why("{data: 4}", "global_batch: 6, micro_batches: 1") ==
        "a global batch of 6 samples does not divide among 4 replicas; nearest that do: 4 or 8");
  CHECK(why("{data: 4}", "global_batch: 8, micro_batches: 4") ==
        "4 micro-batches do not divide the 2 samples of each of 4 replicas; nearest that do: 2");
  CHECK_THAT(why("{tensor: 8}", "global_batch: 8"), Catch::StartsWith("12 key-value heads do not divide over 8"));
  const Run interleaved = only(compare_text(
      "model: gpt2\nplatform: nvlink-v100\ntraining: {global_batch: 8, micro_batches: 8, parallel: {data: 1, "
      "interleave: 2}}\ncompare: {strategies: [mesh], schedules: [interleaved]}\n"));
  CHECK(interleaved.why_not == "12 layers do not fill 16 stages; allowed: at most 12 stages");
  const Run without = only(compare_text(chain_study("compare: {strategies: [mesh], schedules: [gpipe]}\n")));
  CHECK_THAT(without.why_not, Catch::StartsWith("mesh takes its degrees from training.parallel, which is not given"));
}

} // namespace
} // namespace stagecraft::test
