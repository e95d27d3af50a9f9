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
  CHECK(read.unheeded.empty());
  REQUIRE(read.conflicts.size() == 1);
  CHECK_THAT(read.conflicts.front(),
             Catch::EndsWith(": seq_len 2048, but sequences of gpt2 have 1024 tokens; --seq 2048 takes it"));
  CHECK(read.framework == "torchtitan"); // it compiles
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

TEST_CASE("a key that is read, but not where it stands, is refused with its place", "[config]") {
  const auto refusal = [](const std::string& text, const char* file) {
    return error_of([&] { read_text(text, file); });
  };
  CHECK_THAT(refusal("[parallelism]\ntensor_parallel_degree = 2\n[step_scheduler]\nglobal_batch_size = 8\n", "t.toml"),
             Catch::Contains("t.toml:4:1: 'step_scheduler.global_batch_size' is not read in [step_scheduler]; allowed: "
                             "in [training], or above all sections"));
  CHECK_THAT(refusal("per_device_batch_size: 1\noverrides:\n  ici_fsdp_parallelism: 8\n", "m.yaml"),
             Catch::Contains("'overrides.ici_fsdp_parallelism' is not read in [overrides]; allowed: above all"));
}

// As in its train_configs/llama3_405b.toml of May 2025.
TEST_CASE("TorchTitan's local batch had another name", "[config]") {
  const ImportedTraining read = read_text("[training]\nbatch_size = 2\n[parallelism]\ntensor_parallel_degree = 2\n"
                                          "data_parallel_shard_degree = -1\n[activation_checkpoint]\nmode = \"none\"\n",
                                          "t.toml");
  CHECK(value(read, "micro_batch_size") == "2");
  CHECK(value(read, "global_batch") == "8"); // of four replicas
  CHECK(read.unheeded.empty());
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

TEST_CASE("contexts of TorchTitan are told as any degree", "[config]") {
  CHECK(value(parallelism("context_parallel_degree = 2\n"), "parallel.context") == "2");
}

// deepseek_v3_16b.toml and the like, of December 2025, name every key of [parallelism], whether it has an effect or
// not.
TEST_CASE("keys of TorchTitan that have no effect at degree 1 are known", "[config]") {
  const ImportedTraining read =
      parallelism("data_parallel_replicate_degree = 1\ndata_parallel_shard_degree = -1\n"
                  "fsdp_reshard_after_forward = \"default\"\ntensor_parallel_degree = 1\n"
                  "enable_async_tensor_parallel = false\ndisable_loss_parallel = false\n"
                  "pipeline_parallel_degree = 1\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                  "context_parallel_degree = 1\ncontext_parallel_rotate_method = \"allgather\"\n"
                  "expert_parallel_degree = 1\nexpert_tensor_parallel_degree = 8\n"
                  "expert_parallel_comm_backend = \"standard\"\npipeline_parallel_expert_parallel_overlap = true\n"
                  "[quantize.grouped_mm.float8]\nfqns = [\"experts\"]\n");
  CHECK(read.unheeded.empty());
  CHECK(value(read, "parallel.expert").empty());
  CHECK(value(read, "parallel.expert_tensor").empty());
}

// apply_moe_ep_tp() knows experts of a whole tensor group and of each of its ranks.
TEST_CASE("experts of TorchTitan are those of a tensor group or of a rank", "[config]") {
  const auto read = [](const std::string& lines) {
    static const ModelGraph kMixture = load_model(source_dir() / "workloads/mixtral-8x7b.yaml");
    const std::string text = "[training]\nlocal_batch_size = 1\nseq_len = 4096\n[activation_checkpoint]\n"
                             "mode = \"none\"\n[parallelism]\n" +
                             lines;
    return read_config({text, "t.toml"}, "", {kMixture, 16});
  };
  const ImportedTraining shared = read("tensor_parallel_degree = 2\nexpert_parallel_degree = 8\n"
                                       "expert_tensor_parallel_degree = 2\n");
  CHECK(value(shared, "parallel.expert") == "8");
  CHECK(value(shared, "parallel.expert_tensor") == "2");
  CHECK(value(shared, "token_dispatcher") == "alltoall");
  CHECK(shared.unheeded.empty());
  const ImportedTraining own = read("tensor_parallel_degree = 2\nexpert_parallel_degree = 8\n"
                                    "expert_parallel_comm_backend = \"deepep\"\n");
  CHECK(value(own, "parallel.expert_tensor").empty());
  CHECK(value(own, "token_dispatcher") == "deepep");
  CHECK(value(own, "expert_choice").empty());
  const std::string eight = "expert_parallel_degree = 8\n";
  CHECK(value(read(eight + "[debug]\nmoe_force_load_balance = true\n"), "expert_choice") == "round-robin");
  CHECK(own.unheeded.empty());
  CHECK_THAT(read("tensor_parallel_degree = 2\nexpert_parallel_degree = 8\nexpert_tensor_parallel_degree = 1\n")
                 .unheeded.front(),
             Catch::StartsWith("parallelism.expert_tensor_parallel_degree 1, where"));
  // Where only the ranks of a tensor group share experts, FSDP casts weights all the same: 16 = 8 pipeline x 2 tensor.
  const ImportedTraining alone = read("data_parallel_shard_degree = 1\ntensor_parallel_degree = 2\n"
                                      "pipeline_parallel_degree = 8\nexpert_parallel_degree = 2\n");
  CHECK(value(alone, "precision") == "bf16");
  const auto refused = [&](const std::string& lines) { return error_of([&] { read(lines); }); };
  CHECK_THAT(refused("data_parallel_replicate_degree = 4\nexpert_parallel_degree = 8\n"),
             Catch::EndsWith("t.toml:8:26: 'expert_parallel_degree' 8 does not divide data_parallel_shard_degree 4 x "
                             "context_parallel_degree 1 x tensor_parallel_degree 1 = 4; nearest that do: 4"));
  CHECK_THAT(refused("tensor_parallel_degree = 4\nexpert_parallel_degree = 4\nexpert_tensor_parallel_degree = 2\n"),
             Catch::EndsWith("'expert_tensor_parallel_degree' is 2; allowed: 1, or 'tensor_parallel_degree', which is "
                             "4"));
  CHECK_THAT(refused("tensor_parallel_degree = 2\nexpert_parallel_degree = 8\nexpert_tensor_parallel_degree = 2\n"
                     "expert_parallel_comm_backend = \"deepep\"\n"),
             Catch::EndsWith("allowed: expert_tensor_parallel_degree 1, or 'standard'"));
}

TEST_CASE("experts that a model does not have are named", "[config]") {
  const ImportedTraining read = parallelism("expert_parallel_degree = 4\n");
  CHECK(value(read, "parallel.expert").empty());
  CHECK(read.unheeded == std::vector<std::string>{"parallelism.expert_parallel_degree 4 ('gpt2' has no experts)"});
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
  // Of a layer's products k, o and w3 run again; w1 and w3 are one here, which every second layer runs again.
  const std::string by_operators = recompute("selective_ac_option = \"op\"\n");
  CHECK_THAT(by_operators, Catch::StartsWith("{\"kinds\": [\"normalization\", \"elementwise\"], \"operators\": "
                                             "[\"layer.0.projection\", \"layer.0.expand\", \"layer.1.projection\", "
                                             "\"layer.2.projection\", \"layer.2.expand\", "));
  CHECK_THAT(by_operators, Catch::EndsWith("\"layer.10.expand\", \"layer.11.projection\"]}"));
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

TEST_CASE("a file with TorchTitan's order of passes is the schedule", "[config][torchtitan]") {
  const ImportedTraining read =
      read_text("[training]\nlocal_batch_size = 2\n[parallelism]\npipeline_parallel_degree = 2\n"
                "pipeline_parallel_schedule = \"PipelineScheduleMulti\"\npipeline_parallel_schedule_csv = \"my.csv\"\n"
                "[activation_checkpoint]\nmode = \"full\"\n",
                "t.toml");
  CHECK(read.schedule == "my.csv");
  CHECK(read.unheeded.empty());
}

// As its files of 2025 have both sections whether a converter is applied or not.
TEST_CASE("layers that a converter leaves alone are a line only where it is applied", "[config][torchtitan]") {
  const std::string sections = "[quantize.linear.float8]\nfilter_fqns = [\"output\", \"router.gate\"]\n";
  CHECK(parallelism(sections).unheeded.empty());
  CHECK(parallelism("[model]\nconverters = "
                    "[\"quantize.linear.float8\"]\n" +
                    sections)
            .unheeded == std::vector<std::string>{"float8.filter_fqns router.gate"});
}

// Degrees lay in [training] and [experimental] until March 2025, and float8 was no converter.
TEST_CASE("TorchTitan's files of 2024 say the same as those of 2025", "[config][torchtitan]") {
  const std::string before = "[training]\nbatch_size = 2\nseq_len = 1024\nwarmup_steps = 600\n"
                             "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = -1\n"
                             "tensor_parallel_degree = 2\nenable_loss_parallel = false\ncompile = true\n"
                             "[experimental]\ncontext_parallel_degree = 1\npipeline_parallel_degree = 1\n"
                             "enable_async_tensor_parallel = true\n[float8]\nenable_float8_linear = true\n"
                             "enable_fsdp_float8_all_gather = true\n[activation_checkpoint]\nmode = \"full\"\n";
  const ImportedTraining read = read_text(before, "t.toml");
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.tensor_rule") == "torchtitan-whole-loss");
  CHECK(value(read, "parallel.data") == "4");
  CHECK(value(read, "parallel.shard") == "2");
  CHECK(value(read, "parallel.quantized_weights") == "fp8");
  CHECK(value(read, "pipelined_exchange") == "true");
  CHECK(value(read, "fp8") == "tensorwise");
  CHECK(read.unheeded.empty());
  CHECK(value(read_text("[training]\nbatch_size = 2\ntensor_parallel_degree = 1\ndata_parallel_degree = "
                        "-1\n[activation_checkpoint]\n"
                        "mode = \"full\"\n",
                        "t.toml"),
              "parallel.zero") == "3");
  CHECK_THAT(refusal("[training]\nbatch_size = 2\ntensor_parallel_degree = 3\n", "t.toml"),
             Catch::StartsWith("t.toml:3:26: tensor_parallel_degree 3 does not divide"));
}

} // namespace
} // namespace stagecraft::test
