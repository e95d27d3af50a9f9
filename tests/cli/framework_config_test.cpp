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

// Two stages on two of eight devices each; only pairs of forward and backward delay gradients of weights.
TEST_CASE("what a study asks for and its schedule or model cannot have is a note", "[cli][config]") {
  const Workshop shop;
  const std::string training = " gpt2 --platform dgx-h100 --strategy mesh --set 'training={global_batch: 16, "
                               "micro_batches: 2, parallel: {pipeline: 2}, ";
  CHECK_THAT(shop.succeed("replay" + training + "delayed_weights: true}'").err,
             Contains("note: training.delayed_weights changes nothing under 1f1b"));
  CHECK_THAT(shop.succeed("replay" + training + "delayed_weights: true}' --schedule combined-interleaved").err,
             !Contains("delayed_weights"));
  CHECK_THAT(shop.succeed("replay" + training + "token_dispatcher: alltoall}'").err,
             Contains("training.token_dispatcher (the model has no experts), which is not taken over"));
}

TEST_CASE("a run takes the file of passes that TorchTitan's configuration names", "[cli][config]") {
  const Workshop shop;
  shop.write("my.csv", "0F0,0F1,,,0B0,,0B1,\n,1F0,1B0,1F1,1B1,,,\n");
  shop.write("t.toml", "[training]\nlocal_batch_size = 2\n[parallelism]\npipeline_parallel_degree = 2\n"
                       "pipeline_parallel_schedule = \"PipelineScheduleSingle\"\n"
                       "pipeline_parallel_schedule_csv = \"my.csv\"\n[activation_checkpoint]\nmode = \"none\"\n");
  const std::string call = " gpt2 --platform dgx-h100 --set training.config=t.toml ";
  CHECK(shop.succeed("replay" + call + "--strategy mesh --format json").json().at("schedule").get<std::string>() ==
        "my");
  CHECK_THAT(shop.succeed("compare" + call + "--strategies mesh").out, Contains("my"));
  // So do commands that plan: one that is of another number of micro-batches than the file's is told.
  shop.succeed("plan" + call + "--strategy mesh -o plan.yaml");
  CHECK_THAT(shop.succeed("check plan.yaml" + call).out, Contains("a valid plan that fits"));
  const Outcome written = shop.succeed("export torchtitan" + call + "--strategy mesh");
  CHECK_THAT(written.err, Contains("torchtitan does not carry schedule my (read back: 1f1b)"));
  const std::string other = call + "--set training.micro_batch_size=2 ";
  const std::string why = "the schedule is for 2 micro-batches";
  CHECK_THAT(shop.run("plan" + other + "--strategy mesh").out + shop.run("plan" + other + "--strategy mesh").err,
             Contains(why));
  CHECK_THAT(shop.run("check plan.yaml" + other).out, Contains("the schedule is for 2 stages and 2 micro-batches"));
  CHECK_THAT(shop.run("export torchtitan" + other + "--strategy mesh").err, Contains(why));
  CHECK_THAT(shop.run("check plan.yaml" + other + "--schedule gpipe").out, !Contains("the schedule is for"));
  CHECK_THAT(shop.succeed("check plan.yaml" + call + "--schedule my.csv").out, Contains("a valid plan that fits"));
}

TEST_CASE("MLPerf's batch of its job is the file's, and one that a shell computes is asked for", "[cli][config]") {
  const Workshop shop;
  shop.write("config_a.sh", "export TP=2 DGXNNODES=1\nexport MINIBS=$(( 32*TP/SLURM_NTASKS ))\n");
  const std::string call = "replay gpt2 --platform dgx-h100 --strategy mesh --set training.config=config_";
  // Eight samples of each of four replicas.
  CHECK_THAT(shop.succeed(call + "a.sh").out, Contains("iteration of 32 samples"));
  shop.write("config_b.sh", "export TP=2\nexport MINIBS=$(cat samples)\n");
  const Outcome refused = shop.run(call + "b.sh");
  CHECK(refused.status != 0);
  CHECK_THAT(refused.err, Contains("config_b.sh:2:15: 'MINIBS' is '$(cat samples)', which only a shell can tell"));
  CHECK_THAT(shop.succeed(call + "b.sh --set training.global_batch=64").out, Contains("iteration of 64 samples"));
}

} // namespace
} // namespace stagecraft::test
