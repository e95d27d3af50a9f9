// DeepSpeed's JSON as a training: degrees, pipelines and what its code checkpoints.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

ImportedTraining read_json(const std::string& more, const ModelGraph& model = gpt2(), int devices = 8) {
  return read_config({"{\"train_batch_size\": 32" + more + "}", "ds.json"}, "deepspeed", {model, devices});
}

// Eight experts, of which a token chooses two.
const ModelGraph& mixture() {
  static const ModelGraph kMixture = load_model(source_dir() / "workloads/mixtral-8x7b.yaml");
  return kMixture;
}

TEST_CASE("DeepSpeed's AutoEP shares experts whole, and sends tokens to them by all-to-alls", "[config][deepspeed]") {
  const std::string four = R"(, "expert_parallel": {"enabled": true, "autoep_size": 4, "preset_model": "mixtral"})";
  const ImportedTraining read = read_json(four, mixture());
  CHECK(value(read, "parallel.expert") == "4");
  CHECK(value(read, "parallel.expert_tensor").empty());
  CHECK(value(read, "token_dispatcher") == "alltoall");
  CHECK(read.unheeded.empty());
  CHECK(value(read_json(R"(, "expert_parallel": {"autoep_size": 4})", mixture()), "parallel.expert").empty()); // off
  CHECK(read_json(four).unheeded == std::vector<std::string>{"expert_parallel.autoep_size 4 ('gpt2' has no experts)"});
  CHECK_THAT(error_of([] { read_json(R"(, "expert_parallel": {"enabled": true, "autoep_size": 16})", mixture(), 16); }),
             Catch::Contains("does not divide the 8 experts of mixtral-8x7b; nearest that do: 8"));
  CHECK_THAT(error_of([] { read_json(R"(, "expert_parallel": {"enabled": true, "autoep_size": 3})", mixture()); }),
             Catch::Contains("does not divide the 8 ranks that share experts; nearest that do: 2 or 4"));
}

// Eight devices in groups of four, which exchange tokens for heads, are two replicas of two samples and three steps.
TEST_CASE("DeepSpeed's sequence_parallel_size are Ulysses' ranks, which are one replica", "[config][deepspeed]") {
  const ImportedTraining read = read_config(
      {R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3, "sequence_parallel_size": 4})",
       "ds.json"},
      "deepspeed", on_devices(8));
  CHECK(value(read, "parallel.context") == "4");
  CHECK(value(read, "parallel.context_rule") == "all-to-all");
  CHECK(value(read, "global_batch") == "12");
  CHECK(read.unheeded.empty());
}

TEST_CASE("DeepSpeed's block of pipelines says stages, and how many layers run again at a time",
          "[config][deepspeed]") {
  const ImportedTraining read = read_json(R"(, "pipeline": {"stages": 4, "activation_checkpoint_interval": 2})");
  CHECK(value(read, "parallel.pipeline") == "4");
  CHECK(value(read, "recompute.blocks") == "2");
  CHECK(read.unheeded.empty());
  CHECK(read_json(R"(, "pipeline": {"stages": 4, "partition": "parameters", "seed_layers": true})").unheeded ==
        std::vector<std::string>{
            "pipeline.partition parameters (here stages have as many layers, or what training.parallel.layers says)",
            "pipeline.seed_layers"});
  CHECK(value(read_json(R"(, "pipeline": {"stages": "auto"})"), "parallel.pipeline").empty());
}

// Its block says how what the code checkpoints is stored, not what.
TEST_CASE("each key of DeepSpeed's activation checkpoints is a line where it is on", "[config][deepspeed]") {
  CHECK(read_json(R"(, "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true,
                      "contiguous_memory_optimization": false})")
            .unheeded ==
        std::vector<std::string>{
            "activation_checkpointing.partition_activations (what runs again is said by training.recompute)",
            "activation_checkpointing.cpu_checkpointing (training.offload.activations leaves to hosts what "
            "training.recompute keeps)"});
}

TEST_CASE("gradients of DeepSpeed are added up in the type that it names", "[config][deepspeed]") {
  const auto read = [](const std::string& type) {
    return read_json(R"(, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": ")" + type + "\"}");
  };
  CHECK(value(read("fp32"), "gradient_precision") == "fp32");
  CHECK(value(read("bfloat16"), "gradient_precision") == "bf16");
  CHECK(read("fp16").unheeded == std::vector<std::string>{"data_types.grad_accum_dtype fp16 (here bf16, or fp32)"});
}

TEST_CASE("keys that DeepSpeed has and nobody models are lines, however near to others", "[config][deepspeed]") {
  CHECK(read_json(R"(, "zero_optimization": {"stage": 3, "zero_quantized_nontrainable_weights": true},
                      "data_efficiency": {"enabled": true})")
            .unheeded ==
        std::vector<std::string>{"zero_optimization.zero_quantized_nontrainable_weights", "data_efficiency"});
}

} // namespace
} // namespace stagecraft::test
