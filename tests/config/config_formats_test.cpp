// Every row of the table of configurations: its example is known as what it is, says a training that fits the devices,
// and what is written in the format is read back.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "sim/base/named_table.hpp"
#include "tests/config/configs.hpp"

namespace stagecraft::test {
namespace {

struct Example {
  std::string file, format;
  std::string row = {}; ///< of a table
};

const std::vector<Example> kExamples = {
    {"torchtitan.toml", "torchtitan"},
    {"torchtitan-today.yaml", "torchtitan"},
    {"deepspeed.json", "deepspeed"},
    {"maxtext.yml", "maxtext"},
    {"megatron-bridge.yaml", "megatron-bridge"},
    {"megatron.sh", "megatron"},
    {"mlperf.sh", "mlperf"},
    {"nemo.csv", "nemo", "{system: h100, dtype: bf16, model: gpt2}"},
};

std::string read_format(const ConfigSource& source) {
  const auto formats = config_formats();
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const ConfigFormat& format) { return shows(format, source); });
  return found != formats.end() ? std::string(found->name) : "";
}

ImportedTraining read_example(const Example& example, std::string_view format = "") {
  const yaml::Node row = yaml::parse(example.row.empty() ? "{}" : example.row, "study.yaml");
  const ConfigSource source(read_file(kConfigs / example.file), (kConfigs / example.file).string(),
                            example.row.empty() ? nullptr : &row);
  return read_config(source, format, on_devices(8));
}

TEST_CASE("every format has an example, which is known by what it says", "[config][conformance]") {
  std::set<std::string> shown;
  for (const Example& example : kExamples) {
    INFO(example.file);
    CHECK(read_format({read_file(kConfigs / example.file), (kConfigs / example.file).string()}) == example.format);
    shown.insert(example.format);
  }
  const std::vector<std::string> names = names_of(config_formats());
  CHECK(shown == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("every example says a training whose degrees multiply to the devices", "[config][conformance]") {
  for (const Example& example : kExamples) {
    INFO(example.file);
    const ImportedTraining read = read_example(example);
    const Training training = load_training(read.training);
    REQUIRE(training.parallel);
    const auto found = mesh_of(*training.parallel, 8);
    REQUIRE(std::holds_alternative<Mesh>(found));
    const Mesh mesh = std::get<Mesh>(found);
    CHECK(mesh.tensor * mesh.data * mesh.pipeline == 8);
    CHECK(training.global_batch > 0);
    CHECK(read.training.where.file == (kConfigs / example.file).string());
    CHECK(value(read_example(example, example.format), "global_batch") == value(read, "global_batch"));
  }
}

// True stands for an argument alone, false for none, and a list for
// words. Messages name the place in the document.
TEST_CASE("Megatron-LM's recipes have its arguments in YAML", "[config]") {
  const std::string recipe = "ENV_VARS: {NCCL_DEBUG: WARN}\nARGS:\n  tensor_model_parallel_size: 2\n"
                             "  micro_batch_size: 1\n  global_batch_size: 16\n  sequence_parallel: true\n"
                             "  use_distributed_optimizer: false\n  recompute_granularity: selective\n"
                             "  recompute_modules: [core_attn, mlp]\n  pipeline_model_parallel_layout: 'Et*6|t*6L'\n"
                             "  pipeline_model_parallel_size: 2\n  load: ${LOAD_PATH}\n";
  CHECK(read_format({recipe, "a.yaml"}) == "megatron");
  const ImportedTraining read = read_text(recipe, "a.yaml");
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.pipeline") == "2");
  CHECK(value(read, "parallel.sequence") == "true");
  CHECK(value(read, "parallel.zero") == "0");
  CHECK(value(read, "recompute.modules") == R"(["core_attn", "mlp"])");
  CHECK(read.framework == "megatron-lm-2025");
  CHECK(read.unheeded.empty());
  CHECK_THAT(refusal(recipe + "  context_parallel_size: 3\n", "a.yaml"), Catch::StartsWith("a.yaml:13:"));
  // As functional tests have them.
  const ImportedTraining test = read_text("MODEL_ARGS:\n  --tensor-model-parallel-size: 4\n  --micro-batch-size: 1\n"
                                          "  --global-batch-size: 8\n  --recompute-modules: \"[mlp moe_act]\"\n"
                                          "  --recompute-granularity: selective\n",
                                          "b.yaml");
  CHECK(value(test, "parallel.tensor") == "4");
  CHECK(value(test, "recompute.modules") == R"(["mlp"])");
  CHECK_THAT(refusal("ARGS: [micro_batch_size]\n", "c.yaml"),
             Catch::StartsWith("c.yaml:1:7: ") && Catch::Contains("no mapping"));
  CHECK_THAT(refusal("ARGS: {micro_batch_size: {a: 1}}\n", "d.yaml"), Catch::StartsWith("d.yaml:1:"));
}

// By hand: two tensor x two pipeline ranks leave two replicas of one sample, sixteen micro-batches; three layers a
// stage.
TEST_CASE("a row of NeMo is chosen by its cells", "[config]") {
  const ImportedTraining read = read_example(kExamples.back());
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.pipeline") == "2");
  CHECK(value(read, "parallel.interleave") == "3");
  CHECK(value(read, "parallel.sequence") == "true");
  CHECK(value(read, "parallel.zero") == "1");
  CHECK(value(read, "micro_batch_size") == "1");
  CHECK(value(read, "global_batch") == "32");
  CHECK(value(read, "gradient_precision") == "bf16");
  CHECK(read.framework == "nemo-2025");
  CHECK(read.schedule == "interleaved");
  CHECK(value(read, "launches.captured") == "[\"layer\"]"); // its column cuda_graphs
  CHECK(read.unheeded.empty());
  const ImportedTraining fsdp = read_example({"nemo.csv", "nemo", "{system: B200}"});
  CHECK(value(fsdp, "parallel.zero") == "3");
  CHECK(value(fsdp, "recompute.first") == "2");
  const ImportedTraining eight = read_example({"nemo.csv", "nemo", "{dtype: fp8}"});
  CHECK(value(eight, "fp8") == "delayed");
  CHECK(value(eight, "parallel.quantized_weights") == "fp8"); // its bf16_with_fp8_mixed()
  // Experts are told as any degree, for readers that can model them.
  const yaml::Node row = yaml::parse("{model: mixtral}", "study.yaml");
  const ImportedTraining moe = read_config({read_file(kConfigs / "nemo.csv"), "nemo.csv", &row}, "", on_devices(64));
  CHECK(value(moe, "parallel.expert") == "8");
  CHECK(value(moe, "parallel.expert_tensor").empty());
  CHECK(value(moe, "parallel.context").empty());
}

TEST_CASE("a row that is not the only one is refused with the columns that differ", "[config]") {
  CHECK_THAT(error_of([] {
               read_example({"nemo.csv", "nemo", "{system: h100, model: gpt2}"});
             }),
             Catch::Contains("2 rows are like that") && Catch::Contains("differ in dtype, pp_size, vp_size, mbs, gbs"));
  CHECK_THAT(error_of([] { read_example({"nemo.csv", "nemo"}); }), Catch::Contains("4 rows stand in the table"));
  CHECK_THAT(error_of([] {
               read_example({"nemo.csv", "nemo", "{sistem: h100}"});
             }),
             Catch::StartsWith("study.yaml:1:2: unknown column 'sistem'; did you mean 'system'?"));
  CHECK_THAT(error_of([] {
               read_example({"nemo.csv", "nemo", "{model: gpt2, size: huge}"});
             }),
             Catch::Contains("known of 'size' there: small"));
}

// 2 samples x 8 devices, twice: MaxText counts samples of devices, not of replicas.
// As pandas writes them, and reads them back as no value.
TEST_CASE("a cell of NeMo's table that says None has no value", "[config]") {
  for (const std::string none : {"None", "nan", "null", ""}) {
    INFO(none);
    const ImportedTraining read =
        read_text("model,tp_size,pp_size,vp_size,mbs,gbs,etp_size,recompute_layers,other\ng,2,1," + none + ",1,8," +
                      none + ",0," + none + "\n",
                  "nemo.csv");
    CHECK(value(read, "parallel.tensor") == "2");
    CHECK(value(read, "parallel.interleave").empty());
    CHECK(read.unheeded.empty());
  }
}

TEST_CASE("MaxText's degrees multiply over its networks", "[config]") {
  const ImportedTraining read = read_example(kExamples[3]);
  CHECK(value(read, "global_batch") == "32");
  CHECK(value(read, "micro_batches") == "2");
  CHECK(value(read, "parallel.tensor") == "2");
  CHECK(value(read, "parallel.data") == "4");
  CHECK(value(read, "parallel.zero") == "3");
  CHECK(value(read, "recompute.kinds") == "[\"normalization\", \"elementwise\"]");
  const std::string base = "per_device_batch_size: 1\nremat_policy: full\n";
  const ImportedTraining two =
      read_text(base + "ici_fsdp_parallelism: 4\ndcn_data_parallelism: 2\nici_expert_parallelism: 1\n", "m.yml");
  CHECK(value(two, "parallel.data") == "8"); // 4 inside each of two slices
  CHECK(value(two, "parallel.shard") == "4");
  const ImportedTraining experts = read_text(base + "ici_expert_parallelism: 4\nici_context_parallelism: 2\n", "m.yml");
  CHECK(value(experts, "parallel.expert") == "4");
  CHECK(value(experts, "parallel.context") == "2");
  CHECK(value(experts, "parallel.data") == "4");
  // Two ranks of two stages of three layers each: circular.
  const ImportedTraining circular = read_text(
      base + "ici_pipeline_parallelism: 2\nnum_layers_per_pipeline_stage: 3\nquantization: te_mxfp8\n", "m.yml");
  CHECK(value(circular, "parallel.interleave") == "2");
  CHECK(value(circular, "micro_batches") == "2");
  CHECK(value(circular, "fp8") == "mxfp8");
  CHECK(circular.schedule == "breadth-first");
}

TEST_CASE("what MaxText's policies keep does not run again", "[config][maxtext]") {
  const auto read = [](const std::string& policy) {
    return read_text("per_device_batch_size: 1\nremat_policy: " + policy + "\n", "m.yml");
  };
  const std::string all = "[\"attention\", \"normalization\", \"elementwise\"]";
  const auto first_block = [](const ImportedTraining& training) { // [2..]: the first block's, without the others'
    const std::string names = value(training, "recompute.operators");
    return names.substr(0, names.find(", \"layer.1."));
  };
  const ImportedTraining queries = read("save_qkv_proj");
  CHECK(value(queries, "recompute.kinds") == all);
  CHECK(first_block(queries) == "[\"layer.0.projection\", \"layer.0.expand\"");
  CHECK(value(queries, "offload.activations").empty());
  CHECK(value(read("qkv_proj_offloaded"), "offload.activations") == "all");
  CHECK(first_block(read("save_out_proj")) == "[\"layer.0.qkv\", \"layer.0.expand\"");
  CHECK(first_block(read("save_dot_except_mlp")) == "[\"layer.0.expand\"");
  CHECK(value(read("save_dot_with_context_except_mlp"), "recompute.kinds") == "[\"normalization\", \"elementwise\"]");
  CHECK(value(read("minimal_offloaded"), "recompute.kinds") == all);
  CHECK(value(read("minimal_offloaded"), "offload.activations") == "all");
  // Tensor by tensor.
  const ImportedTraining custom =
      read("custom\ndecoder_layer_input: offload\nquery_proj: offload\nkey_proj: offload\nvalue_proj: offload");
  CHECK(first_block(custom) == "[\"layer.0.projection\", \"layer.0.expand\"");
  CHECK(value(custom, "offload.activations") == "all");
  CHECK(custom.unheeded.empty());
  CHECK(value(read("custom\ncontext: device\nqkv_proj: device\nout_proj: device\nmlpwi_0: device\nmlpwi_1: device"),
              "recompute.kinds") == "[\"normalization\", \"elementwise\"]");
  CHECK(
      read("custom\nqkv_proj: offload").unheeded == // the input of a block stays by default
      std::vector<std::string>{"remat_policy custom that keeps a part on the device (here all of it is on the host)"});
  const ImportedTraining part = read("custom\nkey_proj: device\nout_proj: device");
  CHECK(first_block(part) == "[\"layer.0.qkv\", \"layer.0.expand\"");
  CHECK(part.unheeded ==
        std::vector<std::string>{"remat_policy custom of a part of a product (here all of it runs again)"});
  CHECK(value(read("custom"), "recompute.blocks") == "1"); // nothing but the input of a block
  CHECK_THAT(refusal("per_device_batch_size: 1\nremat_policy: custom\ncontext: hbm\n", "m.yml"),
             Catch::Contains("remat, device, offload"));
  CHECK_THAT(refusal("per_device_batch_size: 1\nremat_policy: save_qkv\n", "m.yml"), Catch::Contains("save_qkv_proj"));
}

TEST_CASE("MaxText's strategy of context is its rule", "[config]") {
  const auto rule = [](const std::string& more) {
    const ImportedTraining read = read_text("per_device_batch_size: 1\nremat_policy: full\n" + more, "m.yml");
    return value(read, "parallel.context_rule") + value(read, "parallel.context_heads");
  };
  const std::string four = "ici_context_parallelism: 4\ncontext_parallel_strategy: ";
  CHECK(rule("ici_context_parallelism: 4\n") == "all-gather"); // its default
  CHECK(rule(four + "ring\n") == "ring");
  CHECK(rule(four + "ulysses\n") == "all-to-all");
  CHECK(rule("ici_context_usp_ulysses_parallelism: 2\nici_context_parallelism: 2\ncontext_parallel_strategy: usp\n") ==
        "both2");
  CHECK(rule("ici_context_usp_ulysses_parallelism: 4\ncontext_parallel_strategy: usp\n") == "all-to-all");
  CHECK(rule("context_parallel_strategy: ring\n").empty()); // of one rank
}

TEST_CASE("what of MaxText changes a time or a size and is not modelled is a line", "[config]") {
  const auto lines = [](const std::string& more) {
    return read_text("per_device_batch_size: 1\nremat_policy: full\n" + more, "m.yml").unheeded;
  };
  CHECK(lines("attention: flash\ncapacity_factor: -1.0\nsparse_matmul: True\nmu_dtype: \"\"\nmtp_num_layers: 0\n")
            .empty());
  CHECK(lines("attention: dot_product\ncapacity_factor: 1.25\nsparse_matmul: False\n") ==
        std::vector<std::string>{"capacity_factor 1.25 ('gpt2' has no experts)", "attention dot_product",
                                 "sparse_matmul False"});
}

// A file that names its model says nothing of it by the sizes that base.yml has for another one.
TEST_CASE("sizes of MaxText's that are another model's are told with their place", "[config][maxtext]") {
  const std::string sizes =
      "per_device_batch_size: 1\nremat_policy: full\nbase_emb_dim: 2048\nnum_experts: 1\n"
      "base_num_decoder_layers: 12\nvocab_size: 50_257\nshared_experts: 0\nbase_moe_mlp_dim: -1\n";
  const ImportedTraining read = read_text(sizes, "m.yml");
  CHECK(read.conflicts == std::vector<std::string>{"m.yml:3:15: base_emb_dim 2048, but gpt2 has 768"});
  CHECK(read.unheeded.empty());
  CHECK(read_text(sizes + "model_name: gpt2\n", "m.yml").conflicts.empty());
}

TEST_CASE("what is no configuration is refused with what those are known by", "[config]") {
  CHECK_THAT(refusal("{a: 1}", "x.yaml"), Catch::Contains("'tensor_parallel_degree' (torchtitan)") &&
                                              Catch::Contains("'train_batch_size' (deepspeed)"));
  CHECK_THAT(refusal("echo hello\n", "x.sh"), Catch::Contains("(megatron)") && Catch::Contains("(mlperf)"));
  CHECK_THAT(refusal("a,b\n1,2\n", "x.csv"), Catch::Contains("'tp_size' (nemo)"));
}

} // namespace
} // namespace stagecraft::test
