// Configurations of frameworks on the command line: every command runs what the file asks for.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

const std::string kScript =
    "WORLD_SIZE=8\n"
    "--num-layers 12 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1\n"
    "--micro-batch-size 1 --global-batch-size 16 --bf16 --use-distributed-optimizer\n";
const std::string kOnScript = " gpt2 --platform dgx-h100 --set training.config=run.sh ";

TEST_CASE("a run takes the schedule of its configuration where none is given", "[cli][config]") {
  const Workshop shop;
  shop.write("run.sh", kScript);
  const auto schedule = [&](const std::string& call) {
    return shop.succeed(call + " --format json").json().at("schedule").get<std::string>();
  };
  CHECK(schedule("replay" + kOnScript + "--strategy mesh") == "interleaved");
  CHECK(schedule("explain" + kOnScript + "--strategy mesh") == "interleaved");
  CHECK(schedule("replay gpt2 --platform dgx-h100 --strategy uniform") == "1f1b");
  shop.succeed("export megatron" + kOnScript + "--strategy mesh -o win.sh");
  CHECK_THAT(shop.read("win.sh"), Contains("\"Et|t|t|t|t|t|t|t|t|t|t|tL\"") &&
                                      Contains("--use-distributed-optimizer\n") && Contains("--bf16\n"));
  CHECK_THAT(shop.succeed("check win.sh" + kOnScript).out, Contains("win.sh: a valid plan that fits"));
  CHECK_THAT(shop.run("replay" + kOnScript).err, Contains("--strategy mesh") && !Contains("--schedule"));
}

// Every device of a stage overflows alike.
TEST_CASE("check names the stages that overflow, not each of their devices", "[cli][config]") {
  const Workshop shop;
  shop.write("plan.sh", "WORLD_SIZE=8\n--num-layers 80 --pipeline-model-parallel-size 2\n");
  const Outcome outcome = shop.run("check plan.sh llama3-70b --platform dgx-h100 --set training.precision=bf16 "
                                   "--set training.global_batch=8 --micro-batches 2");
  CHECK(outcome.status == 1);
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') <= 3);
  CHECK_THAT(outcome.out, Contains("the most of 4 devices of stage 0 that overflow"));
}

TEST_CASE("sizes of a script that are another model's are told in the answer", "[cli][config]") {
  const Workshop shop;
  shop.write("run.sh", kScript + "--hidden-size 4096\n");
  const Outcome outcome = shop.succeed("compare" + kOnScript + "--strategies mesh");
  const std::string conflict = "run.sh:4:15: --hidden-size 4096, but gpt2 has 768";
  CHECK_THAT(outcome.out, Contains("The configuration is of another model: " + conflict));
  CHECK_THAT(outcome.err, Contains("note: " + conflict) && Contains("recipe megatron-lm-2025"));
  CHECK_THAT(shop.run("export torchtitn" + kOnScript + "--strategy mesh").err,
             Contains("did you mean 'torchtitan'?") && Contains("deepspeed"));
}

} // namespace
} // namespace stagecraft::test
