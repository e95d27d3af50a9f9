// Results that are asked again: stagecraft explain, replay and check of what `compare` and `replay` wrote.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

// The explanation and figures that do not say which files they are from.
Json explanation(const Workshop& shop, const std::string& what) {
  return shop.succeed("explain " + what + " --quiet --format json").json().at("explanation");
}

const std::string kTwo = " --devices 2 --bandwidth '1 GB/s' --set training.global_batch=4 --micro-batches 4 ";

TEST_CASE("a result of replay is explained, replayed and checked as what it was asked", "[cli]") {
  const Workshop shop;
  fs::create_directory(shop.folder() / "kept");
  shop.succeed("plan " + kChain + kTwo + "--strategy optimal -o plan.yaml");
  const std::string run = GENERATE(as<std::string>(), "--strategy uniform --schedule gpipe", "--plan plan.yaml");
  const std::string call = kChain + kTwo + run;
  shop.succeed("replay " + call + " -o kept/run.json --quiet");
  CHECK(explanation(shop, "kept/run.json") == explanation(shop, call));
  const Json kept = Json::parse(shop.read("kept/run.json"));
  const Json again = shop.succeed("replay kept/run.json --quiet --format json").json();
  CHECK(again.at("iteration_seconds") == kept.at("iteration_seconds"));
  CHECK(again.at("strategy") == kept.at("strategy"));
  CHECK_THAT(shop.succeed("check kept/run.json").out, Contains("kept/run.json: a valid plan that fits"));
}

TEST_CASE("a result of a comparison stands for its best run, or another of its question", "[cli]") {
  const Workshop shop;
  fs::create_directory(shop.folder() / "kept");
  shop.succeed("plan " + kChain + kTwo + "--strategy optimal -o plan.yaml");
  const std::string which =
      GENERATE(as<std::string>(), "--strategies uniform,capability", "--strategies single --plan plan.yaml");
  shop.succeed("compare " + kChain + kTwo + which + " --schedules naive,1f1b -o kept/all.json --quiet");
  const Json best = Json::parse(shop.read("kept/all.json")).at("runs").at(0);
  const auto replayed = [&](const std::string& flags) {
    return shop.succeed("replay kept/all.json --quiet --format json " + flags).json();
  };
  CHECK(replayed("").at("iteration_seconds") == best.at("iteration_seconds"));
  CHECK(replayed("").at("schedule") == "1f1b");
  CHECK(replayed("--schedule naive").at("iteration_seconds") > best.at("iteration_seconds"));
  CHECK(replayed("--strategy single").at("strategy") == "single");
  CHECK(replayed("--set platform.bandwidth='1 MB/s'").at("iteration_seconds") > best.at("iteration_seconds"));
  CHECK_THAT(shop.succeed("explain kept/all.json").out,
             Contains(best.at("strategy").get<std::string>() + " under 1f1b"));
}

TEST_CASE("a configuration that a result was made from is found from any folder", "[cli]") {
  const Workshop shop;
  fs::create_directory(shop.folder() / "kept");
  shop.write("job.sh", "torchrun pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 "
                       "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16 "
                       "--tensor-model-parallel-size 2 --bf16\n");
  const std::string call = "gpt2 --platform dgx-h100 --set training.config=job.sh ";
  shop.succeed("replay " + call + "--strategy mesh -o kept/run.json --quiet");
  CHECK(explanation(shop, "kept/run.json") == explanation(shop, call + "--strategy mesh"));
}

TEST_CASE("a result says where the same question has another answer by now", "[cli]") {
  const Workshop shop;
  const std::string chain = read_file(kChain);
  shop.write("mine.yaml", chain);
  shop.succeed("replay mine.yaml" + kTwo + "--strategy uniform -o run.json --quiet");
  CHECK_THAT(shop.succeed("explain run.json").err, !Contains("asked again"));
  std::string slower = chain;
  const std::string second = "forward_time: 1 s";
  REQUIRE(slower.find(second) != std::string::npos);
  shop.write("mine.yaml", slower.replace(slower.find(second), second.size(), "forward_time: 3 s"));
  CHECK_THAT(shop.succeed("explain run.json").err,
             Contains("note: asked again, this takes ") && Contains("in 'run.json'") && Contains("has changed"));
}

TEST_CASE("a result that cannot be asked again is refused where it falls short", "[cli]") {
  const Workshop shop;
  const std::string head = R"({"schema": "stagecraft/1", "model": "a", "platform": "b")";
  const std::string asked = R"({"study": "model: gpt2\nplatform: dgx-h100\n", "comparison": true})";
  const auto [rest, expected] = GENERATE_COPY(table<std::string, std::string>({
      {"}", "run.json:1:1: the document: a result that does not keep what it was asked; allowed: one that `compare`"},
      {R"(, "question": 5})", "run.json:1:71: question: is no object but number"},
      {R"(, "question": )" + asked + R"(, "runs": []})", "runs: no run; allowed: a result with at least one"},
      {R"(, "question": )" + asked + R"(, "runs": [{"micro_batches": 0}]})",
       "runs[0].micro_batches: must be an integer"},
      {R"(, "question": {"study": "[", "comparison": true}})", "run.json, question.study:1:1: not valid YAML"},
  }));
  shop.write("run.json", head + rest);
  for (const char* command : {"explain", "replay", "check"}) {
    const Outcome outcome = shop.run(std::string(command) + " run.json");
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains(expected));
  }
  CHECK_THAT(shop.run("explain run.json --platform dgx-h100").err, Contains("--platform: 'run.json' is a result"));
}

} // namespace
} // namespace stagecraft::test
