// Configurations in studies: they run, and a plan that does not fit says what would.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/written.hpp"

namespace stagecraft::test {
namespace {

ComparisonResult compared(const Study& study) {
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  return compare(memo);
}

TEST_CASE("the layout of every example runs in a study, under its schedule", "[config]") {
  for (const auto& [file, schedule] : std::vector<std::pair<std::string, std::string>>{
           {"torchtitan.toml", "interleaved"},
           {"torchtitan-today.yaml", "1f1b"},
           {"deepspeed.json", "1f1b"},
           {"maxtext.yml", "1f1b"},
           {"megatron.sh", "interleaved"},
           {"megatron-bridge.yaml", "1f1b"},
           {"mlperf.sh", "interleaved"},
           {"{file: nemo.csv, row: {system: h100, dtype: bf16, model: gpt2}}", "interleaved"}}) {
    INFO(file);
    const Study study = study_with("{config: " + file + "}");
    REQUIRE(study.schedules.size() == 1);
    CHECK(study.schedules.front().name() == schedule);
    const Comparison comparison = compared(study).comparison;
    CHECK(comparison.runs.front().why_not == "");
  }
  CHECK(study_with("{config: megatron.sh}", "{strategies: [mesh], schedules: [gpipe]}").schedules.front().name() ==
        "gpipe");
}

TEST_CASE("a configuration brings its framework's recipe along", "[config]") {
  const auto recipe = [](const std::string& training) {
    const Study study = study_with(training);
    return std::pair(study.training.framework, study.framework_of_config);
  };
  using Pair = std::pair<std::string, std::string>;
  CHECK(recipe("{config: megatron.sh}") == Pair("megatron-lm-2025", "megatron-lm-2025"));
  CHECK(recipe("{config: megatron-bridge.yaml}") == Pair("megatron-bridge", "megatron-bridge"));
  CHECK(recipe("{config: torchtitan.toml}").first.starts_with("torchtitan"));
  CHECK(recipe("{config: deepspeed.json}") == Pair("", ""));
  CHECK(recipe("{config: maxtext.yml}") == Pair("maxtext", "maxtext"));
  CHECK(recipe("{config: mlperf.sh}") == Pair("megatron-bridge", "megatron-bridge"));
  CHECK(recipe("{config: megatron.sh, framework: none}") == Pair("", ""));
  CHECK(recipe("{config: megatron.sh, framework: nemo-2025}") == Pair("nemo-2025", ""));
}

// What a recipe says where a study is silent does not go before what a framework does where its file is silent.
TEST_CASE("what a file leaves out is as its framework has it, not as the recipe", "[config]") {
  const Study study = study_with("{config: megatron-bridge.yaml}");
  CHECK(study.training.gradient_precision == Precision::bf16);
  CHECK(study.training.parallel->sharding.gather == Gather::after_step);
}

TEST_CASE("a study's own number of ranks shares the layers of a configuration anew", "[config]") {
  CHECK(study_with("{config: torchtitan.toml}").training.parallel->layers);
  CHECK_FALSE(study_with("{config: torchtitan.toml, parallel: {pipeline: 4}}").training.parallel->layers);
}

// Llama 3 8B with Adam takes 16 bytes a parameter, 128 GB, on each replica that shares nothing.
TEST_CASE("a configured layout that does not fit says what would", "[config]") {
  const auto would_fit = [](const std::string& training) {
    const Study study = study_with(training, "{strategies: [mesh], schedules: [1f1b]}", "llama3-8b");
    const Comparison comparison = compared(study).comparison;
    return comparison.runs.front().would_fit;
  };
  const std::string adam = "{global_batch: 8, micro_batch_size: 1, optimizer: adam, precision: bf16, ";
  CHECK(would_fit(adam + "parallel: {data: 8}}") == "parallel.zero: 1");
  CHECK(would_fit(adam + "recompute: none, parallel: {data: 2, tensor: 2, zero: 1, pipeline: 2}}") == "");
  CHECK(would_fit("{global_batch: 64, micro_batch_size: 8, optimizer: adam, precision: bf16, parallel: {data: 8}}") ==
        "parallel.zero: 1 and micro_batch_size: 1");
}

// What each layer keeps of 8192 tokens for as many micro-batches as a pipeline of eight has in flight is too much.
TEST_CASE("recompute of blocks is what a layout that does not fit is told first", "[config]") {
  const Study study = study_with("{global_batch: 64, micro_batch_size: 1, optimizer: adam, precision: bf16, "
                                 "parallel: {data: 8, pipeline: 8, tensor: 2, sequence: true, zero: 1}}",
                                 "{strategies: [mesh], schedules: [1f1b]}", "llama3-70b", "16 x dgx-h100");
  CHECK(compared(study).comparison.runs.front().would_fit == "recompute: blocks");
}

} // namespace
} // namespace stagecraft::test
