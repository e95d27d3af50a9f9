// Megatron-LM's arguments as a training, under its own names, Megatron-Bridge's and MLPerf's.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

ImportedTraining read_shipped(const std::string& file, int devices = 8) {
  return read_text(read_file(kConfigs / file), (kConfigs / file).string(), devices);
}

const std::string kBatch = "--micro-batch-size 1 --global-batch-size 32 ";

// Twelve layers in stages of three on two ranks are two stages a rank. Buckets are of 40 million gradients of 4 bytes.
TEST_CASE("Megatron-LM's arguments say a training", "[config]") {
  const ImportedTraining read = read_shipped("megatron.sh");
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.pipeline") == "2");
  CHECK(value(read, "parallel.interleave") == "2");
  CHECK(value(read, "parallel.sequence") == "true");
  CHECK(value(read, "parallel.zero") == "1");
  CHECK(value(read, "parallel.gather") == "before-use");
  CHECK(value(read, "parallel.layers").empty());
  CHECK(value(read, "precision") == "bf16");
  CHECK(value(read, "gradient_precision") == "fp32");
  CHECK(value(read, "gradient_bucket") == "160000000 B");
  CHECK(value(read, "optimizer") == "adam");
  CHECK(value(read, "clip_gradients") == "true"); // its default
  CHECK(value(read, "recompute.modules") == "[\"core_attn\"]");
  CHECK(read.schedule == "interleaved");
  CHECK(read.unheeded.empty());
  CHECK(read.conflicts.empty());
  CHECK(read.framework == "megatron-lm-2025");
  CHECK(value(read, "pipelined_exchange") == "true"); // --tp-comm-overlap
  const ImportedTraining alone = read_text(kBatch + "--tp-comm-overlap", "a.sh");
  CHECK(value(alone, "pipelined_exchange").empty());
  CHECK_THAT(alone.unheeded.front(), Catch::StartsWith("--tp-comm-overlap (which Megatron-LM does only"));
}

TEST_CASE("layers of Megatron-LM that are spread unevenly are said as a layout", "[config]") {
  const auto layers = [](const std::string& more) {
    return value(read_text(kBatch + "--pipeline-model-parallel-size 2 " + more, "a.sh"), "parallel.layers");
  };
  CHECK(layers("--num-layers 12").empty());
  CHECK(layers("--decoder-first-pipeline-num-layers 5") == "Et*5|t*7L");
  // Embedding and loss count as a layer each: fourteen, seven a stage.
  CHECK(layers("--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split") == "Et*6|t*6L");
  CHECK(layers("--pipeline-model-parallel-layout Ettt|t*9L") == "Et*3|t*9L");
}

// GPT-2 has 12 layers and heads, 768 features, 3072 between its products, sequences of 1024, 50257 words.
TEST_CASE("sizes of a launch script that are not the model's are named with their place", "[config]") {
  const auto conflicts = [](const std::string& more) { return read_text(kBatch + "\n" + more, "a.sh").conflicts; };
  CHECK(conflicts("--num-layers 12 --hidden-size 768 --ffn-hidden-size 3072 --num-attention-heads 12 --kv-channels 64 "
                  "--seq-length 1024 --max-position-embeddings 4096 --vocab-size 50257 --group-query-attention "
                  "--num-query-groups 12")
            .empty());
  CHECK(conflicts("--hidden-size 4096 --num-layers 81 --num-experts 8") ==
        std::vector<std::string>{"a.sh:2:33: --num-layers 81, but gpt2 has 12",
                                 "a.sh:2:15: --hidden-size 4096, but gpt2 has 768",
                                 "a.sh:2:50: --num-experts 8, but gpt2 has none"});
  CHECK(conflicts("--seq-length 4096") ==
        std::vector<std::string>{
            "a.sh:2:14: --seq-length 4096, but sequences of gpt2 have 1024 tokens; --seq 4096 takes it"});
}

TEST_CASE("a variable that the file does not set is as the reference says otherwise", "[config]") {
  const auto tensor = [](const std::string& before, const std::string& reference) {
    return value(read_text(before + "\n" + kBatch + "--tensor-model-parallel-size " + reference, "a.sh"),
                 "parallel.tensor");
  };
  CHECK(tensor("", "${SLURM_TP:-4}") == "4");
  CHECK(tensor("TP=2", "${TP:-4}") == "2");
  CHECK(tensor("TP=${TP:-4}", "$TP") == "4"); // as scripts take what their caller sets
  CHECK(tensor("SIZE=2", "${TP:-$SIZE}") == "2");
  CHECK_THAT(refusal("A=$A\n" + kBatch + "--tensor-model-parallel-size $A", "a.sh"),
             Catch::Contains("refers to itself"));
}

// As NeMo's examples/nlp/language_modeling/conf of 2023 have it.
TEST_CASE("a file of NeMo before 2025 says its nodes, precision, recompute and optimiser", "[config]") {
  const auto read = [](const std::string& trainer, const std::string& optimizer) {
    return read_text("trainer: {devices: 8, num_nodes: 4, " + trainer +
                         "}\nmodel: {micro_batch_size: 1, global_batch_size: 128, tensor_model_parallel_size: 4, "
                         "activations_checkpoint_granularity: full, activations_checkpoint_method: uniform, "
                         "activations_checkpoint_num_layers: 1, optim: {name: " +
                         optimizer + "}}\n",
                     "nemo.yaml", 32);
  };
  const ImportedTraining half = read("precision: bf16", "distributed_fused_adam");
  CHECK(value(half, "precision") == "bf16");
  CHECK(value(half, "recompute") == R"({"blocks": "1"})");
  CHECK(value(half, "parallel.zero") == "1");
  CHECK(half.unheeded.empty());
  CHECK(value(read("precision: 16-mixed", "fused_adam"), "precision") == "fp16");
  CHECK(value(read("precision: 16-mixed", "fused_adam"), "parallel.zero") != "1");
  CHECK(read("precision: bf16", "sgd").unheeded == std::vector<std::string>{"optim.name sgd (here it is Adam)"});
  CHECK_THAT(error_of([&] { read("precision: 8", "fused_adam"); }), Catch::Contains("precision of a trainer '8'"));
}

TEST_CASE("an optimiser that is not counted says what is", "[config]") {
  const ImportedTraining read = read_text(kBatch + "--optimizer muon", "a.sh");
  CHECK(value(read, "optimizer") == "adam");
  CHECK(read.unheeded ==
        std::vector<std::string>{
            "--optimizer muon (here it is Adam: two states of a parameter, and the time of its step)"});
}

// Real arguments that differ from known ones by a letter or two.
TEST_CASE("arguments of Megatron-LM and of launchers are not taken for misspellings", "[config]") {
  CHECK_NOTHROW(read_text("srun --nodes 4\n" + kBatch +
                              "--fp4-recipe nvfp4 --fp4-param-gather --vocab-file v.json "
                              "--master-addr a --node-rank 0 --min-lr 1 --lr 2",
                          "a.sh"));
}

TEST_CASE("degrees of Megatron-LM that the model may not have yet are told as any other", "[config]") {
  const ImportedTraining read = read_text(
      kBatch + "--context-parallel-size 2 --expert-model-parallel-size 4 --tensor-model-parallel-size 2", "a.sh", 16);
  CHECK(value(read, "parallel.context") == "2");
  CHECK(value(read, "parallel.expert") == "4");
  CHECK(value(read, "parallel.expert_tensor") == "2"); // as many as of tensors unless given
}

TEST_CASE("how Megatron-LM sends tokens to experts is how they are sent here", "[config]") {
  const auto read = [](const std::string& arguments) {
    return read_text(kBatch + "--expert-model-parallel-size 4 " + arguments, "a.sh", 16);
  };
  const auto dispatcher = [&](const std::string& arguments) { return value(read(arguments), "token_dispatcher"); };
  CHECK(dispatcher("") == "allgather"); // its default
  CHECK(dispatcher("--moe-token-dispatcher-type alltoall") == "alltoall");
  CHECK(dispatcher("--moe-token-dispatcher-type flex --moe-enable-deepep") == "deepep");
  CHECK(dispatcher("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep") == "deepep");
  CHECK(dispatcher("--moe-token-dispatcher-type allgather") == "allgather");
  CHECK(read("--moe-token-dispatcher-type allgather").unheeded.empty());
  const ImportedTraining hybrid = read("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
                                       "--moe-hybridep-num-sms 32 --moe-deepep-num-sms 24");
  CHECK(value(hybrid, "token_dispatcher") == "hybridep");
  CHECK(value(hybrid, "dispatch_processors") == "32");
  CHECK(hybrid.unheeded.empty());
  const ImportedTraining other = read("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend ncclep");
  CHECK(value(other, "token_dispatcher").empty());
  CHECK(other.unheeded == std::vector<std::string>{"--moe-flex-dispatcher-backend ncclep"});
}

TEST_CASE("what runs again by Megatron-LM's arguments runs again here", "[config]") {
  const auto recompute = [](const std::string& arguments) {
    return value(read_text(kBatch + arguments, "a.sh"), "recompute");
  };
  CHECK(recompute("") == "none");
  CHECK(recompute("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2") ==
        "{\"blocks\": \"2\"}");
  CHECK(recompute("--recompute-granularity full --recompute-method block --recompute-num-layers 2") ==
        "{\"first\": \"2\"}");
  CHECK(recompute("--recompute-activations") == "{\"modules\": [\"core_attn\"]}");
  const std::string modules = "--recompute-granularity selective --recompute-modules ";
  CHECK(recompute(modules + "core_attn layernorm mlp") == "{\"modules\": [\"core_attn\", \"layernorm\", \"mlp\"]}");
  // The model here is dense, and nobody knows the last one.
  CHECK(recompute(modules + "moe_act mla_up_proj") == "");
  CHECK(read_text(kBatch + modules + "mlp moe_act heads", "a.sh").unheeded ==
        std::vector<std::string>{"--recompute-modules moe_act (the model has none)", "--recompute-modules heads"});
}

TEST_CASE("kernels that Megatron-LM's arguments capture as CUDA graphs cost the host nothing here", "[config]") {
  const auto captured = [](const std::string& arguments) {
    return value(read_text(kBatch + arguments, "a.sh"), "launches.captured");
  };
  CHECK(captured("").empty());
  CHECK(captured("--cuda-graph-impl none --cuda-graph-modules attn").empty());
  CHECK(captured("--cuda-graph-modules attn").empty()); // by nothing
  CHECK(captured("--cuda-graph-impl local") == "[\"layer\"]");
  CHECK(captured("--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp --bf16") == "[\"attn\", \"mlp\"]");
  CHECK(captured("--cuda-graph-impl full_iteration") == "[\"full_iteration\"]");
  CHECK(captured("--cuda-graph-impl local --cuda-graph-scope full_iteration") == "[\"full_iteration\"]"); // of 2025
  CHECK(captured("--cuda-graph-impl local --cuda-graph-scope full") == "[\"layer\"]");
  CHECK(captured("--enable-cuda-graph") == "[\"layer\"]"); // before
  CHECK(captured("--external-cuda-graph --cuda-graph-scope attn") == "[\"attn\"]");
  // The model here is dense.
  CHECK(read_text(kBatch + "--cuda-graph-impl local --cuda-graph-modules attn moe_router", "a.sh").unheeded ==
        std::vector<std::string>{"--cuda-graph-modules moe_router (the model has none)"});
  CHECK(read_text(kBatch + "--cuda-graph-impl full_iteration --cuda-graph-modules attn", "a.sh").unheeded ==
        std::vector<std::string>{"--cuda-graph-modules (the whole iteration is captured)"});
  CHECK(
      read_text(kBatch + "--cuda-graph-impl local --cuda-graph-modules attn --cuda-graph-scope mlp", "a.sh").unheeded ==
      std::vector<std::string>{"--cuda-graph-scope (beside --cuda-graph-modules)"});
  CHECK_THROWS_WITH(captured("--cuda-graph-impl locl"), Catch::Contains("did you mean 'local'"));
  CHECK_THROWS_WITH(captured("--cuda-graph-impl local --cuda-graph-modules moe_routr"),
                    Catch::Contains("did you mean 'moe_router'"));
}

TEST_CASE("Megatron-Bridge's fields are Megatron-LM's arguments with underscores", "[config]") {
  const ImportedTraining read = read_shipped("megatron-bridge.yaml");
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.interleave").empty());
  CHECK(value(read, "micro_batch_size") == "2");
  CHECK(value(read, "recompute.first") == "2");
  CHECK(value(read, "gradient_precision") == "bf16"); // grad_reduce_in_fp32: false
  CHECK(value(read, "gradient_bucket") == "80000000 B");
  CHECK(read.schedule == "1f1b");
  CHECK(value(read, "launches.captured") == "[\"layer\"]"); // cuda_graph_impl: local, of no modules
  CHECK(read.unheeded.empty());
  CHECK(read.framework == "megatron-bridge");
  const ImportedTraining eight = read_text("{train: {micro_batch_size: 1, global_batch_size: 8}, mixed_precision: "
                                           "bf16_with_fp8_current_scaling_mixed}",
                                           "b.yaml");
  CHECK(value(eight, "fp8") == "tensorwise");
}

// Eight devices, of which two tensor ranks leave four replicas.
TEST_CASE("instances of Megatron-LM's distributed optimiser share states each for itself", "[config]") {
  const auto shard = [](const std::string& arguments) {
    return value(read_text(kBatch + arguments + " --num-distributed-optimizer-instances 2", "a.sh", 8),
                 "parallel.shard");
  };
  CHECK(shard("--tensor-model-parallel-size 2 --use-distributed-optimizer") == "2");
  CHECK(shard("--context-parallel-size 2 --use-distributed-optimizer") == "4"); // of 4 x 2 ranks
  CHECK(shard("").empty());
}

// Weights are held in 8 bits alone, and gathered so, but for mxfp8, of which Megatron-LM's optimiser gathers 16.
TEST_CASE("parameters that Megatron-LM gathers in 8 bits are gathered so", "[config]") {
  const auto read = [](const std::string& arguments) {
    return read_text(kBatch + arguments + " --bf16 --fp8-param-gather", "a.sh", 8);
  };
  const std::string states = "--use-distributed-optimizer --fp8-format hybrid";
  for (const std::string recipe : {"delayed", "tensorwise", "blockwise"}) {
    const ImportedTraining gathers = read(states + " --fp8-recipe " + recipe);
    CHECK(value(gathers, "fp8_weights") == "true");
    CHECK(value(gathers, "parallel.quantized_weights") == "fp8");
    CHECK(gathers.unheeded.empty());
    CHECK_NOTHROW(load_training(gathers.training));
  }
  const ImportedTraining two_copies = read(states + " --fp8-recipe mxfp8 --reuse-grad-buf-for-mxfp8-param-ag");
  CHECK(value(two_copies, "fp8_weights") == "true");
  CHECK(value(two_copies, "parallel.quantized_weights").empty());
  CHECK(value(read("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --fp8-format e4m3 "
                   "--fp8-recipe mxfp8"),
              "parallel.quantized_weights") == "fp8");
  CHECK(value(read("--fp8-format hybrid"), "parallel.quantized_weights").empty()); // nothing is gathered
  CHECK_THAT(read("--use-distributed-optimizer").unheeded.front(), Catch::StartsWith("--fp8-param-gather (which"));
}

// As in Megatron-LM's own examples: an array with two words in a quotation, a text of arguments that goes on with
// another one, a number of ranks that is computed, and nodes for the environment to tell.
TEST_CASE("a launch script of Megatron-LM's examples is read whole", "[config]") {
  const auto read = [](const std::string& nodes, const std::string& pipeline) {
    return read_text(
        "GPUS_PER_NODE=8\nNUM_NODES=" + nodes +
            "\nWORLD_SIZE=$(( $GPUS_PER_NODE * NUM_NODES ))\nDTYPE_ARGS=()\nif [[ \"$DTYPE\" == fp8 ]]; "
            "then\n  DTYPE_ARGS+=(\n    \"--fp8-format hybrid\"\n  )\nfi\nGPT_ARGS=\"\n  --micro-batch-size 1 "
            "\\\n  --global-batch-size 32\"\nGPT_ARGS=\"$GPT_ARGS --bf16 --pipeline-model-parallel-size " +
            pipeline + "\"\ntorchrun pretrain_gpt.py ${DTYPE_ARGS[@]} $GPT_ARGS\n",
        "train.sh", 16);
  };
  const ImportedTraining here = read("2", "4");
  CHECK(value(here, "fp8") == "delayed");
  CHECK(value(here, "precision") == "bf16");
  CHECK(value(here, "global_batch") == "32");
  CHECK(value(here, "parallel.pipeline") == "4");
  CHECK(here.unheeded.empty());
  CHECK(read("1", "4").unheeded == std::vector<std::string>{"8 ranks (the platform has 16 devices)"});
  CHECK(read("${SLURM_NNODES:-\"1\"}", "16").unheeded.empty()); // as many as the platform has
  CHECK_THAT(error_of([&] { read("3", "16"); }),
             Catch::StartsWith("train.sh:13:58: --pipeline-model-parallel-size 16"));
  std::string doubled = "A0=1\n"; // each of 60 variables is twice the one before: nobody counts them up one by one
  for (int i = 1; i < 20; ++i) {
    doubled += "A" + std::to_string(i) + "=$((A" + std::to_string(i - 1) + " + A" + std::to_string(i - 1) + "))\n";
  }
  for (int i = 20; i < 60; ++i) {
    doubled += "A" + std::to_string(i) + "=$((A" + std::to_string(i - 1) + " - 0 * A" + std::to_string(i - 1) + "))\n";
  }
  CHECK(read_text(doubled + "WORLD_SIZE=$((A59 / A18))\n" + kBatch, "a.sh", 2).unheeded.empty());
  std::string chain = "A0=1\n";
  for (int i = 1; i < 100'000; ++i) {
    chain += "A" + std::to_string(i) + "=$((A" + std::to_string(i - 1) + "))\n";
  }
  CHECK_THAT(refusal(chain + "WORLD_SIZE=$((A99999))\n" + kBatch, "a.sh"),
             Catch::Contains("more than 200 variables refer to one another"));
  CHECK_THAT(refusal("WORLD_SIZE=$((A))\nA=$((A + 1))\n" + kBatch, "a.sh"), Catch::Contains("refers to itself"));
  CHECK(refusal("WORLD_SIZE=$((8 << 1))\n" + kBatch, "a.sh") ==
        "a.sh:1:1: '$((8 << 1))' is not understood; allowed: whole numbers and variables, with + - * / % and brackets");
}

TEST_CASE("an argument may stand in both branches of a condition, with one value", "[config]") {
  const auto branches = [](const std::string& other) {
    return kBatch + "\nif [ $MOCK ]; then\n  A=(--num-layers 12)\nelse\n  A=(--num-layers " + other + ")\nfi\n";
  };
  CHECK(read_text(branches("12"), "a.sh").conflicts.empty());
  CHECK_THAT(refusal(branches("24"), "a.sh"), Catch::Contains("'--num-layers' is given twice"));
  CHECK(refusal(branches("12") + "--num-layers 12", "a.sh").empty()); // as Megatron-LM's example of BERT has one twice
}

// Twelve blocks here: eleven layers and one that predicts a further token are as many.
TEST_CASE("layers that predict further tokens count among a script's", "[config]") {
  const auto conflicts = [](const std::string& layers) { return read_text(kBatch + layers, "a.sh").conflicts; };
  CHECK(conflicts("--num-layers 11 --mtp-num-layers 1").empty());
  REQUIRE(conflicts("--num-layers 12 --mtp-num-layers 1").size() == 1);
  CHECK_THAT(conflicts("--num-layers 12 --mtp-num-layers 1").front(),
             Catch::Contains("--num-layers and --mtp-num-layers 13, but"));
}

// A mixture's dispatch need not say how many experts there are.
TEST_CASE("a script's experts are held against the router's", "[config]") {
  static const ModelGraph kModel = load_model(source_dir() / "workloads/mixtral-8x7b.yaml");
  const auto unlike = [](const std::string& arguments) {
    return read_config({kBatch + arguments, "a.sh"}, "", {kModel, 8}).conflicts.size();
  };
  CHECK(unlike("--num-experts 8 --moe-router-topk 2") == 0);
  CHECK(unlike("--num-experts 16 --moe-router-topk 2") == 1);
}

// Megatron-LM runs a forward beside a backward without a pipeline or with virtual stages, and refuses any other.
TEST_CASE("tokens go to experts beside another micro-batch's passes, with virtual stages or without a pipeline",
          "[config]") {
  const std::string overlap = "--overlap-moe-expert-parallel-comm";
  const auto schedule = [](const std::string& arguments) { return read_text(kBatch + arguments, "a.sh").schedule; };
  CHECK(schedule(overlap) == "combined-1f1b");
  CHECK(schedule(overlap + " --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2") ==
        "combined-interleaved");
  CHECK(schedule(overlap + " --pipeline-model-parallel-size 2") == "combined-1f1b");
}

TEST_CASE("latent queries and keys are turned by one kernel each among experimental functions", "[config]") {
  const ModelGraph deepseek = load_model(source_dir() / "workloads/deepseek-v3.yaml");
  const auto launches = [&](const std::string& flags) {
    return value(read_config({kBatch + flags, "a.sh"}, "", {deepseek, 8}), "launches.types.latent_product.forward");
  };
  CHECK(launches("--bf16").empty()); // as the recipe has it
  CHECK(launches("--enable-experimental") == "29");
  CHECK(launches("--enable-experimental --no-rope-fusion").empty());
  const ImportedTraining other = read_text(kBatch + "--enable-experimental --no-rope-fusion", "a.sh");
  CHECK(value(other, "launches.types.latent_product.forward").empty());
  CHECK(other.unheeded == std::vector<std::string>{"--no-rope-fusion"});
}

// Master weights are what weights in bf16 lack, unless products in 8 bits have scales of today.
TEST_CASE("the optimiser that is aware of precisions has states and master weights of fewer bits", "[config]") {
  const auto read = [](const std::string& arguments) { return read_text(kBatch + arguments, "a.sh"); };
  const std::string aware = "--bf16 --use-precision-aware-optimizer ", half = "--exp-avg-dtype bf16 ";
  const ImportedTraining both = read(aware + half + "--exp-avg-sq-dtype bf16");
  CHECK(value(both, "state_precision") == "bf16");
  CHECK(value(both, "master_remainders") == "true");
  CHECK(both.unheeded.empty());
  CHECK(value(read(aware + "--exp-avg-dtype torch.uint8 --exp-avg-sq-dtype fp8"), "state_precision") == "fp8");
  CHECK(value(read(aware + "--fp8-format e4m3"), "master_remainders") == "true"); // delayed
  CHECK(value(read(aware + "--fp8-format e4m3 --fp8-recipe mxfp8"), "master_remainders").empty());
  CHECK(value(read(aware + "--main-params-dtype fp16"), "master_remainders").empty());
  const ImportedTraining one = read(aware + half);
  CHECK(value(one, "state_precision") == "fp32"); // the wider of the two
  CHECK(one.unheeded == std::vector<std::string>{"--exp-avg-dtype bf16 (both states count alike)"});
  const ImportedTraining without = read(half);
  CHECK(value(without, "state_precision").empty());
  CHECK(without.unheeded == std::vector<std::string>{"--exp-avg-dtype bf16 (without --use-precision-aware-optimizer)"});
  CHECK_THAT(error_of([&] { read(aware + "--exp-avg-dtype bf61"); }),
             Catch::Contains("format of optimizer states 'bf61'") && Catch::Contains("did you mean 'bf16'"));
}

// A value that is modelled is no line, and a part of the optimiser that the host steps is offload.
TEST_CASE("what changes a time or a size and is not modelled is a line each", "[config]") {
  const auto read = [](const std::string& arguments) { return read_text(kBatch + arguments, "a.sh"); };
  CHECK(read("--attention-backend flash --transformer-impl transformer_engine --exp-avg-dtype fp32").unheeded.empty());
  CHECK(read("--attention-backend unfused --transformer-impl local").unheeded ==
        std::vector<std::string>{"--attention-backend unfused", "--transformer-impl local"});
  for (const std::string flag : {"--moe-shared-expert-overlap", "--first-last-layers-bf16", "--nccl-ub", "--use-sharp",
                                 "--overlap-dispatch-backward-with-experts-wgrad"}) {
    CHECK(read(flag).unheeded == std::vector<std::string>{flag});
  }
  CHECK(value(read("--optimizer-cpu-offload --optimizer-offload-fraction 0.5"), "offload.optimizer") == "0.5");
  CHECK(read("--optimizer-cpu-offload").unheeded.size() == 1);
  CHECK(value(read("--no-gradient-accumulation-fusion"), "fused_gradient_sums") == "false");
}

TEST_CASE("sends that do not overlap make a stage wait", "[config]") {
  const std::string pipelined = kBatch + "--pipeline-model-parallel-size 2 ";
  CHECK(value(read_text(pipelined, "a.sh"), "blocking_sends").empty());
  const ImportedTraining apart = read_text(pipelined + "--no-overlap-p2p-communication", "a.sh");
  CHECK(value(apart, "blocking_sends") == "unsplit");
  CHECK(apart.unheeded.empty());
}

TEST_CASE("stages may send whole tensors and experts' weights come late in a chain of buckets", "[config]") {
  const ImportedTraining whole = read_text(kBatch + "--no-scatter-gather-tensors-in-pipeline", "a.sh");
  CHECK(value(whole, "scatter_gather") == "false");
  CHECK(whole.unheeded.empty());
  CHECK(value(read_text(kBatch, "a.sh"), "scatter_gather").empty());
  const auto late = [](const std::string& arguments) {
    return value(read_text(kBatch + "--use-distributed-optimizer --overlap-grad-reduce " + arguments, "a.sh"),
                 "parallel.late_experts");
  };
  CHECK(late("--num-experts 8 --overlap-param-gather") == "true");
  CHECK(late("--num-experts 8").empty());
  CHECK(late("--overlap-param-gather").empty());
}

TEST_CASE("the last product's gradients of weights are deferred in a pipeline", "[config]") {
  const auto read = [](const std::string& arguments) {
    return read_text(kBatch + "--defer-embedding-wgrad-compute " + arguments, "a.sh");
  };
  const ImportedTraining deferred = read("--pipeline-model-parallel-size 2 --wgrad-deferral-limit 0");
  CHECK(value(deferred, "deferred_head") == "true");
  CHECK(deferred.unheeded.empty());
  CHECK(read("--pipeline-model-parallel-size 2 --wgrad-deferral-limit 4").unheeded ==
        std::vector<std::string>{"--wgrad-deferral-limit 4 (here the gradients of all micro-batches wait)"});
  CHECK(value(read(""), "deferred_head").empty());
  CHECK(read("").unheeded ==
        std::vector<std::string>{"--defer-embedding-wgrad-compute (which Megatron-LM does only in a pipeline)"});
  CHECK(read("--pipeline-model-parallel-size 2 --use-megatron-fsdp").unheeded ==
        std::vector<std::string>{"--defer-embedding-wgrad-compute (here not where replicas share gradients)"});
  CHECK(value(read_text("export MINIBS=8 DGXNNODES=1 DGXNGPU=8 PP=2 DEFER_EMBEDDING_WGRAD_COMPUTE=True\n",
                        "config_a.sh", 8),
              "deferred_head") == "true");
}

// Megatron-LM refuses delayed gradients of weights without pairs.
TEST_CASE("delayed gradients of weights go with pairs of passes", "[config]") {
  const auto unheeded = [](const std::string& arguments) {
    return read_text(kBatch + "--pipeline-model-parallel-size 2 --delay-wgrad-compute " + arguments, "a.sh").unheeded;
  };
  CHECK(unheeded("--overlap-moe-expert-parallel-comm --num-virtual-stages-per-pipeline-rank 2").empty());
  CHECK(value(read_text(kBatch + "--delay-wgrad-compute --overlap-moe-expert-parallel-comm", "a.sh"),
              "delayed_weights") == "true");
  CHECK(value(read_text(kBatch + "--overlap-moe-expert-parallel-comm", "a.sh"), "delayed_weights").empty());
  CHECK(unheeded("--overlap-moe-expert-parallel-comm") ==
        std::vector<std::string>{"--overlap-moe-expert-parallel-comm without virtual stages, which Megatron-LM refuses "
                                 "(here a rank has one)"});
  CHECK(unheeded("") == std::vector<std::string>{"--delay-wgrad-compute (which Megatron-LM does only with "
                                                 "--overlap-moe-expert-parallel-comm)"});
}

// mixed_precision.py: three of its sets gather so, unless the file says otherwise.
TEST_CASE("a mixed precision of Megatron-Bridge that gathers in 8 bits does so here", "[config]") {
  const auto read = [](const std::string& precision, const std::string& more = "") {
    return read_text("{train: {micro_batch_size: 1, global_batch_size: 8}, ddp: {use_distributed_optimizer: true" +
                         more + "}, mixed_precision: " + precision + "}",
                     "b.yaml");
  };
  CHECK(value(read("bf16_with_fp8_delayed_scaling_mixed"), "parallel.quantized_weights") == "fp8");
  CHECK(value(read("bf16_with_fp8_delayed_scaling_mixed", ", fp8_param_gather: false"), "fp8_weights").empty());
  CHECK(value(read("bf16_with_fp8_subchannel_scaling_mixed"), "fp8_weights").empty());
  CHECK(value(read("bf16_with_fp8_subchannel_scaling_mixed", ", fp8_param: true"), "parallel.quantized_weights") ==
        "fp8");
  CHECK_THAT(read("bf16_with_fp8_current_scaling_mixed").unheeded.front(),
             Catch::Contains("first and last layer multiply in 16 bits"));
}

// Eight samples of each of two replicas.
TEST_CASE("inputs of activations that Megatron-LM stores in 8 bits are held so here, where products are in 8 bits",
          "[config]") {
  const auto stored = [](const std::string& arguments) {
    return value(read_text(kBatch + arguments + " --activation-func-fp8-input-store", "a.sh", 16), "fp8_activations");
  };
  CHECK(stored("--bf16 --fp8-format hybrid") == "true");
  CHECK(stored("--bf16").empty());
  const std::string variables = "export MINIBS=1 DGXNNODES=1 DGXNGPU=8 FP8_ACTIVATION=True\n";
  CHECK(value(read_text(variables + "export FP8=True\n", "config_a.sh", 8), "fp8_activations") == "true");
  CHECK(value(read_text(variables, "config_a.sh", 8), "fp8_activations").empty());
}

TEST_CASE("Megatron-LM's ways to share among replicas are stages of ZeRO", "[config]") {
  const auto zero = [](const std::string& arguments) {
    return value(read_text(kBatch + arguments, "a.sh"), "parallel.zero");
  };
  CHECK(zero("") == "0");
  CHECK(zero("--use-distributed-optimizer") == "1");
  CHECK(zero("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads") == "2");
  CHECK(zero("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params") == "3");
  CHECK(zero("--use-torch-fsdp2") == "3");
}

// TP 8 x PP 4 on 128 ranks are four replicas; 1024 x 8 x 4 / 128 is 256 samples of each.
// The recipe of NVIDIA's 4 bits; AMD's, of blocks of 32, is none of ours.
TEST_CASE("products in 4 bits are nvfp4 in every configuration of NVIDIA's", "[config][fp8]") {
  const auto fp8 = [](const ImportedTraining& read) { return value(read, "fp8"); };
  CHECK(fp8(read_text(kBatch + "--bf16 --fp4-format e2m1 --fp4-recipe nvfp4", "a.sh")) == "nvfp4");
  CHECK(fp8(read_text(kBatch + "--bf16 --fp4-format e2m1", "a.sh")) == "nvfp4");
  const std::string bridge = "{train: {micro_batch_size: 1, global_batch_size: 8}, ";
  CHECK(fp8(read_text(bridge + "mixed_precision: bf16_with_nvfp4_mixed}", "b.yaml")) == "nvfp4");
  CHECK(fp8(read_text(bridge + "model: {fp4: e2m1, fp4_recipe: nvfp4, bf16: true}}", "b.yaml")) == "nvfp4");
  const ImportedTraining row = read_text("tp_size,mbs,gbs,dtype\n1,1,8,nvfp4\n", "n.csv");
  CHECK(fp8(row) == "nvfp4");
  CHECK(row.unheeded.empty());
  CHECK(fp8(read_text("export MINIBS=8 FP4=True\n", "config_a.sh")) == "nvfp4");
  const ImportedTraining other = read_text("export MINIBS=8 FP4=True FP4_RECIPE=mxfp4\n", "config_a.sh");
  CHECK(fp8(other).empty());
  CHECK(other.unheeded == std::vector<std::string>{"FP4_RECIPE mxfp4 (here products are of the precision)"});
  CHECK_THAT(refusal(kBatch + "--fp8-format hybrid --fp8-recipe nvfp4", "a.sh"), Catch::Contains("recipe of fp8"));
}

// Twelve layers on two or four ranks.
TEST_CASE("layers of the first and the last stage say which other numbers leave equal shares", "[config]") {
  const auto refused = [](const std::string& more) { return refusal(kBatch + "\n" + more, "a.sh"); };
  const std::string first = "--decoder-first-pipeline-num-layers ", last = " --decoder-last-pipeline-num-layers ";
  CHECK_THAT(refused("--pipeline-model-parallel-size 4 " + first + "4"),
             Catch::StartsWith("a.sh:2:70: 8 of 12 layers that --decoder-first-pipeline-num-layers 4 leave do not "
                               "spread evenly over the 3 stages left; nearest that do: "
                               "--decoder-first-pipeline-num-layers 3 or 6"));
  CHECK_THAT(refused("--pipeline-model-parallel-size 2 " + first + "4" + last + "5"),
             Catch::Contains("leave 3 of the 12 layers, and no stage is between them; nearest that do: "
                             "--decoder-last-pipeline-num-layers 8"));
  CHECK_THAT(refused("--pipeline-model-parallel-size 4 " + first + "10" + last + "4"),
             Catch::Contains("are more than the 12 layers; nearest that do: --decoder-last-pipeline-num-layers 2"));
  CHECK_THAT(refused("--pipeline-model-parallel-size 4 --account-for-loss-in-pipeline-split"),
             Catch::StartsWith("a.sh:2:34: 13 layers, as --account-for-loss-in-pipeline-split counts them, do not "
                               "spread evenly over 4 stages; nearest that do: 1 or 13 stages"));
}

// Eight experts of Mixtral.
TEST_CASE("experts that do not divide are refused with the nearest that do", "[config]") {
  static const ModelGraph kMixture = load_model(source_dir() / "workloads/mixtral-8x7b.yaml");
  const auto refused = [](int experts, int devices) {
    return error_of([&] {
      read_config({kBatch + "--expert-model-parallel-size " + std::to_string(experts), "a.sh"}, "megatron",
                  {kMixture, devices});
    });
  };
  CHECK_THAT(refused(3, 16), Catch::Contains("does not divide the 16 ranks of a stage; nearest that do: 2 or 4"));
  CHECK_THAT(refused(16, 16), Catch::Contains("does not divide the 8 experts of mixtral-8x7b; nearest that do: 8"));
  CHECK(refused(8, 16).empty());
}

// As files of Primus, AMD's launcher of Megatron-LM, have it where nothing runs again.
TEST_CASE("full recompute of no layers of each stage is none", "[config]") {
  const std::string full = kBatch + "--recompute-granularity full --recompute-num-layers 0 --recompute-method ";
  CHECK(value(read_text(full + "block", "a.sh"), "recompute") == "none");
  CHECK_THAT(refusal(full + "uniform", "a.sh"), Catch::Contains("'0' is not allowed"));
}

TEST_CASE("values of Megatron-Bridge's files that refer to the environment are what they are without it", "[config]") {
  const ImportedTraining read =
      read_text("{train: {micro_batch_size: '${MBS:2}', global_batch_size: 16}, "
                "model: {tensor_model_parallel_size: '${PRIMUS_TP:4}', sequence_parallel: 1}}",
                "b.yaml");
  CHECK(value(read, "micro_batch_size") == "2");
  CHECK(value(read, "parallel.tensor") == "4");
  CHECK(value(read, "parallel.sequence") == "true");
  CHECK(value(read, "precision") == "bf16"); // as its recipes have
  CHECK(value(read_text("{train: {micro_batch_size: 2}, mixed_precision: {bf16: false}}", "b.yaml"), "precision") ==
        "fp32");
  CHECK_THAT(refusal("{model: {tensor_model_parallel_size: 2}}", "b.yaml"), // by its own name
             Catch::Contains("'micro_batch_size' is missing"));
}

// As BLOOM's and many other launch scripts of clusters: a command in a variable, nodes that Slurm says.
TEST_CASE("arguments of a command that a variable holds are read", "[config]") {
  const std::string script = "NNODES=$SLURM_NNODES\nTP=4\nARGS=\" --micro-batch-size 2 --global-batch-size 64 \"\n"
                             "export LAUNCHER=\"python -u -m torch.distributed.run \\\n --nproc_per_node 8 "
                             "--nnodes $NNODES \"\n"
                             "export CMD=\" \\\n `pwd`/pretrain_gpt.py \\\n --tensor-model-parallel-size $TP $ARGS \"\n"
                             "srun bash -c \"$LAUNCHER --node_rank \\$SLURM_PROCID $CMD\"\n";
  const ImportedTraining read = read_text(script, "train.slurm", 32);
  CHECK(value(read, "parallel.tensor") == "4");
  CHECK(value(read, "micro_batch_size") == "2");
  CHECK(value(read_text("srun bash -c \"python pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1\"\n",
                        "a.sh"),
              "parallel.tensor") == "2");
  CHECK(value(read_text("echo \"try --tensor-model-parallel-size 2\"\npython a.py --micro-batch-size 1\n", "a.sh"),
              "parallel.tensor") == "1"); // words for a reader
  CHECK_THAT(refusal("torchrun a.py --tensor-model-parallel-size $TP --micro-batch-size 1\n", "a.sh"),
             Catch::Contains("'$TP' is not set in this file"));
}

TEST_CASE("arguments of years ago are those of today", "[config]") {
  const auto recompute = [](const std::string& more) {
    return value(read_text(kBatch + more, "a.sh"), "recompute.blocks");
  };
  CHECK(recompute("--checkpoint-activations") == "1");
  CHECK(recompute("--checkpoint-activations --checkpoint-num-layers 2") == "2");
  CHECK(recompute("--activations-checkpoint-method uniform --activations-checkpoint-num-layers 3") == "3");
  CHECK(recompute("--recompute-method uniform").empty()); // which without a granularity says nothing
  CHECK(value(read_text(kBatch + "--model-parallel-size 2", "a.sh"), "parallel.tensor") == "2");
  CHECK_THAT(refusal(kBatch + "--model-parallel-size 3", "a.sh"), Catch::Contains("--model-parallel-size 3"));
}

} // namespace
} // namespace stagecraft::test
