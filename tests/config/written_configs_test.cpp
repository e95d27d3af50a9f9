// Plans written as configurations of frameworks: what each carries, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "tests/config/written.hpp"

namespace stagecraft::test {
namespace {

TEST_CASE("what is written for a framework says the same degrees", "[config]") {
  struct Case {
    std::string format, ending, config, schedule;
  };
  const std::vector<Case> cases = {{"torchtitan", ".toml", "torchtitan.toml", "interleaved"},
                                   {"torchtitan", ".toml", "torchtitan-today.yaml", "1f1b"},
                                   {"deepspeed", ".json", "deepspeed.json", "1f1b"},
                                   {"nemo", ".csv", "mlperf.sh", "interleaved"}};
  for (const Case& one : cases) {
    INFO(one.format << " of " << one.config);
    const std::string text = text_of(written(one.format, "{config: " + one.config + "}", one.schedule));
    INFO(text);
    const ImportedTraining again = read_text(text, "again" + one.ending);
    const ImportedTraining first = read_text(read_file(kConfigs / one.config), one.config);
    for (const char* key : {"global_batch", "parallel.tensor", "parallel.zero", "parallel.layers",
                            "parallel.interleave", "parallel.shard", "precision", "clip_gradients"}) {
      INFO(key);
      CHECK(value(again, key) == value(first, key));
    }
  }
}

// Stages 0 and 3 of two ranks are on the first, 1 and 2 on the second.
TEST_CASE("a pipeline that goes there and back over its ranks is written for TorchTitan, which has two such schedules",
          "[config]") {
  const std::string training = "{global_batch: 32, micro_batch_size: 1, optimizer: adam, precision: bf16, "
                               "parallel: {pipeline: 2, zero: 3}}";
  for (const auto& [ours, theirs] :
       {std::pair<std::string, std::string>{"zb-v", "ZBVZeroBubble"}, {"dualpipe-v", "DualPipeV"}}) {
    INFO(ours);
    const std::string text = text_of(written("torchtitan", training, ours));
    CHECK_THAT(text, Catch::Contains("pipeline_parallel_schedule = \"" + theirs + "\""));
    CHECK(read_text(text, "again.toml").schedule == ours);
    CHECK_THAT(text_of(written("nemo", training, ours)), Catch::Contains("nemo gives out ranks in order"));
  }
  CHECK_THAT(text_of(written("torchtitan", training, "hanayo")),
             Catch::Contains("torchtitan gives out ranks in order"));
}

// What a plan's file, read as a plan, does not say: how it is trained.
std::string written_megatron(const std::string& training, const std::string& schedule, std::vector<std::string>& lost) {
  const Study study = study_with(training);
  const Plan plan = mesh_plan(study, schedule);
  const PlanToWrite what{plan,    *study.model, study.platform, study.training, study.training.micro_batches.front(),
                         schedule};
  const WrittenPlan text = write_plan(find_by_name(plan_formats(), "megatron", "format", {}), what);
  const Infeasible* why = std::get_if<Infeasible>(&text);
  INFO((why != nullptr ? why->reason : ""));
  REQUIRE(why == nullptr);
  lost = lost_in(std::get<std::string>(text), "megatron", what);
  return std::get<std::string>(text);
}

TEST_CASE("what is written for Megatron-LM is the same training when it is read", "[config]") {
  std::vector<std::string> lost;
  for (const std::string config : {"megatron.sh", "megatron-bridge.yaml", "mlperf.sh"}) {
    INFO(config);
    const Study study = study_with("{config: " + config + "}");
    const std::string text =
        written_megatron("{config: " + config + "}", std::string(study.schedules.front().name()), lost);
    INFO(text);
    CHECK(lost == std::vector<std::string>{});
    const std::string schedule(study.schedules.front().name());
    const std::string bridge = text_of(written("megatron-bridge", "{config: " + config + "}", schedule));
    INFO(bridge);
    const ImportedTraining of_bridge = read_text(bridge, "again.yaml");
    const ImportedTraining again = read_text(text, "again.sh");
    const ImportedTraining first = read_text(read_file(kConfigs / config), config);
    CHECK(again.schedule == first.schedule);
    CHECK(of_bridge.schedule == first.schedule);
    CHECK(of_bridge.unheeded == std::vector<std::string>{});
    for (const char* key : {"global_batch", "precision", "gradient_precision", "gradient_bucket", "clip_gradients",
                            "optimizer", "recompute", "fp8", "pipelined_exchange", "parallel.tensor", "parallel.zero",
                            "parallel.gather", "parallel.sequence", "parallel.data"}) {
      INFO(key);
      CHECK((value(again, key) == value(first, key) || value(first, key).empty()));
      CHECK(value(of_bridge, key) == value(again, key)); // the same arguments in its sections
    }
  }
  const std::string base = "{global_batch: 64, micro_batches: 4, precision: bf16, optimizer: adam, ";
  for (const std::string more : {"recompute: {blocks: 1}", "recompute: {first: 2}", "recompute: full",
                                 "recompute: {modules: [core_attn, mlp]}", "recompute: {kinds: [attention]}",
                                 "fp8: delayed", "parallel: {zero: 3}", "parallel: {zero: 1, gather: before-use}",
                                 "gradient_precision: fp32", "optimizer: sgd", "gradient_bucket: 80 MB"}) {
    INFO(more);
    std::string training = base + "gradient_bucket: none, ";
    if (more.starts_with("optimizer") || more.starts_with("gradient_bucket")) {
      training = "{global_batch: 64, micro_batches: 4, precision: bf16, ";
    }
    const std::string text = written_megatron(
        training + more + (more.starts_with("parallel") ? "}" : ", parallel: {pipeline: 2}}"), "1f1b", lost);
    INFO(text);
    CHECK(lost == (more == "recompute: full" ? std::vector<std::string>{"recompute full (read back: blocks 6)"}
                                             : std::vector<std::string>{}));
  }
  const std::string offloaded =
      written_megatron(base + "offload: {optimizer: 1, gradients: true}, parallel: {zero: 1}}", "1f1b", lost);
  CHECK_THAT(offloaded, Catch::Contains("# Megatron-LM has no argument for training.offload.gradients\n"));
  CHECK(std::find(lost.begin(), lost.end(), "offload optimizer 1, gradients (read back: optimizer 1)") != lost.end());
  const std::string half =
      written_megatron(base + "gradient_bucket: none, offload: {optimizer: 0.5}, parallel: {zero: 1}}", "1f1b", lost);
  CHECK_THAT(half, Catch::Contains("--optimizer-cpu-offload\n--optimizer-offload-fraction 0.5\n"));
  CHECK(lost == std::vector<std::string>{});
}

// Sixty-four samples on two tensor ranks x two stages x two groups of two replicas, and so on.
TEST_CASE("what is written for MaxText is the same training when it is read", "[config][maxtext]") {
  const std::string base = "{global_batch: 64, micro_batches: 4, precision: bf16, optimizer: adam, ";
  for (const std::string more :
       {"parallel: {zero: 3, shard: 4}", "parallel: {zero: 1, tensor: 2, sequence: true}",
        "recompute: {blocks: 1}, parallel: {pipeline: 2}", "fp8: tensorwise, parallel: {tensor: 2}",
        "gradient_precision: fp32, clip_gradients: true, recompute: {kinds: [normalization, elementwise]}, "
        "parallel: {zero: 3, context: 2, context_rule: ring}"}) {
    INFO(more);
    const Study study = study_with(base + "gradient_bucket: none, " + more + "}");
    const bool pipes = more.find("pipeline") != std::string::npos;
    const std::string schedule = pipes ? "gpipe" : "1f1b";
    const Plan plan = mesh_plan(study, schedule);
    const PlanToWrite what{plan,    *study.model, study.platform, study.training, study.training.micro_batches.front(),
                           schedule};
    const WrittenConfig config = write_config(find_by_name(config_formats(), "maxtext", "format", {}), what);
    const std::string text = text_of(config);
    INFO(text);
    REQUIRE(std::holds_alternative<std::string>(config));
    CHECK(lost_in(text, "maxtext", what) == std::vector<std::string>{});
    const Training read = load_training(read_text(text, "again.yml").training);
    CHECK(read.micro_batches == study.training.micro_batches);
    CHECK(read.global_batch == study.training.global_batch);
    const int of_groups = study.training.sharding.group;
    CHECK(read.parallel->sharding.group == of_groups);
  }
  CHECK_THAT(text_of(written("maxtext", base + "parallel: {zero: 2}}", "1f1b")), Catch::Contains("'zero' 2"));
  CHECK_THAT(text_of(written("maxtext", base + "recompute: {first: 2}, parallel: {zero: 1}}", "1f1b")),
             Catch::Contains("recompute of other parts"));
}

TEST_CASE("what a configuration does not carry is named", "[config]") {
  const auto lost = [](const std::string& format, const std::string& training) {
    const Study study = study_with(training);
    const Plan plan = mesh_plan(study, "1f1b");
    const PlanToWrite what{plan,  *study.model, study.platform, study.training, study.training.micro_batches.front(),
                           "1f1b"};
    const WrittenConfig config = write_config(find_by_name(config_formats(), format, "format", {}), what);
    const std::string text = text_of(config);
    INFO(text);
    REQUIRE(std::holds_alternative<std::string>(config));
    return lost_in(text, format, what);
  };
  const std::string base = "{global_batch: 64, micro_batches: 4, precision: bf16, clip_gradients: true, ";
  CHECK(lost("torchtitan",
             base + "optimizer: adam, gradient_precision: fp32, recompute: {kinds: [normalization, elementwise]}, "
                    "fp8: rowwise, parallel: {zero: 3}}")
            .empty());
  CHECK(lost("torchtitan", base + "optimizer: adam, recompute: {first: 6}, parallel: {zero: 3}}").empty());
  CHECK(lost("torchtitan", base + "optimizer: adam, pipelined_exchange: true, gradient_precision: fp32, "
                                  "parallel: {zero: 3, tensor: 2, sequence: true, tensor_rule: torchtitan}}")
            .empty());
  const std::string states =
      "optimizer: adam, state_precision: bf16, gradient_precision: fp32, gradient_bucket: none, ";
  CHECK(lost("megatron-bridge", base + states + "master_remainders: true, parallel: {zero: 1, gather: before-use}}")
            .empty());
  CHECK(lost("megatron-bridge", base + states + "parallel: {zero: 1, gather: before-use}}") ==
        std::vector<std::string>{"master_remainders false (read back: true)"});
  CHECK(lost("nemo", base + "optimizer: adam, recompute: {modules: [core_attn, mlp]}, gradient_precision: fp32, "
                            "gradient_bucket: none, parallel: {zero: 1}}") ==
        std::vector<std::string>{"gradient_precision fp32 (read back: bf16)",
                                 "parallel.gather after-step (read back: before-use)",
                                 "gradient_bucket none (read back: 76.29 MiB)"});
}

TEST_CASE("what is left to hosts and made smaller is written where a framework has it", "[config][offload]") {
  const std::string base = "{global_batch: 64, micro_batches: 4, precision: bf16, optimizer: adam, ";
  const std::string all = "offload: {optimizer: 1, gradients: true, parameters: true}, ";
  const auto again = [&](const std::string& format, const std::string& ending, const std::string& more) {
    const std::string text = text_of(written(format, base + more + "}", "1f1b"));
    INFO(text);
    return load_training(read_text(text, "again" + ending).training);
  };
  const auto check_same = [&](const std::string& format, const std::string& ending, const std::string& more) {
    CAPTURE(format, more);
    const Training read = again(format, ending, more), meant = study_with(base + more + "}").training;
    CHECK(read.offload == meant.offload);
    CHECK(read.fp8->name == meant.fp8->name);
    CHECK(read.parallel->sharding.quantized_weights == meant.sharding.quantized_weights);
    CHECK(read.parallel->sharding.secondary == meant.sharding.secondary);
    CHECK(read.parallel->sharding.group == meant.sharding.group);
    CHECK(std::max(1, read.parallel->pipeline) == std::max(1, meant.parallel->pipeline));
    CHECK(read.parallel->context == meant.parallel->context);
    CHECK(read.parallel->sharding.quantized_gradients == meant.sharding.quantized_gradients);
  };
  check_same("deepspeed", ".json", all + "parallel: {zero: 3}");
  check_same("deepspeed", ".json",
             "parallel: {zero: 3, quantized_weights: int8, quantized_gradients: true, hpz_partition_size: 4}");
  check_same("deepspeed", ".json", "offload: {optimizer: 0.3, gradients: true}, parallel: {zero: 3}");
  check_same("deepspeed", ".json", "parallel: {zero: 3, shard: 4}");
  check_same("deepspeed", ".json", "parallel: {pipeline: 2, zero: 1}");
  check_same("deepspeed", ".json", "parallel: {context: 2, context_rule: all-to-all, zero: 3}");
  check_same("torchtitan", ".toml", all + "parallel: {zero: 3}");
  check_same("torchtitan", ".toml", "fp8: tensorwise, parallel: {zero: 3, quantized_weights: fp8}");
  const auto refused = [&](const std::string& format, const std::string& more) {
    return text_of(written(format, base + more + "}", "1f1b"));
  };
  CHECK_THAT(refused("deepspeed", "offload: {optimizer: 1}, parallel: {zero: 3}"), Catch::Contains("as soon as"));
  CHECK_THAT(refused("deepspeed", "offload: {optimizer: 0.5, gradients: true}, parallel: {zero: 2}"),
             Catch::Contains("'zero' 3 only"));
  CHECK_THAT(refused("deepspeed", "offload: {activations: 1}, parallel: {zero: 3}"), Catch::Contains("activations"));
  CHECK_THAT(refused("deepspeed", "offload: {optimizer: 1, gradients: true}, parallel: {zero: 0}"),
             Catch::Contains("without 'zero' 1"));
  CHECK_THAT(refused("torchtitan", "offload: {optimizer: 1}, parallel: {zero: 3}"), Catch::Contains("or nothing"));
  CHECK_THAT(refused("torchtitan", "parallel: {zero: 3, hpz_partition_size: 4}"), Catch::Contains("ZeRO++"));
  CHECK_THAT(refused("torchtitan", "fp8: tensorwise, fp8_weights: true, parallel: {zero: 3}"),
             Catch::Contains("weights in 8 bits alone"));
  CHECK_THAT(refused("nemo", "parallel: {zero: 3, quantized_weights: int8}"), Catch::Contains("no column for them"));
  check_same("nemo", ".csv", "fp8: delayed, fp8_weights: true, parallel: {zero: 1, quantized_weights: fp8}");
  const Study four = study_with(base + "fp8: nvfp4, parallel: {zero: 1}}", "{strategies: [mesh]}", "gpt2", "dgx-b200");
  const Plan plan = mesh_plan(four, "1f1b");
  const PlanToWrite what{plan, *four.model, four.platform, four.training, four.training.micro_batches.front(), "1f1b"};
  CHECK_THAT(text_of(write_config(find_by_name(config_formats(), "nemo", "format", {}), what)),
             Catch::Contains(",nvfp4,8,")); // of eight devices
  CHECK_THAT(refused("nemo", "fp8: delayed, parallel: {zero: 1}"), Catch::Contains("hold and gather them in 8"));
  CHECK_THAT(refused("nemo", "fp8: rowwise, parallel: {zero: 1}"), Catch::Contains("Transformer Engine's recipes"));
  CHECK_THAT(refused("nemo", "fp8: blockwise, fp8_weights: true, parallel: {zero: 1}"),
             Catch::Contains("with delayed or current scales"));
  CHECK_THAT(refused("nemo", "offload: {optimizer: 1}, parallel: {zero: 1}"), Catch::Contains("left to hosts"));
}

TEST_CASE("what a framework cannot say is refused with the reason", "[config]") {
  const std::string base = "{global_batch: 64, micro_batches: 4, precision: bf16, optimizer: adam, parallel: ";
  CHECK_THAT(text_of(written("deepspeed", base + "{pipeline: 2, zero: 2}}", "1f1b")),
             Catch::Contains("share the optimiser's states at most"));
  CHECK_THAT(text_of(written("deepspeed", base + "{pipeline: 2, layers: 'Et*5|t*7L'}}", "1f1b")),
             Catch::Contains("unlike numbers"));
  CHECK_THAT(text_of(written("deepspeed", base + "{zero: 2, shard: 4}}", "1f1b")),
             Catch::Contains("share weights too"));
  CHECK_THAT(text_of(written("torchtitan", base + "{zero: 2}}", "1f1b")), Catch::Contains("'zero' 2 shares states"));
  CHECK_THAT(text_of(written("torchtitan", base + "{tensor: 2, zero: 3}}", "1f1b")),
             Catch::Contains("does not share tokens"));
  CHECK_THAT(text_of(written("nemo", base + "{pipeline: 2}}", "1f1b")), Catch::Contains("'zero' 0"));
  CHECK_THAT(text_of(written("nemo", base + "{zero: 1, layers: 'Et*5|t*7L'}}", "1f1b")),
             Catch::Contains("unlike numbers"));
}

} // namespace
} // namespace stagecraft::test
