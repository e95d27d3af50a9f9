// Layouts of pipelines: what their text means, what is refused, and which operators a letter stands for.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "sim/workload/training/pipeline_layout.hpp"
#include "tests/error_of.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

PipelineLayout read(const std::string& text) { return read_pipeline_layout({text, {"f", 3, 9}}); }

using test::error_of;
using Stages = std::vector<std::string>;

// The examples of Megatron-LM's pipeline_parallel_layer_layout.py.
TEST_CASE("a layout is read as Megatron-LM reads it", "[workload][layout]") {
  Stages expected = {"Ettt"};
  expected.insert(expected.end(), 29, "tt");
  expected.insert(expected.end(), {"m", "L"});
  CHECK(read("Ettt|(tt|)*29,m|L").stages == expected);
  CHECK(read("Et*3|(tt|)*29,m|L").stages == expected);
  CHECK(read("E|t*5|t,m,L").stages == Stages{"E", "ttttt", "tmL"});
  CHECK(read("E(tt|t)*2L").stages == Stages{"Ett", "ttt", "tL"}); // tt|t and tt|t
  CHECK(read("E,(|tt)*2|L").stages == Stages{"E", "tt", "tt", "L"});
  CHECK(to_text(read("Ettt|(tt|)*2,m|L")) == "Et*3|t*2|t*2|m|L");
  CHECK(read("Et*3|(tt|)*29,m|L").count('t') == 3 + 58);
}

TEST_CASE("a layout that makes no sense is refused with the place", "[workload][layout]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"EtxL", "f:3:9: unknown layer 'x' in the layout, at character 3; allowed: E (embedding), t (transformer layer), "
               "m (layer that predicts a further token), L (loss), | between stages, x*n and (…)*n"},
      {"tEL", "f:3:9: the layout is out of order, at character 1; allowed: one E first, then t, then m, one L last"},
      {"t|EtL", "f:3:9: the layout is out of order, at character 1"},
      {"|EtL", "f:3:9: the layout is out of order, at character 2"},
      {"EtEL", "f:3:9: the layout is out of order, at character 3"},
      {"EtmtL", "f:3:9: the layout is out of order, at character 4"},
      {"EtLt", "f:3:9: the layout is out of order, at character 4"},
      {"EtLL", "f:3:9: the layout is out of order, at character 4"},
      {"Etm|mL", "f:3:9: m stands in two stages, at character 5; allowed: all m in one"},
      {"Ett", "f:3:9: the layout has no L, at character 3; allowed: one L last"},
      {"", "f:3:9: the layout has no L"},
      {"E(tt|L", "f:3:9: a group without its repetition, at character 2; allowed: (…)*n"},
      {"E((t)*2)*2L", "f:3:9: a group within a group, at character 3"},
      {"Et*xL", "f:3:9: "},
      {"Et*1048576t*1048576L", "f:3:9: the layout is longer than 1000000"},
  }));
  CAPTURE(text);
  CHECK_THAT(error_of([&, text = text] { read(text); }), Catch::StartsWith(expected));
}

TEST_CASE("a character's column is told where nothing shifts it", "[workload][layout]") {
  CHECK_THAT(error_of([] {
               read_pipeline_layout({"EtxL", {"f", 3, 9}, true});
             }),
             Catch::StartsWith("f:3:11: unknown layer 'x' in the layout; allowed"));
}

TEST_CASE("the nearest layout adds layers to the shortest stage, or takes them from the longest",
          "[workload][layout]") {
  CHECK(to_text(with_layers(read("Et*3|t*2|t*4|L"), 11)) == "Et*4|t*3|t*4|L"); // 2 -> 3, then the first of two 3
  CHECK(to_text(with_layers(read("Et*3|t*2|t*4|L"), 7)) == "Et*2|t*2|t*3|L");  // 4 -> 3, then the first of two 3
  CHECK(to_text(with_layers(read("E|L"), 7)) == "E|L");
}

std::vector<std::string> names(const ModelGraph& model, const std::vector<OperatorId>& operators) {
  std::vector<std::string> names;
  for (const OperatorId op : operators) {
    names.push_back(model.operators[op].name);
  }
  return names;
}

// Its block 61 predicts the token after next from block 60's output; the next token's head and loss stand between.
TEST_CASE("a layer that predicts a further token has what leads to it, the loss what does not", "[workload][layout]") {
  const ModelGraph model = test::workload(read_file(test::source_dir() / "workloads/deepseek-v3-mtp.yaml"));
  const PipelineLayout layout = read("Et*3|(tt|)*29,m|L");
  REQUIRE(layers_defect(layout, model).empty());
  const auto stages = stages_of(layout, model);
  REQUIRE(stages.size() == 32);
  const std::vector<std::string> further = names(model, stages[30]);
  CHECK(std::vector(further.begin(), further.begin() + 5) ==
        std::vector<std::string>{"second_embedding", "second_token_norm", "second_state_norm", "second_both",
                                 "second_join"});
  CHECK(
      std::all_of(further.begin() + 5, further.end(), [](const auto& name) { return name.starts_with("layer.61."); }));
  CHECK(names(model, stages[31]) ==
        std::vector<std::string>{"norm", "head", "next_loss", "second_norm", "second_head", "second_loss", "loss"});
  CHECK(names(model, stages[29]).back() == "layer.60.add2");
  std::size_t operators = 0;
  for (const auto& stage : stages) {
    operators += stage.size();
  }
  CHECK(operators == static_cast<std::size_t>(model.size()));
  CHECK(layers_defect(read("Et*60|t*2,L"), model).empty()); // all are layers, where none is said to predict more
  CHECK(layers_defect(read("Et*61|t*2,L"), model) ==
        "63 transformer layers here, and 'deepseek-v3-mtp' has 62 numbered blocks; allowed: the same number");
  CHECK(layers_defect(read("Et*60|m,L"), model) ==
        "60 transformer layers and 1 that predict further tokens here, and 'deepseek-v3-mtp' has 62 numbered blocks; "
        "allowed: the same number");
}

} // namespace
} // namespace stagecraft
