// Plans of other tools: what they mean here, that ours can be written and read back, and that nonsense is refused.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <map>
#include <random>
#include <set>

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/study/planning/plan_scenario.hpp"
#include "sim/workload/blocks.hpp"
#include "tests/source_dir.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;
using Ids = std::vector<OperatorId>;

const fs::path kShared = test::source_dir() / "../shared";

Plan read(const Study& study, const std::string& text, const std::string& format = "",
          const std::string& file = "file") {
  return read_plan_text({text, file, *study.model, study.platform}, format);
}

// The chain a, b, c, d on as many devices.
const Study& chain() {
  static const Study kStudy = study(chain_study("", "{devices: 4}"));
  return kStudy;
}

// GPT-2 small: 12 numbered blocks, an embedding and dropout before them, norm, head and loss behind.
const Study& gpt() {
  static const Study kStudy = study("model: gpt2\nplatform: nvlink-v100\ntraining: {global_batch: 32}\n");
  return kStudy;
}

std::vector<std::size_t> sizes(const Plan& plan) {
  std::vector<std::size_t> counts;
  for (const Stage& stage : plan.stages) {
    counts.push_back(stage.operators.size());
  }
  return counts;
}

TEST_CASE("a torchgpipe balance counts operators, alone or with its devices", "[study][formats]") {
  const Plan bare = read(chain(), "[1, 3]");
  REQUIRE(bare.stages.size() == 2);
  CHECK(bare.strategy == "file");
  CHECK(bare.stages[0] == Stage{.operators = {0}, .devices = {0}, .shares = {}});
  CHECK(bare.stages[1] == Stage{.operators = {1, 2, 3}, .devices = {1}, .shares = {}});
  const Plan full = read(chain(), R"({"balance": [2, 2], "devices": ["cuda:2", "node/profiled-1"], "chunks": 8,
                                     "checkpoint": "always"})");
  CHECK(full.stages[0].devices == std::vector<DeviceId>{2});
  CHECK(full.stages[1].devices == std::vector<DeviceId>{1});
  CHECK(full.stages[0].recompute == Recompute::full);
  CHECK(full.note == "made for 8 micro-batches");
}

TEST_CASE("layers of a balance are operators, blocks, or the numbered blocks, by their number", "[study][formats]") {
  const int n = gpt().model->size(); // 2 + 12 * 12 + 3
  REQUIRE(n == 149);
  CHECK(sizes(read(gpt(), "[100, 49]")) == std::vector<std::size_t>{100, 49});
  CHECK(sizes(read(gpt(), "[100, 48]")) == std::vector<std::size_t>{100, 49}); // the loss goes uncounted
  // 17 blocks: embedding, drop, twelve layers, norm, head, loss.
  CHECK(sizes(read(gpt(), "[3, 14]")) == std::vector<std::size_t>{2 + 12, 11 * 12 + 3});
  CHECK(sizes(read(gpt(), "[3, 5, 4]")) == std::vector<std::size_t>{2 + 3 * 12, 5 * 12, 4 * 12 + 3});
  CHECK_THAT(error_of([] { read(gpt(), "{balance: [3, 5]}"); }),
             StartsWith("file:1:11: 8 layers are counted here, and 'gpt2' has 149 operators, 17 blocks, 12 of them "
                        "numbered; allowed: one of these numbers"));
}

TEST_CASE("a PipeDream graph places each node on the device of its stage", "[study][formats]") {
  const std::string fields = " -- op -- forward_compute_time=1, backward_compute_time=1, activation_size=1, "
                             "parameter_size=0 -- stage_id=";
  const Plan plan = read(chain(), "a" + fields + "0\nb" + fields + "0\nd" + fields + "1\nc" + fields + "1\n\ta -- b\n");
  CHECK(plan.stages[0] == Stage{.operators = {0, 1}, .devices = {0}, .shares = {}});
  CHECK(plan.stages[1] == Stage{.operators = {2, 3}, .devices = {1}, .shares = {}});
  CHECK_THAT(error_of([&] { read(chain(), "a" + fields + "0\ne" + fields + "0\n"); }),
             StartsWith("file:2:1: unknown operator 'e'"));
  CHECK_THAT(error_of([&] { read(chain(), "a" + fields + "x\n"); }), StartsWith("file:1:"));
}

TEST_CASE("a PipeDream configuration gives stages to modules and ranks to stages", "[study][formats]") {
  const Plan plan =
      read(chain(), R"({"module_to_stage_map": [0, 1, 1, 1], "stage_to_rank_map": {"0": [0, 1], "1": [3]}})");
  CHECK(plan.stages[0] == Stage{.operators = {0}, .devices = {0, 1}, .shares = {}});
  CHECK(plan.stages[1] == Stage{.operators = {1, 2, 3}, .devices = {3}, .shares = {}});
  // The criterion, a module that the model does not hold; and one stage holds everything, however many its modules.
  CHECK(read(chain(), "{module_to_stage_map: [0, 1, 1, 1, 1], stage_to_rank_map: {0: [0, 1], 1: [3]}}").stages ==
        plan.stages);
  CHECK(sizes(read(chain(), "{module_to_stage_map: [0, 0], stage_to_rank_map: {0: [0, 1, 2, 3]}}")) ==
        std::vector<std::size_t>{4});
  CHECK_THAT(error_of([] { read(chain(), "{module_to_stage_map: [0, 1], stage_to_rank_map: {0: [0], 1: [1]}}"); }),
             StartsWith("file:1:23: 2 layers are counted here, and 'chain' has 4 operators"));
}

// Operators in a stage: E has 2, a layer 12, L 3.
TEST_CASE("Megatron-LM's layout is written out and laid over the numbered blocks", "[study][formats]") {
  const Plan plan = read(gpt(), "--num-layers 12 --pipeline-model-parallel-size 4 "
                                "--pipeline-model-parallel-layout \"Ett|(tt|)*2,t*6L\"\n"
                                "--micro-batch-size 2 --global-batch-size 32\n");
  CHECK(sizes(plan) == std::vector<std::size_t>{2 + 24, 24, 24, 72 + 3});
  CHECK(plan.note == "made for 8 micro-batches"); // eight devices make two replicas of four ranks: 32 / (2 * 2)
  const std::size_t devices = gpt().platform.devices.size();
  CHECK(devices_of(plan).size() == devices / 4 * 4);
  CHECK(plan.stages[1].devices.front() == static_cast<int>(devices / 4));
  CHECK(plan_defects(plan, *gpt().model, gpt().platform).empty());
}

TEST_CASE("without a layout Megatron-LM's layers spread evenly over ranks and virtual stages", "[study][formats]") {
  const std::string on = "WORLD_SIZE=2\n--num-layers 12 --pipeline-model-parallel-size 2 ";
  CHECK(sizes(read(gpt(), on)) == std::vector<std::size_t>{2 + 72, 72 + 3});
  const Plan two = read(gpt(), on + "--num-layers-per-virtual-pipeline-stage 3");
  CHECK(sizes(two) == std::vector<std::size_t>{2 + 36, 36, 36, 36 + 3});
  CHECK(two.stages[2].devices == std::vector<DeviceId>{0}); // stage s on rank s mod 2
  CHECK(sizes(read(gpt(), on + "--decoder-first-pipeline-num-layers 5")) == std::vector<std::size_t>{2 + 60, 84 + 3});
  CHECK_THAT(error_of([] { // 65536 * 65536 is 0 to an int
               read(gpt(), "--num-layers 12 --pipeline-model-parallel-size 65536 "
                           "--num-layers-per-virtual-pipeline-stage 65536");
             }),
             Contains("virtual stages of 65536 layers do not divide 12 layers on 65536 ranks"));
  // 14 layers with embedding and loss counted: seven each.
  CHECK(sizes(read(gpt(), on + "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split")) ==
        std::vector<std::size_t>{2 + 72, 72 + 3});
  // 14 in virtual stages of 7, or of one layer less where embedding or loss stands for one.
  CHECK(sizes(read(gpt(), "WORLD_SIZE=1\n--num-layers 12 --num-layers-per-virtual-pipeline-stage 7 "
                          "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split")) ==
        std::vector<std::size_t>{2 + 72, 72 + 3});
  // Four layers of the first rank and eight of the second one, each in two virtual stages.
  CHECK(sizes(read(gpt(), on + "--num-virtual-stages-per-pipeline-rank 2 --decoder-first-pipeline-num-layers 4")) ==
        std::vector<std::size_t>{2 + 24, 48, 24, 48 + 3});
  CHECK_THAT(error_of([&] {
               read(gpt(), on + "--num-virtual-stages-per-pipeline-rank 2 --decoder-first-pipeline-num-layers 3");
             }),
             Contains("3 layers of a rank do not spread evenly over its 2 virtual stages"));
  CHECK_THAT(
      error_of([&] { read(gpt(), on + "--decoder-last-pipeline-num-layers 3 --account-for-loss-in-pipeline-split"); }),
      Contains("which Megatron-LM refuses"));
  const Plan recomputed = read(gpt(), on + "--recompute-granularity full");
  CHECK(recomputed.stages[0].recompute == Recompute::full);
}

// A layout of DeepSeek-V3 with its layer for the token after next on a stage of its own. The last of 62 numbered blocks
// is that layer, so that without a layout it stands before the loss.
TEST_CASE("Megatron-LM's layers for further tokens are read and written", "[study][formats]") {
  const Study deep = study("model: deepseek-v3-mtp\nplatform: 16 x dgx-h200\n");
  const std::string degrees = "--num-layers 61 --mtp-num-layers 1 --tensor-model-parallel-size 4 ";
  const Plan plan = read(deep, degrees + "--pipeline-model-parallel-size 32 "
                                         "--pipeline-model-parallel-layout \"Et*3|(tt|)*29,m|L\"");
  REQUIRE(plan.stages.size() == 32);
  CHECK(plan_defects(plan, *deep.model, deep.platform).empty());
  CHECK(deep.model->operators[plan.stages[30].operators.front()].name == "second_embedding");
  const WrittenPlan written = write_plan(find_by_name(plan_formats(), "megatron", "plan format", {}),
                                         {plan, *deep.model, deep.platform, deep.training, 1});
  REQUIRE(std::holds_alternative<std::string>(written));
  CHECK_THAT(std::get<std::string>(written),
             Contains("--num-layers 61\n") && Contains("|m|L\"") && Contains("--mtp-num-layers 1\n"));
  const Plan one = read(deep, degrees);
  REQUIRE(one.stages.size() == 1);
  CHECK(plan_defects(one, *deep.model, deep.platform).empty());
}

TEST_CASE("Megatron-LM's arguments that change a run, and that no plan can say, are named", "[study][formats]") {
  const std::string on = "WORLD_SIZE=2\n--num-layers 12 --pipeline-model-parallel-size 2 ";
  CHECK(read(gpt(), on).note.empty());
  CHECK(read(gpt(), on + "--use-distributed-optimizer --seed 3 --bf16 --use-distributed-optimizer").note ==
        "not taken over: --use-distributed-optimizer, --bf16; training.parallel.zero: 1 says what "
        "--use-distributed-optimizer does");
  CHECK(read(gpt(), on + "--micro-batch-size 2").note == "the sizes of batch and micro-batch are not taken over");
  CHECK(read(gpt(), on + "--micro-batch-size 2 --global-batch-size 8").note == "made for 4 micro-batches");
  CHECK(read(gpt(), on + "--micro-batch-size 3 --global-batch-size 8").note ==
        "the sizes of batch and micro-batch are not taken over");
  CHECK(read(gpt(), on + "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2").note ==
        "full recompute counted per stage; training.recompute: {blocks: 2} brings back as many layers at a time");
  CHECK(read(gpt(), on + "--clip-grad 1.0").note == "training.clip_gradients: true says what --clip-grad does");
  CHECK(read(gpt(), on + "--clip-grad 0.0").note.empty());
  CHECK(read(gpt(), on + "--fp8-format hybrid --fp8-recipe tensorwise").note ==
        "training.fp8: tensorwise says what --fp8-format does");
  CHECK(read(gpt(), on + "--fp8-format hybrid").note == "training.fp8: delayed says what --fp8-format does");
  CHECK(read(gpt(), on + "--fp8-format e4m3 --fp8-recipe rowwise").note == "not taken over: --fp8-recipe rowwise");
  CHECK(read(gpt(), on + "--use-tp-pp-dp-mapping --optimizer sgd --window-size 4").note ==
        "not taken over: --optimizer, --window-size");
}

// Two replicas of two stages: by default stages are neighbours, with the mapping replicas.
TEST_CASE("Megatron-LM's mapping of ranks says which devices a stage has", "[study][formats]") {
  const std::string four = "WORLD_SIZE=4\n--num-layers 12 --pipeline-model-parallel-size 2 ";
  using Devices = std::vector<DeviceId>;
  CHECK(read(gpt(), four).stages[1].devices == Devices{2, 3});
  CHECK(read(gpt(), four + "--use-tp-pp-dp-mapping").stages[0].devices == Devices{0, 2});
  CHECK(read(gpt(), four + "--use-tp-pp-dp-mapping").stages[1].devices == Devices{1, 3});
}

TEST_CASE("an argument that nobody knows is named in a plan's note, and one that changes nothing is not",
          "[study][formats]") {
  const std::string on = "WORLD_SIZE=2\n--num-layers 12 --pipeline-model-parallel-size 2 ";
  for (const std::string argument : {"--frobnicate", "--frobnicate 3", "--frob_nicate=3", "--Frobnicate", "--tp 8"}) {
    INFO(argument);
    CHECK_THAT(read(gpt(), on + argument).note,
               StartsWith("not taken over: --") && Catch::EndsWith("(not known here)"));
  }
  CHECK(read(gpt(), on + "--frobnicate --seed 3 --frobnicate").note == "not taken over: --frobnicate (not known here)");
  CHECK(read(gpt(), on + "--lr 1e-4 --save x --master-port 1 --vocab-size 50257 --seq-length 1024").note.empty());
}

// Of each stage the first layers; a layer of GPT-2 has 12 operators.
TEST_CASE("Megatron-LM's method block recomputes the first layers of every virtual stage", "[study][formats]") {
  const std::string on = "WORLD_SIZE=2\n--num-layers 12 --pipeline-model-parallel-size 2 --recompute-granularity full "
                         "--recompute-method block --recompute-num-layers ";
  const auto recomputed = [](const Plan& plan) {
    std::vector<std::size_t> counts;
    for (const Stage& stage : plan.stages) {
      counts.push_back(stage.recomputed.size());
    }
    return counts;
  };
  const Plan plan = read(gpt(), on + "4");
  CHECK(plan.note == "training.recompute: {first: 4} says that layers run again one by one");
  CHECK(recomputed(plan) == std::vector<std::size_t>{48, 48});
  CHECK(plan.stages[0].recompute == Recompute::selective);
  CHECK(plan.stages[1].recomputed.front() == plan.stages[1].operators.front());
  CHECK(recomputed(read(gpt(), on + "1 --num-virtual-stages-per-pipeline-rank 2")) ==
        std::vector<std::size_t>{12, 12, 12, 12});
  CHECK(recomputed(read(gpt(), on + "9")) == std::vector<std::size_t>{72, 72}); // all that a stage has
}

TEST_CASE("a layout whose stages have far more ranks than memory holds is refused", "[study][formats]") {
  CHECK_THAT(error_of([] {
               read(gpt(), "WORLD_SIZE=100000\n--num-layers 12 --pipeline-model-parallel-layout \"Et*12L(|)*90000\"");
             }),
             Contains("90001 stages of 100000 ranks; allowed: at most 4194304 together"));
}

TEST_CASE("Megatron-LM's tensor groups come first among ranks, replicas next", "[study][formats]") {
  const Plan plan =
      read(gpt(), "TP=2\nARGS=(\n  --num-layers 12 # as published\n  --tensor-model-parallel-size ${TP} \\\n"
                  "  --pipeline-model-parallel-size 2\n)\nWORLD_SIZE=8\n");
  CHECK(plan.stages[0].tensor_parallel == 2);
  CHECK(plan.stages[0].devices == std::vector<DeviceId>{0, 1, 2, 3});
  CHECK(plan.stages[1].devices == std::vector<DeviceId>{4, 5, 6, 7});
}

TEST_CASE("Megatron-LM's arguments are refused with the place", "[study][formats]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"--num-layers 11", "file:1:14: 11 transformer layers here, and 'gpt2' has 12 numbered blocks"},
      {"--num-layers 12 --num-layers 24", "file:1:17: '--num-layers' is given twice, 12 and 24"},
      {"--num-layers", "file:1:1: '--num-layers' has no value"},
      {"--num-layers $N", "file:1:14: the variable '$N' is not set"},
      {"--num-layers 12 --pipeline-model-parallel-sizes 2", "file:1:17: unknown argument"},
      {"--num-layers 12 --pipeline-model-parallel-size 5", "file:1:14: 12 layers do not spread evenly over 5 stages"},
      {"--num-layers 12 --pipeline-model-parallel-layout Et*12", "file:1:"},
      {"--pipeline-model-parallel-layout Et*11|L", "file:1:34: 11 transformer layers here"},
      {"--pipeline-model-parallel-layout EtxL", "file:1:36: unknown layer 'x'"},
      {"--pipeline-model-parallel-layout E(tt|L", "file:1:35: a group without its repetition"},
      {"--pipeline-model-parallel-layout tEL", "file:1:34: the layout is out of order"},
      {"--pipeline-model-parallel-layout Et*1048576t*1048576L", "file:1:34: the layout is longer"},
      {"--pipeline-model-parallel-layout \"Et", "file:1:34: a quotation without its end"},
      {"--num-layers 12 --recompute-granularity some", "file:1:41: unknown granularity 'some'"},
      {"--num-layers 12 --recompute-method some", "file:1:36: unknown method 'some'; known: uniform, block"},
      {"--num-layers 12 --recompute-granularity full --recompute-method block",
       "file:1:65: does not say how many layers of each stage run again; needed: --recompute-num-layers N"},
      {"--num-layers 12 --clip-grad none", "file:1:29: "},
  }));
  INFO(text);
  CHECK_THAT(error_of([&, text = text] { read(gpt(), text, "megatron"); }), StartsWith(expected));
}

TEST_CASE("a device map places layers and all that stands below them", "[study][formats]") {
  const Plan plan = read(chain(), R"({"a": "node/profiled-0", "b": 1, "c": "cuda:1", "d": ["cuda:2", "cuda:3"]})");
  REQUIRE(plan.stages.size() == 3);
  CHECK(plan.stages[1] == Stage{.operators = {1, 2}, .devices = {1}, .shares = {}});
  CHECK(plan.stages[2].devices == std::vector<DeviceId>{2, 3});
  const Plan layers = read(gpt(), R"({"": 0, "layer.1": 1, "layer.11": 2, "layer.11.norm1": 1})");
  std::size_t on_one = 0;
  for (const Stage& stage : layers.stages) {
    on_one += stage.devices.front() == 1 ? stage.operators.size() : 0;
  }
  CHECK(on_one == 12 + 1); // layer.1, not layer.10 and layer.11; and the longest key decides
  CHECK(plan_defects(layers, *gpt().model, gpt().platform).empty()); // device 0 has several convex segments
  CHECK_THAT(error_of([] { read(chain(), "{a: 0, bb: 1}"); }), StartsWith("file:1:8: unknown operator 'bb'"));
  CHECK_THAT(error_of([] { read(chain(), "{a: 0, b: node/profiled-9}"); }), StartsWith("file:1:11: unknown device"));
}

TEST_CASE("a plan that contradicts itself is read and has defects", "[study][formats]") {
  CHECK_THAT(join(plan_defects(read(chain(), "{a: 0, b: 1, c: 0}"), *chain().model, chain().platform)),
             Contains("operator 'd' is in no stage"));
  const Plan beyond = read(chain(), "[1, 1, 1, 1]");
  CHECK(plan_defects(beyond, *chain().model, chain().platform).empty());
  const Plan many = read(chain(), "{balance: [2, 2], devices: [3, 4]}");
  CHECK(plan_defects(many, *chain().model, chain().platform) ==
        std::vector<std::string>{"stage 1 names device number 4; the platform has 4"});
  const Plan torn = read(chain(), "{module_to_stage_map: [0, 1, 0, 1], stage_to_rank_map: {0: [0], 1: [1]}}");
  CHECK_THAT(join(plan_defects(torn, *chain().model, chain().platform), "\n"),
             Contains("stage 0 is not convex: data leaves it and comes back by 'a' → 'b' → 'c'"));
}

// Plans of several strategies for several models: each format writes a text that reads back as the same plan, or says
// why it cannot.
TEST_CASE("every form that can express a plan reads it back the same", "[study][formats]") {
  std::map<std::string_view, int> written;
  for (const char* model : {"gpt2", "vgg16", "resnet50", "squeezenet"}) {
    const Study mixed = study("model: " + std::string(model) +
                              "\nplatform: v100-p100-node\ntraining: {global_batch: 16, micro_batches: 4}\n");
    ScheduleCounts counts;
    StudyMemo memo(mixed, counts);
    for (const char* strategy : {"single", "data-parallel", "uniform", "capability", "block-partition", "eft"}) {
      const Scenario scenario{.strategy = &find_by_name(strategies(), strategy, "strategy", {}),
                              .schedule = &find_by_name(schedules(), "gpipe", "schedule", {}),
                              .micro_batches = 4};
      const PlanResult result = plan_scenario(memo, scenario).result;
      const Plan* plan = std::get_if<Plan>(&result);
      REQUIRE(plan != nullptr);
      for (const PlanFormat& format : plan_formats()) {
        INFO(model << " " << strategy << " " << format.name);
        const WrittenPlan text = write_plan(format, {*plan, *mixed.model, mixed.platform, mixed.training, 4});
        if (const Infeasible* why = std::get_if<Infeasible>(&text)) {
          CHECK(why->reason.size() > 20);
          CHECK_THAT(why->reason, !Contains("cannot express these stages"));
          continue;
        }
        ++written[format.name];
        // The content shows the format, and nothing is lost; a device map only loses where a device's stages begin.
        const PlanSource source(std::get<std::string>(text), "file", *mixed.model, mixed.platform);
        CHECK(format.recognises(source));
        const Plan again = read_plan_text(source, "");
        CHECK(plan_defects(again, *mixed.model, mixed.platform).empty());
        for (const Stage& stage : plan->stages) {
          for (const OperatorId op : stage.operators) {
            const auto home = std::find_if(again.stages.begin(), again.stages.end(), [&](const Stage& other) {
              return std::binary_search(other.operators.begin(), other.operators.end(), op);
            });
            REQUIRE(home != again.stages.end());
            CHECK(home->devices == stage.devices);
          }
        }
        CHECK((!format.whole || again.stages.size() == plan->stages.size()));
      }
    }
  }
  for (const PlanFormat& format : plan_formats()) {
    INFO(format.name);
    CHECK(written[format.name] >= 1);
  }
}

TEST_CASE("a form says why it cannot express a plan", "[study][formats]") {
  const auto why = [](const char* format, const Plan& plan) {
    const WrittenPlan text = write_plan(find_by_name(plan_formats(), format, "plan format", {}),
                                        {plan, *chain().model, chain().platform, chain().training, 1});
    const Infeasible* reason = std::get_if<Infeasible>(&text);
    return reason != nullptr ? reason->reason : "";
  };
  const Plan replicas{.stages = {{.operators = {0, 1, 2, 3}, .devices = {0, 1}}}};
  CHECK(why("torchgpipe", replicas) == "stage 0 has 2 devices, and torchgpipe gives each stage one");
  CHECK(why("pipedream", replicas).empty());
  CHECK_THAT(why("megatron", replicas), Contains("has no numbered blocks"));
  const Plan uneven{.stages = {{.operators = {0, 1, 2, 3}, .devices = {0, 1}, .shares = {0.25, 0.75}}}};
  CHECK_THAT(why("pipedream", uneven), StartsWith("stage 0 gives its replicas unequal shares"));
  CHECK(why("stagecraft", uneven).empty());
  Plan found{.stages = {{.operators = {0, 1, 2, 3}, .devices = {0, 1}, .tensor_parallel = 2}}};
  found.stages[0].tensor_rule = TensorRule::search;
  CHECK(why("megatron", found) == "stage 0 shares operators by the rule 'search', and Megatron-LM has its own");
  const Plan reused{.stages = {{.operators = {0, 1}, .devices = {0}}, {.operators = {2, 3}, .devices = {0}}}};
  CHECK_THAT(why("pipedream", reused), StartsWith("device 'node/profiled-0' has several stages"));
  CHECK(why("torchgpipe", reused).empty());
  Plan layers = read(gpt(), "WORLD_SIZE=2\n--num-layers 12 --pipeline-model-parallel-size 2");
  layers.stages[0].operators.push_back(layers.stages[1].operators.front());
  layers.stages[1].operators.erase(layers.stages[1].operators.begin());
  const WrittenPlan torn = write_plan(find_by_name(plan_formats(), "megatron", "plan format", {}),
                                      {layers, *gpt().model, gpt().platform, gpt().training, 1});
  REQUIRE(std::holds_alternative<Infeasible>(torn));
  CHECK_THAT(std::get<Infeasible>(torn).reason, StartsWith("'layer.6' is split between stage 0 and stage 1"));
}

TEST_CASE("noise and changed bytes are read or refused in every form", "[study][formats][bad-input]") {
  const std::vector<std::string> originals = {
      "--num-layers 12 --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout \"Ett|(tt|)*2,t*6L\"\n",
      "a -- op -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=0 -- stage_id=0\n",
      "{\"module_to_stage_map\": [0, 1, 1, 1], \"stage_to_rank_map\": {\"0\": [0, 1], \"1\": [3]}}",
      "{\"balance\": [2, 2], \"devices\": [\"cuda:0\", \"cuda:1\"], \"chunks\": 8, \"checkpoint\": \"never\"}",
      "{\"a\": 0, \"b\": 1, \"c\": [1, 2], \"d\": 1}",
      "schema: stagecraft/1\nstages:\n  - {devices: [node/profiled-0], operators: [a, b, c, d]}\n"};
  std::mt19937 random(5);
  for (const PlanFormat& format : plan_formats()) {
    for (const std::string& original : originals) {
      for (int i = 0; i < 100; ++i) {
        std::string bytes = original;
        for (int change = 0; change < i % 4; ++change) {
          bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
        }
        INFO(format.name << " " << i << " " << bytes);
        CHECK_NOTHROW(error_of([&] { read(chain(), bytes, std::string(format.name)); }));
        CHECK_NOTHROW(error_of([&] { read(gpt(), bytes); }));
      }
    }
    std::string noise(100'000, ' ');
    for (char& letter : noise) {
      letter = static_cast<char>(random() % 256);
    }
    CHECK_THAT(error_of([&] { read(chain(), noise, std::string(format.name)); }), StartsWith("file"));
  }
}

TEST_CASE("shipped samples and PipeDream's configurations are read or refused by their numbers", "[study][formats]") {
  if (!fs::exists(kShared / "samples/megatron_args.sh")) {
    WARN("../shared is absent: samples not read");
    return;
  }
  // Both have 24 layers, as BERT large has.
  const Study bert = study("model: bert-large\nplatform: dgx-a100-cluster\n");
  const Plan balance = load_plan(kShared / "samples/torchgpipe_balance.json", "", *bert.model, bert.platform);
  CHECK(balance.stages.size() == 4);
  CHECK(plan_defects(balance, *bert.model, bert.platform).empty());
  const std::string laid =
      error_of([&] { load_plan(kShared / "samples/megatron_args.sh", "", *bert.model, bert.platform); });
  CHECK_THAT(laid, laid.empty() ? Contains("") : Contains("transformer layers"));
  int read_whole = 0;
  for (const auto& entry : fs::directory_iterator(kShared / "data/pipedream/runtime_conf")) {
    const std::string error = error_of([&] { load_plan(entry.path(), "", *bert.model, bert.platform); });
    INFO(entry.path().filename() << " " << error);
    read_whole += error.empty() ? 1 : 0;
    CHECK((error.empty() || error.find("layers are counted here") != std::string::npos));
  }
  CHECK(read_whole > 0); // those of one stage fit any model
}

TEST_CASE("plan files of a study run beside the strategies and are ranked with them", "[study][formats]") {
  const fs::path folder = fs::temp_directory_path() / ("stagecraft-plans-" + std::to_string(getpid()));
  fs::create_directories(folder);
  write_file(folder / "balance.json", "[1, 3]");
  write_file(folder / "short.yaml", "strategy: uniform\nstages: [{devices: node/profiled-0, operators: [a, b]}]\n");
  const std::string text =
      "model: " + (kRoot / "tests/study/chain.yaml").string() +
      "\nplatform: {devices: 2}\ntraining: {global_batch: 4, micro_batches: 4}\n"
      "compare: {strategies: uniform, schedules: [gpipe, 1f1b], plans: [balance.json, short.yaml]}\n";
  const Study read = load_study(yaml::parse(text, "study.yaml"), {folder, kRoot}, {});
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const Comparison comparison = compare(memo).comparison;
  REQUIRE(comparison.runs.size() == 6);
  // Stages of 3 s and 9 s: four micro-batches fill 3 + 4 * 9 + the first stage's backward, 2 s.
  CHECK(find_run(comparison, "balance.json", "1f1b", 4).feasible);
  CHECK(find_run(comparison, "balance.json", "1f1b", 4).metrics.iteration >
        find_run(comparison, "uniform", "1f1b", 4).metrics.iteration);
  const Run& torn = find_run(comparison, "uniform (short.yaml)", "gpipe", 4);
  CHECK_FALSE(torn.feasible);
  CHECK_THAT(torn.why_not, Contains("operator 'c' is in no stage"));
  CHECK_THAT(error_of([&] {
               load_study(yaml::parse("model: gpt2\nplatform: pcie-v100\ncompare: {plans: [no.json]}\n", "study.yaml"),
                          {folder, kRoot}, {});
             }),
             StartsWith("study.yaml:3:19: no such plan file 'no.json'"));
  fs::remove_all(folder);
}

TEST_CASE("plans of one name are told apart by their files and as many folders as that takes", "[study][formats]") {
  const fs::path folder = fs::temp_directory_path() / ("stagecraft-names-" + std::to_string(getpid()));
  std::string plans;
  for (const char* one : {"a", "b", "c/b"}) {
    fs::create_directories(folder / one);
    write_file(folder / one / "p.yaml",
               "strategy: uniform\nstages: [{devices: node/profiled-0, operators: [a, b, c, d]}]\n");
    plans += (plans.empty() ? "" : ", ") + std::string(one) + "/p.yaml";
  }
  const Study read = load_study(yaml::parse("model: " + (kRoot / "tests/study/chain.yaml").string() +
                                                "\nplatform: {devices: 1}\ncompare: {strategies: uniform, schedules: "
                                                "gpipe, plans: [" +
                                                plans + ", b/p.yaml]}\n",
                                            "study.yaml"),
                                {folder, kRoot}, {});
  std::vector<std::string> names;
  for (const Plan& plan : read.plans) {
    names.push_back(plan.strategy);
  }
  REQUIRE(names.size() == 4);
  CHECK(names[0] == "uniform (p.yaml)");
  CHECK(names[1] == "uniform (b/p.yaml)");
  CHECK(names[2] == "uniform (c/b/p.yaml)");
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == 4); // one file twice
  fs::remove_all(folder);
}

} // namespace
} // namespace stagecraft::test
