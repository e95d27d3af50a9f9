// stagecraft plan, check and replay --plan: a plan file goes round.
// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/strategy.hpp"
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::string kOn = " " + kChain + " --devices 2 --set training.global_batch=4 --micro-batches 4 ";

TEST_CASE("plan gives JSON with every key", "[cli]") {
  const Workshop shop;
  const Json json = shop.succeed("plan" + kOn + "--strategy uniform --format json").json();
  for (const char* key : {"schema", "strategy", "stages", "bottleneck_seconds", "objective", "estimate_seconds",
                          "lower_bound_seconds", "timing"}) {
    INFO(key);
    CHECK(json.contains(key));
  }
  CHECK(json.at("strategy") == "uniform");
  REQUIRE(json.at("stages").size() == 2);
  CHECK(json.at("stages").at(0).at("operators") == Json({"a", "b"}));
  CHECK(json.at("stages").at(1).at("devices") == Json({"node/profiled-1"}));
  CHECK(json.at("stages").at(1).at("seconds").get<double>() == near(6));
  CHECK(json.at("bottleneck_seconds").get<double>() == near(6));
  CHECK(json.at("estimate_seconds").get<double>() == near(3 * 6 + 12)); // (M-1) max c + sum c
  CHECK(json.at("lower_bound_seconds").get<double>() == near(24));
}

TEST_CASE("the plan of every strategy is read back by check and by replay", "[cli]") {
  const Workshop shop;
  for (const StrategyRow& strategy : strategies()) {
    const std::string name(strategy.name);
    const std::string degrees = strategy.takes_degrees ? " --set 'training.parallel={data: 1}' " : "";
    const Outcome planned = shop.run("plan" + kOn + degrees + "--strategy " + name);
    REQUIRE(planned.status == 0);
    CHECK_THAT(planned.err, Contains("bottleneck "));
    shop.write("plan.yaml", planned.out);
    CHECK(shop.succeed("check plan.yaml" + kOn).out == "plan.yaml: a valid plan that fits\n");
    const std::string as = "--schedule 1f1b --format json ";
    Json direct = shop.succeed("replay" + kOn + as + degrees + "--strategy " + name).json();
    Json again = shop.succeed("replay" + kOn + as + "--plan plan.yaml").json();
    for (const char* key :
         {"timing", "question", "objective", "note", "rounds", "inputs"}) { // a plan file does not carry them
      direct.erase(key);
      again.erase(key);
    }
    direct["setting"]["training"].erase("parallel"); // the plan has the degrees, not the study
    again["setting"]["training"].erase("parallel");
    CHECK(direct == again);
  }
}

TEST_CASE("a planning input of Piper is planned, checked and replayed on its own devices", "[cli][piper]") {
  // Two operators of 6 s a micro-batch, 1 B between them at 1 B/s, two devices that hold one operator each: 16 B always
  // and 12 B per micro-batch in flight, at most two on the first stage.
  const auto node = [](const std::string& id, const std::string& before, const std::string& after) {
    return "{\"id\": " + id +
           ", \"TMPCs\": {\"1\": [{\"id\": \"vanilla\", \"timePerSample\": 6, \"parameterSize\": 8,"
           " \"memoryUsageA\": 12, \"memoryUsageB\": 16, \"syncTimeFw\": " +
           before + ", \"syncTimeBw\": " + after + "}]}}";
  };
  const Workshop shop;
  shop.write("piper.json",
             "{\"maxDevices\": 2, \"maxMemoryPerDevice\": 50, \"bandwidth\": 1, \"mbsInBatch\": 6, \"nodes\": [" +
                 node("7", "{}", "{\"3\": 0}") + ", " + node("3", "{\"7\": 0}", "{}") +
                 "], \"edges\": [{\"sourceId\": 7, \"destId\": 3, \"communicationCost\": 1}]}");
  const Json plan = shop.succeed("plan piper.json --strategy piper --format json").json();
  REQUIRE(plan.at("stages").size() == 2);
  CHECK(plan.at("stages")[0].at("operators") == Json({"7"}));
  CHECK(plan.at("stages")[1].at("operators") == Json({"3"}));
  CHECK(plan.at("bottleneck_seconds").get<double>() == near(6));
  CHECK(plan.at("objective").at("seconds").get<double>() == near(6 + 1 + 1)); // the activation and its gradient
  shop.succeed("plan piper.json --strategy piper -o plan.yaml");
  CHECK(shop.succeed("check plan.yaml piper.json").out == "plan.yaml: a valid plan that fits\n");
  // Six micro-batches, F 2 s and B 4 s: the first reaches the end at 3 s, every other two come round in 14 s.
  const std::string replay = "replay piper.json --plan plan.yaml --engine analytic --format json --schedule ";
  const Json run = shop.succeed(replay + "1f1b").json();
  CHECK(run.at("micro_batches") == 6);
  CHECK(run.at("iteration_seconds").get<double>() == near(48));
  CHECK_FALSE(shop.run(replay + "gpipe").json().at("feasible").get<bool>()); // 16 + 6 * 12 B
}

TEST_CASE("the flag --quiet keeps remarks off stderr, -o the plan off stdout", "[cli]") {
  const Workshop shop;
  CHECK(shop.succeed("plan" + kOn + "--strategy uniform --quiet").err.empty());
  CHECK(shop.succeed("plan" + kOn + "--strategy uniform -o plan.yaml").out.empty());
  CHECK_THAT(shop.read("plan.yaml"), StartsWith("# A plan of Stagecraft: "));
}

TEST_CASE("what a plan's file or the flags beside it ask for and is not carried out is said by every command",
          "[cli]") {
  const Workshop shop;
  shop.write("balance.json", R"({"balance": [2, 2], "chunks": 8, "checkpoint": "except_last"})");
  const std::string made = "made for 8 micro-batches; the last micro-batch counted as recomputed too";
  CHECK(shop.succeed("check balance.json" + kOn).out ==
        "balance.json: a valid plan that fits\nbalance.json: note: " + made + "\n");
  CHECK(shop.succeed("check balance.json --format json" + kOn).json().at("note") == made);
  const std::string with = kOn + "--plan balance.json --schedule 1f1b ";
  CHECK_THAT(shop.succeed("replay" + with).out, Contains("Note: " + made + "."));
  CHECK_THAT(shop.succeed("explain" + with).err, Contains("note: " + made));
  CHECK_THAT(shop.succeed("export stagecraft" + kOn + "--plan balance.json").err, Contains("note: " + made));
  shop.write("plain.json", "[2, 2]");
  const std::string unheeded = "training.recompute full is not carried out";
  const std::string asked = kOn + "--plan plain.json --schedule 1f1b --set training.recompute=full ";
  CHECK_THAT(shop.succeed("replay" + asked).out, Contains(unheeded));
  CHECK_THAT(shop.succeed("replay --format json" + asked).json().at("note").get<std::string>(), StartsWith(unheeded));
  CHECK_THAT(shop.succeed("check plain.json" + kOn + "--set training.recompute=full").out, Contains(unheeded));
}

TEST_CASE("check tells every defect of a plan and ends with status 1", "[cli]") {
  const Workshop shop;
  shop.write("plan.yaml", "stages:\n"
                          "  - {devices: [node/profiled-0], operators: [a, c]}\n"
                          "  - {devices: [node/profiled-1, node/profiled-1], operators: [b, c]}\n");
  const Outcome outcome = shop.run("check plan.yaml" + kOn);
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Contains("plan.yaml: operator 'c' is in stage 0 and in stage 1\n"));
  CHECK_THAT(outcome.out, Contains("plan.yaml: operator 'd' is in no stage\n"));
  CHECK_THAT(outcome.out, Contains("lists device 'node/profiled-1' more than once"));
  const Json json = shop.run("check plan.yaml --format json" + kOn).json();
  CHECK_FALSE(json.at("valid").get<bool>());
  CHECK(json.at("defects").size() >= 3);
  const Outcome replayed = shop.run("replay --schedule 1f1b --plan plan.yaml" + kOn);
  CHECK(replayed.status == 1);
  CHECK_THAT(replayed.err, Contains("operator 'd' is in no stage"));
}

TEST_CASE("check and replay refuse a plan that overflows memory", "[cli]") {
  const Workshop shop;
  shop.succeed("plan" + kOn + "--strategy uniform -o plan.yaml");
  // Under GPipe device 1 keeps 8 MB of four micro-batches, beside 8 MB of buffers and 24 kB of weights and optimiser.
  const auto check = [&](const std::string& memory) {
    return shop.run("check plan.yaml --schedule gpipe --memory '" + memory + "'" + kOn);
  };
  CHECK(check("40024000 B").status == 0);
  const Outcome outcome = check("40023999 B");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Contains("'node/profiled-1' overflows by 1.000 B at F3@1: "));
  const Outcome replayed = shop.run("replay --plan plan.yaml --schedule gpipe --memory '40023999 B'" + kOn);
  CHECK(replayed.status == 1);
  CHECK_THAT(replayed.out + replayed.err, Contains("; would fit with 1.001 B more memory per device"));
}

TEST_CASE("a plan file with an unknown name is bad input", "[cli]") {
  const Workshop shop;
  shop.write("plan.yaml", "stages:\n  - {devices: [node/profiled-0], operators: [a, b, c, e]}\n");
  const Outcome outcome = shop.run("check plan.yaml" + kOn);
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, StartsWith("error: plan.yaml:2:55: unknown operator 'e'"));
}

// Two nodes of 1 and 3 ms, half a millisecond between them.
const std::string kProblem = R"({"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [
  {"id": 1, "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1, "isBackwardNode": 0, "size": 10},
  {"id": 2, "supportedOnFpga": 1, "cpuLatency": 30, "fpgaLatency": 3, "isBackwardNode": 0, "size": 10}], "edges": [
  {"sourceId": 1, "destId": 2, "cost": 0.5}]})";

TEST_CASE("a problem of dnn-partitioning is planned, replayed and shown without a platform", "[cli]") {
  const Workshop shop;
  shop.write("problem.json", kProblem);
  const Json plan = shop.succeed("plan problem.json --strategy ideal --format json").json();
  CHECK(plan.at("objective").at("name") == "max-load");
  CHECK(plan.at("objective").at("seconds").get<double>() == near(3.5e-3));
  const auto scaled = shop.succeed("plan problem.json --cost-scale 10 --strategy ideal --format json").json();
  CHECK(scaled.at("objective").at("seconds").get<double>() == near(4e-3)); // one device
  // One micro-batch goes through: 1 ms, half a millisecond on the way, 3 ms, and the gradient's half.
  const Json run = shop.succeed("replay problem.json --strategy ideal --schedule 1f1b --format json").json();
  CHECK(run.at("iteration_seconds").get<double>() == near(5e-3));
  CHECK(run.at("objective").at("seconds").get<double>() == near(3.5e-3));
  shop.write("study.yaml", "model: problem.json\ncompare: {strategies: [ideal, ideal-linear, optimal]}\n");
  CHECK(shop.succeed("compare study.yaml --format json").json().at("platform") == "2 x fpga + 1 x cpu");
  CHECK_THAT(shop.succeed("show problem.json").out, Contains("2 operators") && Contains("measured on cpu"));
  CHECK(shop.succeed("import dnn-partitioning problem.json --format json").json().at("operators") == 2);
  CHECK_THAT(shop.run("plan problem.json --cost-scale 0 --strategy ideal").err, Contains("1e-9 to 1e9"));
  CHECK_THAT(shop.run("plan " + kChain + " --strategy ideal").err, Contains("missing key 'platform'"));
}

TEST_CASE("layers that predict further tokens are left out by a flag or a study's key", "[cli]") {
  const Workshop shop;
  shop.write("config.json",
             R"({"model_type": "glm4_moe", "hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 32,
                 "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": 2,
                 "vocab_size": 100, "max_position_embeddings": 32, "num_nextn_predict_layers": 1})");
  const auto parameters = [&](const std::string& flags) {
    return shop.succeed("show config.json --format json" + flags).json().at("parameters").get<double>();
  };
  // Attention of 4 + 2 * 2 heads of 16 and its product; a router with a bias for each expert, 4 + 1 experts, two norms;
  // a product of 2 h x h and three norms.
  constexpr double kHidden = 64;
  constexpr double kLayer = kHidden * 16 * (4 + 2 * 2 + 4) + 4 * (kHidden + 1) + 5 * 3 * kHidden * 32 + 2 * kHidden;
  CHECK(parameters("") - parameters(" --mtp-layers 0") == kLayer + 2 * kHidden * kHidden + 3 * kHidden);
  CHECK_THAT(shop.succeed("show config.json --mtp-layers 0").out,
             Contains("without its layer that predicts a further"));
  CHECK_THAT(shop.run("show config.json --mtp-layers 2").err, Contains("allowed: 0 to as many"));
  const auto seconds = [&](const std::string& model) {
    return shop.succeed("replay " + model + " --format json --strategy single --schedule accumulate")
        .json()
        .at("iteration_seconds")
        .get<double>();
  };
  shop.write("study.yaml", "model: {file: config.json, mtp_layers: 0}\nplatform: nvlink-v100\n");
  CHECK(seconds("study.yaml") == near(seconds("config.json --platform nvlink-v100 --mtp-layers 0")));
  CHECK(seconds("study.yaml") < seconds("config.json --platform nvlink-v100"));
}

TEST_CASE("a config.json of Hugging Face is shown, planned and replayed, with sequences of any length", "[cli]") {
  const Workshop shop;
  shop.write("config.json",
             R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
                 "num_hidden_layers": 4, "vocab_size": 1000, "max_position_embeddings": 2048})");
  // A layer has 4 h^2 + 3 h 4 h + 2 h; beside the layers stand two tables and the last norm.
  constexpr int kHidden = 1024;
  Json whole = shop.succeed("show config.json --format json").json();
  whole.erase("fits");
  CHECK(whole.at("parameters") == 4 * (16 * kHidden * kHidden + 2 * kHidden) + 2 * 1000 * kHidden + kHidden);
  CHECK(whole.at("operators") == 4 * 11 + 4);
  CHECK(shop.succeed("import hugging-face config.json --format json").json() == whole);
  shop.succeed("import hugging-face config.json -o model.json");
  CHECK(Json::parse(shop.read("model.json")) == whole);
  shop.succeed("import hugging-face config.json -o model.yaml"); // the same model as a workload file
  Json written = shop.succeed("show model.yaml --format json").json();
  written.erase("fits");
  CHECK(written == whole);
  CHECK_THAT(shop.run("import hugging-face config.json -o model.yaml --lora 8").err, Contains("has no adapters"));
  CHECK_THAT(shop.run("import hugging-face config.json -o model.yaml --cost-scale 2").err, Contains("a cost scale is"));
  CHECK_THAT(shop.succeed("show config.json --seq 32").out, Contains("llama: llama of Hugging Face, 32 tokens"));
  const auto seconds = [&](const std::string& model) {
    return shop
        .succeed("replay " + model + " --platform nvlink-v100 --format json --strategy uniform --schedule 1f1b" +
                 " --set training.global_batch=4 --micro-batches 4")
        .json()
        .at("iteration_seconds")
        .get<double>();
  };
  CHECK(2 * seconds("config.json --seq 32") < seconds("config.json"));
  shop.write("study.yaml", "model: {file: config.json, sequence: 32}\nplatform: nvlink-v100\n"
                           "training: {global_batch: 4, micro_batches: [4]}\n"
                           "compare: {strategies: [uniform], schedules: [1f1b]}\n");
  const Json compared = shop.succeed("compare study.yaml --format json").json();
  CHECK(compared.at("runs").at(0).at("iteration_seconds").get<double>() == near(seconds("config.json --seq 32")));
  CHECK_THAT(shop.run("show config.json --seq 0").err, Contains("--seq"));
  CHECK(2 * seconds("gpt2 --seq 32") < seconds("gpt2"));
  CHECK_THAT(shop.run("show vgg16 --seq 32").err, Contains("a length of sequences is given"));
}

} // namespace
} // namespace stagecraft::test
