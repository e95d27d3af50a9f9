// TorchTitan's fields, of old and of today, as a training.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

ImportedTraining parallelism(const std::string& lines, int devices = 8) {
  return read_text("[training]\nlocal_batch_size = 4\nseq_len = 1024\n[activation_checkpoint]\nmode = \"none\"\n"
                   "[parallelism]\n" +
                       lines,
                   "t.toml", devices);
}

std::string recompute(const std::string& lines) {
  return value(read_text("[parallelism]\ntensor_parallel_degree = 1\n[activation_checkpoint]\n" + lines, "t.toml"),
               "recompute");
}

// 2 x 2 leave two replicas of four samples; twelve layers, one less for embedding and one for output, over four stages
// are 14 slots, 4, 4, 3 and 3.
TEST_CASE("TorchTitan's TOML says a training", "[config]") {
  const ImportedTraining read = read_text(read_file(kConfigs / "torchtitan.toml"), "torchtitan.toml");
  CHECK(value(read, "global_batch") == "8");
  CHECK(value(read, "micro_batch_size") == "1"); // of a pipeline, unless given
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.tensor_rule") == "torchtitan");
  CHECK(value(read, "parallel.sequence") == "true");
  CHECK(value(read, "parallel.zero") == "3");
  CHECK(value(read, "parallel.layers") == "Et*3|t*4|t*3|t*2L");
  CHECK(value(read, "precision") == "bf16");
  CHECK(value(read, "gradient_precision") == "fp32");
  CHECK(value(read, "clip_gradients") == "true");
  CHECK(read.schedule == "interleaved");
  CHECK(read.unheeded ==
        std::vector<std::string>{
            "seq_len 2048 (sequences of 'gpt2' are of 1024 tokens, which the model's file or --seq says)",
            "compile.enable"});
  CHECK(value(read, "pipelined_exchange") == "true");
}

// 2048 tokens are two sequences at a time for each of eight replicas; 32768 tokens a step are 32 samples.
TEST_CASE("TorchTitan's fields of today count tokens", "[config]") {
  const ImportedTraining read = read_text(read_file(kConfigs / "torchtitan-today.yaml"), "today.yaml");
  CHECK(value(read, "micro_batch_size") == "2");
  CHECK(value(read, "global_batch") == "32");
  CHECK(value(read, "parallel.data") == "8");
  CHECK(value(read, "parallel.shard") == "4");
  CHECK(value(read, "parallel.reshard") == "after-backward");
  CHECK(read.unheeded.empty());
  const ImportedTraining flat = read_text("data_parallel_shard_degree: 8\nlocal_batch_size: 2\n", "flat.yaml");
  CHECK(value(flat, "parallel.data") == "8");
  CHECK(value(flat, "global_batch") == "16");
}

TEST_CASE("replicas of TorchTitan that share nothing reduce in buckets", "[config]") {
  const ImportedTraining read = parallelism("data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n");
  CHECK(value(read, "parallel.zero") == "0");
  CHECK(value(read, "parallel.data") == "8");
  CHECK(value(read, "gradient_bucket") == "100 MiB");
  // Without FSDP its mixed precision takes effect only where nothing but replicas share the model.
  CHECK(value(read, "precision") == "bf16");
  CHECK(value(parallelism("tensor_parallel_degree = 8\n"), "precision") == "fp32");
}

// FSDP's CPUOffloadPolicy, and casts of weights to 8 bits before they are gathered.
TEST_CASE("what FSDP leaves to hosts or gathers in 8 bits is taken over", "[config][offload]") {
  const auto read = [](const std::string& training, const std::string& rest) {
    return read_text("[training]\nlocal_batch_size = 1\nseq_len = 1024\n" + training +
                         "[activation_checkpoint]\nmode = \"none\"\n[parallelism]\n" + rest,
                     "t.toml", 8);
  };
  const std::string offload = "enable_cpu_offload = true\n";
  const ImportedTraining shards = read(offload, "data_parallel_shard_degree = 8\n");
  CHECK(load_training(shards.training).offload == Offload{.optimizer = 1, .gradients = true, .parameters = true});
  CHECK(shards.unheeded.empty());
  const ImportedTraining alone = read(offload, "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n");
  CHECK_FALSE(load_training(alone.training).offload.on());
  REQUIRE(alone.unheeded.size() == 1);
  CHECK_THAT(alone.unheeded.front(), Catch::StartsWith("training.enable_cpu_offload"));
  const std::string eight = "[model]\nconverters = [\"float8\"]\n[float8]\nenable_fsdp_float8_all_gather = true\n";
  const ImportedTraining gathered = read("", "data_parallel_shard_degree = 8\n" + eight);
  CHECK(value(gathered, "fp8") == "tensorwise");
  CHECK(value(gathered, "parallel.quantized_weights") == "fp8");
  CHECK(value(read("", "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n" + eight),
              "parallel.quantized_weights")
            .empty());
}

TEST_CASE("contexts and experts of TorchTitan are told as any degree", "[config]") {
  const ImportedTraining read =
      parallelism("context_parallel_degree = 2\nexpert_parallel_degree = 4\nexpert_tensor_parallel_degree = 1\n");
  CHECK(value(read, "parallel.context") == "2");
  CHECK(value(read, "parallel.expert") == "4");
  CHECK(value(read, "parallel.expert_tensor").empty());
}

TEST_CASE("TorchTitan's schedules have our names, or are named", "[config]") {
  const auto schedule = [](const std::string& name) {
    return parallelism("pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"" + name + "\"\n");
  };
  CHECK(schedule("1f1b").schedule == "1f1b");
  CHECK(schedule("GPipe").schedule == "gpipe");
  CHECK(schedule("LoopedBFS").schedule == "breadth-first");
  CHECK(schedule("ZBVZeroBubble").schedule == "zb-v");
  CHECK(schedule("DualPipeV").schedule == "dualpipe-v");
  const ImportedTraining none = schedule("InterleavedZeroBubble");
  CHECK(none.schedule.empty());
  CHECK(none.unheeded == std::vector<std::string>{"parallelism.pipeline_parallel_schedule InterleavedZeroBubble"});
}

TEST_CASE("stages of TorchTitan may be listed by modules or by split points", "[config]") {
  const auto layers = [](const std::string& lines) {
    return value(parallelism("pipeline_parallel_degree = 2\n" + lines), "parallel.layers");
  };
  CHECK(layers("pipeline_parallel_split_points = [\"layers.5\"]\n") == "Et*5|t*7L");
  CHECK(layers("module_fqns_per_model_part = [[\"tok_embeddings\", \"layers.0\"], [\"layers.1\", \"norm\", "
               "\"output\"]]\n") == "Et|tL");
  CHECK(layers("pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 2\n") ==
        "Et*7|t*5L");
}

// Every second of the six layers a stage would have is three.
TEST_CASE("TorchTitan's checkpoints of activations are recompute", "[config]") {
  CHECK(recompute("mode = \"none\"\n") == "none");
  CHECK(recompute("mode = \"full\"\n") == "{\"blocks\": \"1\"}");
  CHECK(recompute("") == "{\"first\": \"6\"}"); // selective, every second layer
  CHECK(recompute("selective_ac_option = \"3\"\n") == "{\"first\": \"4\"}");
  CHECK(recompute("selective_ac_option = \"op\"\n") == "{\"kinds\": [\"normalization\", \"elementwise\"]}");
}

TEST_CASE("products of TorchTitan go round in pieces only if they are compiled and tokens are shared", "[config]") {
  const std::string tensor = "tensor_parallel_degree = 2\nenable_async_tensor_parallel = true\n";
  CHECK(value(parallelism(tensor + "[compile]\nenable = true\n"), "pipelined_exchange") == "true");
  for (const std::string& more :
       {std::string(), std::string("enable_sequence_parallel = false\n[compile]\nenable = true\n")}) {
    const ImportedTraining read = parallelism(tensor + more);
    CHECK(value(read, "pipelined_exchange").empty());
    CHECK_THAT(read.unheeded.front(), Catch::StartsWith("parallelism.enable_async_tensor_parallel (which"));
  }
}

TEST_CASE("float8 of TorchTitan is a converter of the model", "[config]") {
  const auto read = [](const std::string& more) {
    return read_text("[parallelism]\ntensor_parallel_degree = 1\n[model]\nconverters = [\"" + more, "t.toml");
  };
  CHECK(value(read("float8\"]\n"), "fp8") == "tensorwise");
  CHECK(value(read("quantize.linear.mx\"]\n"), "fp8") == "mxfp8");
  const ImportedTraining rows = read("float8\"]\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n");
  CHECK(value(rows, "fp8") == "rowwise");
  const ImportedTraining other = read("float8\"]\n[quantize.linear.float8]\nrecipe_name = \"rowwise_with_gw_hp\"\n");
  CHECK(value(other, "fp8").empty());
  CHECK(other.unheeded.front() == "float8.recipe_name rowwise_with_gw_hp");
}

} // namespace
} // namespace stagecraft::test
