// How many rows experts take, as frameworks' files say it: the model of the study has it, and it is written back.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/written.hpp"

namespace stagecraft::test {
namespace {

const ModelGraph& mixtral() {
  static const ModelGraph kModel = load_model(source_dir() / "workloads/mixtral-8x7b.yaml");
  return kModel;
}

ImportedTraining read_of_mixtral(const std::string& text, const std::string& file) {
  return read_config({text, file}, "", {mixtral(), 8});
}

const std::string kMixtureArguments = "--micro-batch-size 1 --global-batch-size 8 --bf16 ";
const std::string kMixtureBridge = "train: {micro_batch_size: 1, global_batch_size: 8}\nmodel: {bf16: true, ";
const std::string kMixtureMaxText = "per_device_batch_size: 1\nremat_policy: full\n";

TEST_CASE("every framework's name of a capacity is the same capacity", "[config][experts]") {
  for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{
           {"a.sh", kMixtureArguments + "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity "
                                        "--moe-token-drop-policy probs"},
           {"b.yaml", kMixtureBridge + "moe_expert_capacity_factor: 1.25, moe_pad_expert_input_to_capacity: true}\n"},
           {"config_a.sh", "export MINIBS=1 MOE_EXPERT_CAPACITY_FACTOR=1.25 MOE_PAD_EXPERT_INPUT_TO_CAPACITY=True\n"},
           {"m.yml", kMixtureMaxText + "sparse_matmul: False\ncapacity_factor: 1.25\n"}}) {
    INFO(file);
    const ImportedTraining read = read_of_mixtral(text, file);
    REQUIRE(read.experts);
    CHECK(read.experts->factor == 1.25);
    CHECK(read.experts->padded);
    CHECK(read.experts->where.file == file);
    for (const std::string& line : read.unheeded) {
      CHECK_THAT(line, !Catch::Contains("capacity"));
    }
  }
  const ImportedTraining dropped = read_of_mixtral(kMixtureArguments + "--moe-expert-capacity-factor 2", "a.sh");
  REQUIRE(dropped.experts);
  CHECK_FALSE(dropped.experts->padded);
}

// Below 0 Megatron-LM drops nothing; MaxText's sparse products, its usual ones, heed no capacity.
TEST_CASE("a capacity that a framework does not heed is none, or a line", "[config][experts]") {
  CHECK_FALSE(read_of_mixtral(kMixtureArguments + "--moe-expert-capacity-factor -1", "a.sh").experts);
  CHECK(read_of_mixtral(kMixtureArguments + "--moe-pad-expert-input-to-capacity", "a.sh").unheeded ==
        std::vector<std::string>{"--moe-pad-expert-input-to-capacity (which Megatron-LM does only with "
                                 "--moe-expert-capacity-factor)"});
  const ImportedTraining sparse = read_of_mixtral(kMixtureMaxText + "capacity_factor: 1.5\n", "m.yml");
  CHECK_FALSE(sparse.experts);
  CHECK(sparse.unheeded ==
        std::vector<std::string>{"capacity_factor 1.5 (which MaxText heeds only with sparse_matmul False)"});
  CHECK(read_text(kMixtureArguments + "--moe-expert-capacity-factor 1.5", "a.sh").unheeded ==
        std::vector<std::string>{"--moe-expert-capacity-factor 1.5 ('gpt2' has no experts)"});
}

// Megatron-LM's expert tensor group is its tensor group unless told otherwise, with ranks that share experts or not.
TEST_CASE("an expert's tensor group without expert ranks is the tensor group, or a line", "[config][experts]") {
  const std::string eight = kMixtureArguments + "--tensor-model-parallel-size 8 --expert-tensor-parallel-size ";
  const ImportedTraining usual = read_of_mixtral(eight + "8", "a.sh");
  CHECK(value(usual, "parallel.expert_tensor").empty());
  CHECK(usual.unheeded.empty());
  CHECK_THAT(read_of_mixtral(eight + "1", "a.sh").unheeded.front(),
             Catch::StartsWith("--expert-tensor-parallel-size 1 beside --tensor-model-parallel-size 8 (here as many"));
}

double dispatched_rows(const ModelGraph& model) {
  const auto dispatch = std::find_if(model.operators.begin(), model.operators.end(),
                                     [](const Operator& op) { return op.type == "dispatch"; });
  REQUIRE(dispatch != model.operators.end());
  return dispatch->output_elements / 4096; // of so many features
}

// Of 4,096 tokens to two of eight experts each, 1,024 are an equal share, and half of that times eight is 4,096 rows.
TEST_CASE("a capacity in a study is that of every mixture of its model", "[config][experts]") {
  const std::string training = "{global_batch: 8, precision: bf16, parallel: {tensor: 8}}";
  const auto rows = [&](const std::string& model) { return dispatched_rows(*study_with(training, "{}", model).model); };
  CHECK(rows("mixtral-8x7b") == 8192);
  CHECK(rows("{file: mixtral-8x7b, expert_capacity: 0.5}") == 4096);
  CHECK(rows("{file: mixtral-8x7b, expert_capacity: 1.25}") == 8192); // all, where experts are equally popular
  CHECK(rows("{file: mixtral-8x7b, expert_capacity: 1.25, expert_padding: true}") == 10240);
  CHECK(rows("{file: mixtral-8x7b, expert_capacity: none}") == 8192);
}

TEST_CASE("a study takes the capacity of its configuration unless it says one itself", "[config][experts]") {
  const fs::path folder = kConfigs / "experts.sh";
  const auto rows = [](const std::string& model) {
    return dispatched_rows(*study_with("{config: experts.sh}", "{strategies: [mesh]}", model).model);
  };
  REQUIRE(fs::exists(folder));
  CHECK(rows("mixtral-8x7b") == 10240); // 1.25, padded
  CHECK(rows("{file: mixtral-8x7b, sequence: 2048}") == 5120);
  CHECK(rows("{file: mixtral-8x7b, expert_capacity: 0.5}") == 4096);
}

} // namespace
} // namespace stagecraft::test
