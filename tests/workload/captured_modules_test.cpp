// What Megatron-LM's names for captured modules mean in shipped models.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/captured_modules.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft::test {
namespace {

ModelGraph shipped(const std::string& name) { return load_model(source_dir() / "workloads" / (name + ".yaml")); }

std::string names_in(const ModelGraph& model, int layer, const std::function<bool(const Operator&)>& belongs) {
  const std::string front = "layer." + std::to_string(layer) + ".";
  std::string names;
  for (const Operator& op : model.operators) {
    const bool inside = op.name.starts_with(front) && belongs(op);
    names += inside ? (names.empty() ? "" : " ") + op.name.substr(front.size()) : "";
  }
  return names;
}

// The names of what is captured of one layer, "layer.N." left out.
std::string captured(const ModelGraph& model, std::vector<std::string> modules, int layer) {
  return names_in(with_captured_graphs(model, modules), layer, [](const Operator& op) { return op.captured; });
}

bool counts_alone(const Operator& op) { return op.counting_captured; }

std::string counted(const ModelGraph& model, std::vector<std::string> modules, int layer) {
  return names_in(with_captured_graphs(model, modules), layer, [](const Operator& op) { return op.counted_by_host; });
}

TEST_CASE("captured modules of a dense model", "[workload][captured]") {
  const ModelGraph llama = shipped("llama3-8b");
  CHECK(captured(llama, {"attn"}, 31) == "norm1 qkv rotary attention projection add1");
  CHECK(captured(llama, {"mlp"}, 31) == "norm2 expand gate contract add2");
  CHECK(captured(llama, {"attn", "mlp"}, 31) == captured(llama, {"layer"}, 31));
  CHECK(captured(llama, {"moe", "moe_router", "moe_preprocess", "mamba"}, 31) == "");
  CHECK(static_cast<int>(captured_iteration(llama).size()) == llama.size());
  CHECK(captured_layers(llama).size() < captured_iteration(llama).size()); // embedding, head and loss
}

// Layers 0 to 2 of DeepSeek-V3 are dense, the others mixtures.
TEST_CASE("captured modules of a mixture", "[workload][captured]") {
  const ModelGraph model = shipped("deepseek-v3");
  CHECK(captured(model, {"moe_router"}, 3) == "norm2 router shared_expand shared_gate shared_contract");
  CHECK(captured(model, {"moe_preprocess"}, 3) == ""); // tokens are sorted and sent behind that graph
  CHECK(names_in(with_captured_graphs(model, {"moe_preprocess"}), 3, counts_alone) == "dispatch");
  CHECK(captured(model, {"mlp"}, 3) == "");
  CHECK(captured(model, {"moe_router"}, 0) == "");
  CHECK(captured(model, {"attn", "moe"}, 3) == captured(model, {"layer"}, 3));
}

TEST_CASE("the host waits for a mixture's counts unless a graph goes on into its experts", "[workload][captured]") {
  const ModelGraph model = shipped("deepseek-v3");
  CHECK(counted(model, {}, 3) == "dispatch");
  CHECK(counted(model, {}, 0) == "");
  CHECK(counted(model, {"attn", "moe_router", "moe_preprocess"}, 3) == "dispatch");
  for (const char* whole : {"moe", "layer", "full_iteration"}) {
    CHECK(counted(model, {whole}, 3) == "");
  }
}

TEST_CASE("rows that are padded to a capacity are not counted", "[workload][captured]") {
  ModelGraph model = shipped("mixtral-8x7b");
  REQUIRE(counted(model, {}, 0) == "dispatch");
  for (Operator& op : model.operators) {
    if (op.routing) {
      op.routing->padded = true;
    }
  }
  CHECK(counted(model, {}, 0) == "");
}

TEST_CASE("state space layers are captured by their own name", "[workload][captured]") {
  const ModelGraph model = shipped("mamba2-2.7b");
  CHECK(captured(model, {"attn"}, 0) == "");
  CHECK(captured(model, {"mamba"}, 0) == captured(model, {"layer"}, 0));
  CHECK(captured(model, {"mamba"}, 0) != "");
}

} // namespace
} // namespace stagecraft::test
