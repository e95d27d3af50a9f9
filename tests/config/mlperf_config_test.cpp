// MLPerf's config_*.sh: read, never executed, and written.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/written.hpp"

namespace stagecraft::test {
namespace {

const std::string kBase = "export MINIBS=8 TP=1\n";
const std::string kNode = "export MINIBS=8 DGXNNODES=1 DGXNGPU=8 ";

TEST_CASE("MLPerf's variables of parameters in 8 bits are Megatron-LM's argument", "[config]") {
  const auto gathers = [](const std::string& variables) {
    return value(
        read_text("export MINIBS=1 DGXNNODES=1 DGXNGPU=8 USE_DIST_OPTIMIZER=True " + variables, "config_a.sh", 8),
        "parallel.quantized_weights");
  };
  CHECK(gathers("FP8=True FP8_PARAM_GATHER=True\n") == "fp8");
  CHECK(gathers("FP8=True FP8_PARAMS=True FP8_PARAM_GATHER=True\n") == "fp8"); // the same, said twice
  CHECK(gathers("FP8=True FP8_PARAM_GATHER=False\n").empty());
  CHECK(gathers("FP8_PARAM_GATHER=True\n").empty());
}

TEST_CASE("MLPerf's variables are read and never executed", "[config]") {
  const ImportedTraining read = read_text(read_file(kConfigs / "mlperf.sh"), "mlperf.sh");
  CHECK(value(read, "global_batch") == "16");
  CHECK(value(read, "micro_batch_size") == "1");
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.interleave") == "3");
  CHECK(value(read, "parallel.sequence") == "true");
  CHECK(value(read, "pipelined_exchange") == "true"); // TP_COMM_OVERLAP
  REQUIRE(read.unheeded.size() == 2);                 // WALLTIME is the job's, whatever its value
  CHECK_THAT(read.unheeded[0], Catch::StartsWith("line 2: source $(dirname"));
  CHECK_THAT(read.unheeded[1], Catch::StartsWith("line 17: if [["));
}

// MLPerf's variables of 2025, as Megatron-LM's arguments have them.
TEST_CASE("MLPerf's graphs, recomputed modules and dispatchers are taken", "[config][mlperf]") {
  const ImportedTraining read =
      read_config({kBase + "export CUDA_GRAPH_IMPLEMENTATION=local CUDA_GRAPH_SCOPE=\"attn,mlp\"\n"
                           "export RECOMPUTE_MODULES=\"mlp\" BUCKET_SIZE=1000 OVERLAP_GRAD_REDUCE=1\n",
                   "config_x.sh"},
                  "mlperf", on_devices(8));
  CHECK(value(read, "launches.captured") == R"(["attn", "mlp"])");
  CHECK(value(read, "recompute.modules") == R"(["mlp"])");
  CHECK(value(read, "gradient_bucket") == "2000 B"); // of 2 B each
  CHECK(read.unheeded == std::vector<std::string>{});
  const ImportedTraining whole =
      read_config({kBase + "export FULL_CUDA_GRAPH=1\n", "config_x.sh"}, "mlperf", on_devices(8));
  CHECK(value(whole, "launches.captured") == R"(["full_iteration"])");
}

TEST_CASE("MLPerf's batch of Slurm's variables is that of the file's nodes, or of the platform", "[config][mlperf]") {
  const std::string batch = "export TP=8 PP=4\nexport MINIBS=$(( 1024*TP*PP/SLURM_NTASKS ))\n";
  const ImportedTraining read = read_text("export DGXNNODES=16\n" + batch, "config_a.sh", 128);
  CHECK(value(read, "global_batch") == "1024");
  CHECK(read.unheeded.empty());
  const ImportedTraining of_platform = read_text(batch, "config_a.sh", 128);
  CHECK(value(of_platform, "global_batch") == "1024");
  CHECK(of_platform.unheeded ==
        std::vector<std::string>{"'SLURM_NTASKS' is not set (here it is the platform's 128 devices)"});
  CHECK(value(read_text("export TP=8 SLURM_NTASKS=64 MINIBS=$((SLURM_NTASKS / 8))\n", "config_a.sh"), "global_batch") ==
        "8"); // the file's own
}

TEST_CASE("MLPerf's batch that only a shell can tell is the study's, or refused", "[config][mlperf]") {
  const std::string text = "export TP=8 MINIBS=$((8*UNDEF)) PP=1\n";
  CHECK_THAT(refusal(text, "config_a.sh"), Catch::StartsWith("config_a.sh:1:20: 'MINIBS' is '$((8*UNDEF))', which") &&
                                               Catch::Contains("--set training.global_batch=64"));
  const ImportedTraining read = read_config({text, "config_a.sh"}, "", {gpt2(), 8, true});
  CHECK(read.unheeded == std::vector<std::string>{"MINIBS ($((8*UNDEF)), which only a shell can tell)"});
  CHECK(read_text("export TP=8\nexport DGXNGPU=8\n", "config_a.sh").unheeded ==
        std::vector<std::string>{"no MINIBS (the batch is one micro-batch of each replica)"});
}

TEST_CASE("AMD's submissions to MLPerf call batch and ranks otherwise", "[config][mlperf]") {
  const std::string text = "export NNODES=1 GPUS_PER_NODE=4 GBS=32 MBS=2 TP=2\nexport DGXSYSTEM=$(basename $0)\n";
  const ImportedTraining read = read_text(text, "config_a.sh"); // on eight devices
  CHECK(value(read, "global_batch") == "32");
  CHECK(value(read, "micro_batch_size") == "2");
  CHECK(read.unheeded == std::vector<std::string>{"4 ranks (the platform has 8 devices)"});
}

// conf/custom.yaml of llama31_405b and its like: pretraining shares states and overlaps unless told otherwise; that of
// adapters, whose variables are short, does not.
TEST_CASE("MLPerf's pretraining does by default what its conf/*.yaml say", "[config][mlperf]") {
  const auto read = [](const std::string& more) { return read_text(kNode + more + "\n", "config_a.sh"); };
  const ImportedTraining pretraining = read("TENSOR_MODEL_PARALLEL=2");
  CHECK(value(pretraining, "parallel.zero") == "1");
  CHECK(value(pretraining, "parallel.gather") == "before-use");
  CHECK(value(pretraining, "parallel.sequence") == "true");
  CHECK(value(pretraining, "gradient_bucket") == "80000000 B"); // Megatron-LM's 40 million parameters, of 2 B
  CHECK(value(pretraining, "gradient_precision") == "bf16");
  CHECK(pretraining.framework == "megatron-bridge");
  const ImportedTraining told = read("TENSOR_MODEL_PARALLEL=2 USE_DIST_OPTIMIZER=False SEQ_PARALLEL=0");
  CHECK(value(told, "parallel.zero") == "0");
  CHECK(value(told, "parallel.sequence") == "false");
  const ImportedTraining adapters = read("TP=2");
  CHECK(value(adapters, "parallel.zero") == "0");
  CHECK(value(adapters, "parallel.sequence") == "false");
}

TEST_CASE("MLPerf's variables of deepseekv3_671b and gpt_oss_20b are Megatron-LM's arguments", "[config][mlperf]") {
  const auto read = [](const std::string& more) {
    return read_text(kNode + "TENSOR_MODEL_PARALLEL=1 " + more + "\n", "config_a.sh");
  };
  CHECK(value(read("USE_MCORE_FSDP=True"), "parallel.zero") == "3");
  CHECK(value(read("USE_MCORE_FSDP=True DP_SHARDING_STRATEGY=optim_grads"), "parallel.zero") == "2");
  CHECK(value(read("NUM_DISTOPT_INSTANCES=2"), "parallel.shard") == "4"); // of eight replicas
  CHECK(value(read("CONTEXT_PARALLEL=2 CP_COMM_TYPE=a2a"), "parallel.context_rule") == "all-to-all");
  CHECK(value(read("TP_PP_DP_MAPPING=True"), "parallel.order") == "tensor-pipeline-data");
  CHECK(value(read("ACT_CKPT_GRANULARITY=full ACT_CKPT_METHOD=block ACT_CKPT_NUM_LAYERS=3"), "recompute.first") == "3");
  CHECK(value(read("ACG=selective"), "recompute.modules") == R"(["core_attn"])");
  CHECK(value(read("GRAD_ACCUM_FUSION=False"), "fused_gradient_sums") == "false");
  CHECK(value(read("OVERLAP_P2P_COMM=False"), "blocking_sends") == "unsplit");
  CHECK(value(read("CUDA_GRAPH_IMPLEMENTATION=local CUDA_GRAPH_SCOPE=full_iteration"), "launches.captured") ==
        R"(["full_iteration"])");
  CHECK(value(read("MCORE_CUDA_GRAPH=1 CUDA_GRAPH_SCOPE=attn"), "launches.captured") == R"(["attn"])");
  for (const std::string pairs : {"MOE_EP_A2A_OVERLAP=True", "OVERLAP_MOE_EXPERT_PARALLEL_COMM=True "
                                                             "DELAY_WGRAD_COMPUTE=True"}) {
    const ImportedTraining beside = read("PIPELINE_MODEL_PARALLEL=2 INTERLEAVED_PIPELINE=2 " + pairs);
    CHECK(beside.schedule == "combined-interleaved");
    CHECK(value(beside, "delayed_weights") == "true");
    CHECK(beside.unheeded.empty());
  }
  CHECK(value(read("CUDA_GRAPH_IMPLEMENTATION=local\nunset CUDA_GRAPH_IMPLEMENTATION"), "launches.captured").empty());
  CHECK(read("FP8=True\nunset FP8 MOE_X").unheeded.empty());
  CHECK(read("SEQ_LENGTH=4096").conflicts.size() == 1); // GPT-2's sequences are 1024
  CHECK_NOTHROW(read("TP=1"));                          // the same, said twice
  CHECK_THAT(refusal(kNode + "TENSOR_MODEL_PARALLEL=1 TP=2\n", "config_a.sh"), Catch::Contains("say the same"));
}

// 64 samples of four replicas; fourteen layers count where embedding and loss are such.
TEST_CASE("a plan is written as MLPerf's variables", "[config][mlperf]") {
  const std::string base = "{global_batch: 64, micro_batches: 4, precision: bf16, optimizer: adam, ";
  CHECK(text_of(written("mlperf",
                        base + "clip_gradients: true, gradient_bucket: 80 MB, fp8: tensorwise, "
                               "parallel: {tensor: 2, sequence: true, zero: 1, gather: before-use}}",
                        "1f1b")) ==
        "export DGXNNODES=1\nexport DGXNGPU=8\nexport MINIBS=16\nexport MICRO_BATCH_SIZE=4\n"
        "export TENSOR_MODEL_PARALLEL=2\nexport PIPELINE_MODEL_PARALLEL=1\n"
        "export CONTEXT_PARALLEL=1\nexport SEQ_PARALLEL=True\nexport SEQ_LENGTH=1024\n"
        "export FP8=True\nexport FP8_RECIPE=tensorwise\nexport USE_DIST_OPTIMIZER=True\n"
        "export OVERLAP_PARAM_GATHER=True\nexport OVERLAP_GRAD_REDUCE=True\n"
        "export BUCKET_SIZE=40000000\nexport GRADIENT_CLIP_VAL=1.0\n");
  const auto layers = [&](const std::string& layout, const std::string& schedule) {
    return text_of(written("mlperf", base + "parallel: {zero: 1, pipeline: 2, layers: '" + layout + "'}}", schedule));
  };
  CHECK_THAT(layers("Et*6|t*6L", "1f1b"), !Catch::Contains("ASYM") && !Catch::Contains("LAYOUT"));
  CHECK_THAT(layers("E|(t|)*12L", "interleaved"),
             Catch::Contains("export INTERLEAVED_PIPELINE=7\nexport ASYM_PP_EMBED=True\nexport ASYM_PP_LOSS=True\n"));
  CHECK_THAT(layers("Et*5|t*7L", "1f1b"), Catch::Contains("export PIPELINE_LAYOUT=\"Et*5|t*7L\"\n"));
  const auto refused = [&](const std::string& training) { return text_of(written("mlperf", training, "1f1b")); };
  CHECK_THAT(refused("{global_batch: 64, precision: fp16, optimizer: adam, parallel: {zero: 1}}"),
             Catch::Contains("precision fp16, and config_*.sh have bf16"));
  CHECK_THAT(refused("{global_batch: 64, precision: bf16, optimizer: sgd, parallel: {zero: 1}}"),
             Catch::Contains("train with Adam"));
  CHECK_THAT(text_of(written("mlperf", base + "offload: {optimizer: 0.5}, parallel: {zero: 1}}", "1f1b")),
             Catch::Contains("# config_*.sh have no variable for --optimizer-cpu-offload\n"));
}

} // namespace
} // namespace stagecraft::test
