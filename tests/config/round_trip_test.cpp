// A law of every configuration that is written: read back, it is the same plan of the same training, or what is not the
// same is named.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "tests/config/written.hpp"

namespace stagecraft::test {
namespace {

struct Case {
  std::string training, schedule = "1f1b", model = "gpt2", platform = "dgx-h100";
};

// As frameworks train: in 16 bits by Adam, gradients clipped.
Case with(const std::string& more, const std::string& schedule = "1f1b") {
  return {"{global_batch: 128, micro_batches: 4, precision: bf16, optimizer: adam, clip_gradients: true, "
          "gradient_precision: bf16, gradient_bucket: none, " +
              more + "}",
          schedule};
}

// Which multiplies numbers whose scales are of blocks.
Case on_blackwell(const std::string& more) {
  Case one = with(more);
  one.platform = "dgx-b200";
  return one;
}

// Sixteen experts of eight ranks; 48 layers.
Case of_mixture(const std::string& more, const std::string& schedule = "1f1b") {
  Case one = with(more, schedule);
  one.model = "qwen3-30b-a3b";
  one.platform = "4 x dgx-h200";
  return one;
}

// Experts that take so many rows at most.
Case limited(const std::string& model) {
  Case one = of_mixture("token_dispatcher: alltoall, parallel: {zero: 1, expert: 8}");
  one.model = model;
  return one;
}

const std::vector<Case> kCases = {
    with("parallel: {zero: 0}"),
    with("parallel: {zero: 1}"),
    {"{global_batch: 64, micro_batches: 4, precision: fp32, optimizer: adam, parallel: {zero: 1}}"},
    with("parallel: {zero: 1, tensor: 2, sequence: true}"),
    with("parallel: {zero: 1, gather: before-use, tensor: 2, sequence: true, pipeline: 2}"),
    with("parallel: {zero: 1, tensor: 2, pipeline: 2, interleave: 3, sequence: true}", "interleaved"),
    with("parallel: {zero: 1, pipeline: 2, layers: 'Et*5|t*7L'}"),
    with("parallel: {zero: 1, layers: 'Et*2|t*4|t*4|t*2L'}"),
    with("parallel: {zero: 1, pipeline: 2, layers: 'Et*6|t*6L'}", "gpipe"),
    with("parallel: {zero: 1, tensor: 2, sequence: true, pipeline: 2, order: tensor-pipeline-data}"),
    with("parallel: {zero: 3}"),
    with("parallel: {zero: 3, shard: 4}"),
    with("parallel: {zero: 3, tensor: 2, sequence: true}"),
    with("parallel: {zero: 3, context: 2, context_rule: ring}"),
    with("parallel: {zero: 3, context: 2, context_rule: all-gather, tensor_rule: torchtitan}"),
    with("parallel: {zero: 3, tensor: 2, sequence: true, tensor_rule: torchtitan}"),
    with("parallel: {zero: 1, context: 2, context_rule: all-to-all}"),
    with("parallel: {zero: 1, context: 2, context_rule: all-gather}"),
    with("fp8: delayed, parallel: {zero: 1}"),
    with("fp8: tensorwise, parallel: {zero: 1}"),
    with("fp8: blockwise, parallel: {zero: 1}"),
    on_blackwell("fp8: mxfp8, parallel: {zero: 1}"),
    on_blackwell("fp8: nvfp4, parallel: {zero: 1}"),
    with("fp8: delayed, fp8_weights: true, parallel: {zero: 1, gather: before-use, quantized_weights: fp8}"),
    with("recompute: {blocks: 1}, parallel: {zero: 1, pipeline: 2}"),
    with("recompute: {first: 2}, parallel: {zero: 1}"),
    with("recompute: {modules: [core_attn, mlp]}, parallel: {zero: 1}"),
    of_mixture("token_dispatcher: alltoall, parallel: {zero: 1, expert: 8}"),
    limited("{file: qwen3-30b-a3b, expert_capacity: 1.25}"),
    limited("{file: qwen3-30b-a3b, expert_capacity: 1.25, expert_padding: true}"),
    of_mixture("token_dispatcher: deepep, parallel: {zero: 1, pipeline: 4, expert: 8}"),
    of_mixture("token_dispatcher: hybridep, parallel: {zero: 1, pipeline: 4, expert: 8}"),
    with("pipeline_fills: 2, parallel: {zero: 3, pipeline: 2, layers: 'Et*6|t*6L'}"),
    of_mixture("token_dispatcher: deepep, expert_choice: round-robin, parallel: {zero: 3, expert: 8}"),
};

WrittenConfig written_as(const std::string& format, const PlanToWrite& what) {
  return format == "megatron" ? write_plan(find_by_name(plan_formats(), format, "format", {}), what)
                              : write_config(find_by_name(config_formats(), format, "format", {}), what);
}

// Where two plans differ: "stage 2: tensor_parallel"; "" where nowhere.
std::string difference_of(const Plan& one, const Plan& other) {
  if (one.stages.size() != other.stages.size()) {
    return std::to_string(one.stages.size()) + " stages, " + std::to_string(other.stages.size()) + " read back";
  }
  for (std::size_t s = 0; s < one.stages.size(); ++s) {
    const Stage &meant = one.stages[s], &read = other.stages[s];
    const bool again = std::all_of(meant.operators.begin(), meant.operators.end(),
                                   [&](OperatorId op) { return meant.recomputes(op) == read.recomputes(op); });
    const std::string what = meant.operators != read.operators   ? "operators"
                             : meant.devices != read.devices     ? "devices"
                             : !(meant.axes() == read.axes())    ? "axes"
                             : meant.recompute != read.recompute ? "how it recomputes"
                             : !again                            ? "what it recomputes"
                                                                 : "";
    if (!what.empty()) {
      return "stage " + std::to_string(s) + ": " + what;
    }
  }
  return "";
}

void check_case(const std::string& format, const Case& one, std::map<std::string, int>& kept) {
  INFO(format << " of " << one.training << " under " << one.schedule);
  const Study study = study_with(one.training, "{strategies: [mesh]}", one.model, one.platform);
  const Plan plan = mesh_plan(study, one.schedule);
  const PlanToWrite what{
      plan, *study.model, study.platform, study.training, study.training.micro_batches.front(), one.schedule};
  const WrittenConfig config = written_as(format, what);
  if (const Infeasible* why = std::get_if<Infeasible>(&config)) {
    CHECK(!why->reason.empty());
    return;
  }
  const std::string& text = std::get<std::string>(config);
  const std::vector<std::string> lost = lost_in(text, format, what);
  INFO(text << "lost: " << join(lost, "; "));
  const ConfigFormat& row = find_by_name(config_formats(), format, "format", {});
  const auto devices = static_cast<int>(devices_of(plan).size());
  const ImportedTraining read = read_config({text, "again" + std::string(row.ending)}, format, {*study.model, devices});
  const Study again = study_with(yaml::flow_text(read.training), "{strategies: [mesh]}", one.model, one.platform);
  CHECK(again.training.global_batch == study.training.global_batch);
  CHECK(again.training.micro_batches == study.training.micro_batches);
  if (lost.empty()) {
    CHECK(again.training.fp8->name == study.training.fp8->name);
    CHECK(again.training.sharding.sharing(devices) == study.training.sharding.sharing(devices));
    CHECK(difference_of(plan, mesh_plan(again, read.schedule.empty() ? one.schedule : read.schedule)) == "");
    ++kept[format];
  }
}

// Of Transformer Engine's recipes: what Megatron-LM and all that stands on it has. Two are of Blackwell alone.
TEST_CASE("every recipe of 8 and 4 bits is written as it is read, by all that stands on Megatron-LM", "[config][fp8]") {
  for (const Fp8Row& recipe : kFp8Recipes) {
    if (!recipe.products || !recipe.gathers) {
      continue; // none, or torchao's
    }
    const bool held = recipe.name == "delayed" || recipe.name == "tensorwise"; // in 8 bits, as NeMo's recipes have them
    Case one =
        on_blackwell("fp8: " + std::string(recipe.name) +
                     (held ? ", fp8_weights: true, parallel: {zero: 1, gather: before-use, quantized_weights: fp8}"
                           : ", parallel: {zero: 1, gather: before-use}"));
    one.training.replace(one.training.find("gradient_bucket: none"), 21, "gradient_bucket: 80 MB");
    for (const std::string format : {"megatron", "megatron-bridge", "nemo", "mlperf"}) {
      std::map<std::string, int> kept;
      check_case(format, one, kept);
      INFO(format << " " << one.training);
      CHECK(kept[format] == 1);
    }
  }
}

TEST_CASE("what is written is the same plan when it is read, or it is named, in every format",
          "[config][conformance]") {
  std::map<std::string, int> kept;
  for (const ConfigFormat& format : config_formats()) {
    for (const Case& one : kCases) {
      check_case(std::string(format.name), one, kept);
    }
  }
  for (const ConfigFormat& format : config_formats()) {
    INFO(format.name);
    CHECK(kept[std::string(format.name)] >= 3); // else it can say next to nothing
  }
}

} // namespace
} // namespace stagecraft::test
