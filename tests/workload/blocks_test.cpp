// Blocks by name, and the row of layers that a pipeline of blocks is cut from.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/blocks.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using Ids = std::vector<OperatorId>;

// A chain of operators of these names.
ModelGraph chain_of(const std::vector<std::string>& names) {
  std::vector<Operator> operators;
  std::vector<std::pair<int, int>> edges;
  for (const std::string& name : names) {
    operators.emplace_back().name = name;
    if (operators.size() > 1) {
      edges.emplace_back(static_cast<int>(operators.size()) - 2, static_cast<int>(operators.size()) - 1);
    }
  }
  return make_graph("model", std::move(operators), std::move(edges), {}, {"model", 0, 0});
}

TEST_CASE("a block is a name up to its first number, or without its last part", "[workload][blocks]") {
  const ModelGraph model = chain_of({"embedding", "layer.0.norm", "layer.0.mlp.3.relu", "layer.1.norm", "first.conv",
                                     "first.relu", "/h/h.2/attn/MatMul", "/h/h.2/Add", "loss"});
  std::vector<std::string> names;
  std::vector<std::size_t> sizes;
  for (const Block& block : blocks_of(model)) {
    names.push_back(block.name);
    sizes.push_back(block.operators.size());
  }
  CHECK(names == std::vector<std::string>{"embedding", "layer.0", "layer.1", "first", "/h/h.2", "loss"});
  CHECK(sizes == std::vector<std::size_t>{1, 2, 1, 2, 2, 1});
}

TEST_CASE("layers between numbered blocks belong to the block before them", "[workload][blocks]") {
  const LayerRow row = layer_row_of(chain_of({"embedding", "layer.0.a", "pool", "layer.1.a", "norm", "loss"}));
  CHECK(row.before == Ids{0});
  REQUIRE(row.layers.size() == 2);
  CHECK(row.layers[0].operators == Ids{1, 2});
  CHECK(row.layers[1].operators == Ids{3});
  CHECK(row.after == Ids{4, 5});
  CHECK(layer_row_of(chain_of({"a", "b"})).layers.empty());
}

} // namespace
} // namespace stagecraft
