// What Megatron-LM's names for modules mean in shipped models.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/recompute_modules.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft::test {
namespace {

ModelGraph shipped(const std::string& name) { return load_model(source_dir() / "workloads" / (name + ".yaml")); }

// The names of a module's operators in one layer, "layer.N." left out.
std::string in_layer(const ModelGraph& model, std::string_view module, int layer) {
  const std::string front = "layer." + std::to_string(layer) + ".";
  std::string names;
  for (const OperatorId op : find_by_name(kRecomputeModules, module, "module", {}).operators(model)) {
    const std::string& name = model.operators[op].name;
    names += name.starts_with(front) ? (names.empty() ? "" : " ") + name.substr(front.size()) : "";
  }
  return names;
}

// Layers 0 to 2 of DeepSeek-V3 are dense, the others mixtures.
TEST_CASE("modules of a model with latent attention and experts", "[workload][recompute]") {
  const ModelGraph model = shipped("deepseek-v3");
  CHECK(in_layer(model, "core_attn", 0) == "attention");
  CHECK(in_layer(model, "layernorm", 0) == "norm1 norm2");
  CHECK(in_layer(model, "mla_up_proj", 3) == "query_norm query_up latent_norm key_value_up");
  CHECK(in_layer(model, "mlp", 0) == "expand gate contract");
  CHECK(in_layer(model, "mlp", 3) == "");
  CHECK(in_layer(model, "moe_act", 0) == "");
  CHECK(in_layer(model, "moe_act", 3) == "gate");
  CHECK(in_layer(model, "shared_experts", 3) == "shared_expand shared_gate shared_contract");
  CHECK(in_layer(model, "moe", 3) ==
        "router dispatch expand gate contract combine shared_expand shared_gate shared_contract");
}

TEST_CASE("modules of dense models", "[workload][recompute]") {
  const ModelGraph llama = shipped("llama3-8b");
  CHECK(in_layer(llama, "core_attn", 31) == "attention");
  CHECK(in_layer(llama, "layernorm", 31) == "norm1 norm2");
  CHECK(in_layer(llama, "mlp", 31) == "expand gate contract");
  for (const char* module : {"mla_up_proj", "moe_act", "shared_experts", "moe"}) {
    CHECK(in_layer(llama, module, 31) == "");
  }
  const ModelGraph gpt = shipped("gpt2");
  CHECK(in_layer(gpt, "mlp", 0) == "expand gelu contract");
}

// The final norm stands in no layer, and convolutional networks have no such layers.
TEST_CASE("modules are of numbered blocks alone", "[workload][recompute]") {
  const ModelGraph llama = shipped("llama3-8b");
  CHECK(layer_norms(llama).size() == 2 * 32);
  const ModelGraph resnet = shipped("resnet50");
  for (const ModuleRow& row : kRecomputeModules) {
    CAPTURE(row.name);
    CHECK(row.operators(resnet).empty());
  }
}

} // namespace
} // namespace stagecraft::test
