// Nothing that a configuration says is lost: what no importer reads and what is not known to have no effect is listed
// or refused, in every format and at every level.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "sim/base/named_table.hpp"
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

// A text of the format with a key at one level that nobody knows.
struct Unknown {
  std::string format, file, text, key;
};

const std::string kTitan = "[training]\nlocal_batch_size = 1\n";
const std::string kDeepSpeed = R"("train_micro_batch_size_per_gpu": 1)";
const std::string kMegatron = "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1 --num-layers 12 ";
const std::string kBridge = "train: {micro_batch_size: 1}\n";
const std::string kMaxText = "per_device_batch_size: 1\n";
const std::string kMlPerf = "export MINIBS=8 TP=1\n";

std::vector<Unknown> unknown_keys() {
  std::vector<Unknown> all;
  for (const std::string section : {"job",
                                    "profiling",
                                    "metrics",
                                    "model",
                                    "optimizer",
                                    "lr_scheduler",
                                    "activation_checkpoint",
                                    "checkpoint",
                                    "comm",
                                    "memory_estimation",
                                    "fault_tolerance",
                                    "experimental",
                                    "validation",
                                    "validator",
                                    "debug",
                                    "compile",
                                    "float8",
                                    "mx",
                                    "parallelism",
                                    "dataloader",
                                    "tokenizer",
                                    "loss",
                                    "override",
                                    "quantize.linear.float8",
                                    "made_up"}) {
    all.push_back({"torchtitan", "t.toml", kTitan + "[" + section + "]\nfrobnicate = true\n", "frobnicate"});
  }
  all.push_back({"torchtitan", "t.toml", kTitan + "frobnicate = 3\n", "frobnicate"});
  all.push_back({"torchtitan", "t.yaml", "frobnicate: 3\ntensor_parallel_degree: 1\n", "frobnicate"});
  all.push_back({"torchtitan", "t.yaml",
                 "training: {num_tokens_per_microbatch_per_dp_rank: 1024, max_context_length: 1024, frobnicate: on}\n",
                 "frobnicate"});
  for (const std::string block : {"fp16", "bf16", "data_types", "tensor_parallel", "zero_optimization", "tensorboard",
                                  "comms_logger", "checkpoint", "scheduler", "activation_checkpointing", "made_up"}) {
    all.push_back({"deepspeed", "d.json", "{" + kDeepSpeed + ", \"" + block + "\": {\"frobnicate\": 1}}",
                   block == "made_up" || block == "activation_checkpointing" ? block : block + ".frobnicate"});
  }
  all.push_back({"deepspeed", "d.json", "{" + kDeepSpeed + ", \"frobnicate\": 1}", "frobnicate"});
  all.push_back({"deepspeed", "d.json",
                 "{" + kDeepSpeed + R"(, "optimizer": {"type": "Adam", "params": {"lr": 1, "frobnicate": 1}}})",
                 "optimizer.params.frobnicate"});
  all.push_back({"deepspeed", "d.json",
                 "{" + kDeepSpeed +
                     R"(, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu", "frobnicate": 1}}})",
                 "offload_optimizer.frobnicate"});
  for (const std::string argument : {"--frobnicate", "--frobnicate 3", "--frobnicate=3", "--frob_nicate"}) {
    const std::string key = argument == "--frob_nicate" ? "frob-nicate" : "frobnicate";
    all.push_back({"megatron", "train.sh", kMegatron + argument + "\n", key});
  }
  // Names of Megatron-Core's fields and of NCCL's groups that no argument has, and a letter that none begins with.
  for (const std::string name : {"tp", "pp", "cp", "ep", "dp", "fp4", "bucket-size", "Frobnicate"}) {
    all.push_back({"megatron", "train.sh", kMegatron + "--" + name + " 8\n", "--" + name});
  }
  all.push_back({"megatron", "train.sh", kMegatron + "--gtp-weight-remat-size 2\n", "--gtp-weight-remat-size"});
  all.push_back({"megatron", "train.sh", kMegatron + "--num-layers-in-first-pipeline-stage 5\n",
                 "--num-layers-in-first-pipeline-stage"});
  all.push_back({"megatron-bridge", "b.yaml",
                 kBridge + "model: {pipeline_model_parallel_size: 2, microbatch_group_size_per_vp_stage: 4}\n",
                 "microbatch_group_size_per_vp_stage"});
  for (const std::string section : {"model", "train", "ddp", "optimizer", "logger", "dataset", "checkpoint",
                                    "scheduler", "rng", "tokenizer", "validation", "comm_overlap", "made_up"}) {
    all.push_back({"megatron-bridge", "b.yaml", kBridge + section + ": {frobnicate: 3}\n", "frobnicate"});
    if (section == "train") {
      all.back().text = "train: {micro_batch_size: 1, frobnicate: 3}\n";
    }
  }
  all.push_back({"megatron-bridge", "b.yaml", kBridge + "peft: {dim: 8}\n", "peft"});
  all.push_back({"maxtext", "m.yml", kMaxText + "frobnicate: 3\n", "frobnicate"});
  all.push_back({"maxtext", "m.yml", kMaxText + "rl: {frobnicate: 3}\n", "frobnicate"});
  all.push_back({"mlperf", "config_x.sh", kMlPerf + "export FROBNICATE=3\n", "FROBNICATE"});
  all.push_back({"mlperf", "config_x.sh", kMlPerf + ": \"${FROBNICATE:=3}\"\n", "FROBNICATE"});
  all.push_back({"nemo", "n.csv", "tp_size,mbs,gbs,frobnicate\n1,1,8,3\n", "frobnicate"});
  return all;
}

TEST_CASE("a key that nobody knows is listed or refused with its place, in every format", "[config][conformance]") {
  std::set<std::string> formats;
  for (const Unknown& one : unknown_keys()) {
    INFO(one.format << ": " << one.text);
    formats.insert(one.format);
    std::vector<std::string> listed;
    const std::string refused = error_of([&] {
      listed = read_config({one.text, one.file}, one.format, on_devices(8)).unheeded;
    });
    if (refused.empty()) {
      CHECK(std::count_if(listed.begin(), listed.end(),
                          [&](const std::string& line) { return line.find(one.key) != std::string::npos; }) == 1);
    } else {
      CHECK_THAT(refused, Catch::StartsWith(one.file + ":"));
      CHECK_THAT(refused, Catch::Contains(one.key));
    }
  }
  const std::vector<std::string> names = names_of(config_formats());
  CHECK(formats == std::set<std::string>(names.begin(), names.end()));
}

// Nor is a file that asks for nothing unusual met with lines: logging, checkpoints and rates of learning.
TEST_CASE("keys that change neither time nor memory pass in silence, in every format", "[config][conformance]") {
  for (const auto& [format, file, text, key] : std::vector<Unknown>{
           {"torchtitan", "t.toml",
            kTitan + "[activation_checkpoint]\nmode = \"none\"\n[metrics]\nlog_freq = 1\n[checkpoint]\nenable = "
                     "true\nfolder = \"x\"\n[debug]\nseed = 3\n"
                     "[validation]\nenable = true\n[comm]\nmode = \"default\"\n",
            ""},
           {"deepspeed", "d.json",
            "{" + kDeepSpeed + R"(, "steps_per_print": 10, "wall_clock_breakdown": false, "fp16": {"loss_scale": 1},
              "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}, "wandb": {"enabled": true}})",
            ""},
           {"megatron", "train.sh",
            kMegatron +
                "--lr 1e-4 --save x --log-interval 1 --swiglu --vocab-file v --tensorboard-dir t --eval-iters 1\n",
            ""},
           {"megatron-bridge", "b.yaml",
            kBridge + "logger: {log_interval: 1}\ncheckpoint: {save_interval: 5}\nmodel: {rotary_base: 10000}\n", ""},
           {"maxtext", "m.yml", kMaxText + "steps: 30\nbase_output_directory: x\nenable_checkpointing: true\n", ""},
           {"mlperf", "config_x.sh",
            kMlPerf + "export WALLTIME=5 DGXSYSTEM=x VAL_CHECK_INTERVAL=3 LR=0.1\n"
                      "export DGXSYSTEM=$(basename $0) WALLTIME=$((5 + ${NEXP} * 2))\n",
            ""},
           {"nemo", "n.csv", "tp_size,mbs,gbs,task,system\n1,1,8,pre_train,h100\n", ""}}) {
    INFO(format);
    const ImportedTraining read = read_config({text, file}, format, on_devices(8));
    CHECK(read.unheeded == std::vector<std::string>{});
  }
}

TEST_CASE("what TorchTitan's sections ask for and nobody models is listed, and nothing else of them",
          "[config][torchtitan]") {
  const ImportedTraining read = read_config(
      {kTitan + "deterministic = true\n[experimental]\ncustom_import = \"mine\"\n[optimizer]\n"
                "implementation = \"foreach\"\n[comm]\nmode = \"local_tensor\"\n[fault_tolerance]\nenable = true\n"
                "[compile]\nenable = true\ncomponents = [\"loss\"]\n[loss]\nnum_chunks = 8\n",
       "t.toml"},
      "torchtitan", on_devices(8));
  for (const std::string line :
       {"training.deterministic", "experimental.custom_import", "optimizer.implementation foreach",
        "comm.mode local_tensor", "fault_tolerance.enable", "loss.num_chunks 8"}) {
    CAPTURE(line);
    CHECK(std::count(read.unheeded.begin(), read.unheeded.end(), line) == 1);
  }
  CHECK(read.framework == "torchtitan-eager"); // of the model nothing is compiled
}

} // namespace
} // namespace stagecraft::test
