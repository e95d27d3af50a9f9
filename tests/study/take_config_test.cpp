// Frameworks' own configuration files in a study, and batches counted by the samples of a replica.
// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/take_config.hpp"
#include "sim/workload/import/import.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

Study with_config(const std::string& more, const std::string& file = "deepspeed.json") {
  const std::string text = "model: gpt2\nplatform: nvlink-v100\ntraining: {config: " + file + more +
                           "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
  return load_study(yaml::parse(text, (kRoot / "tests/study/study.yaml").string()), kFolders, {});
}

ImportedTraining deepspeed(const std::string& config) {
  static const ModelGraph kModel = load_model(kRoot / "workloads/gpt2.yaml");
  return import_deepspeed({config, "ds.json"}, {kModel, 8});
}

std::string refusal(const std::string& config) {
  return error_of([&] { deepspeed(config); });
}

Study batches(const std::string& training) {
  return study("model: gpt2\nplatform: nvlink-v100\ntraining: {" + training + "}\n");
}

// Eight replicas of two samples, four times.
TEST_CASE("a DeepSpeed configuration says how a study trains", "[study][config]") {
  const Training training = with_config("").training;
  CHECK(training.global_batch == 64);
  CHECK(training.micro_batches == std::vector<int>{4});
  CHECK(training.precision == Precision::bf16);
  CHECK(training.optimizer->name == "adam");
  CHECK(training.clip_gradients);
  CHECK(training.sharding.zero == Zero::gradients);
  CHECK(training.sharding.reduce == Reduce::each_micro_batch);
  CHECK(training.gradient_bucket.value == 5e7 * 2); // elements of bf16
  CHECK(training.unheeded ==
        std::vector<std::string>{
            "zero_optimization.zero_hpz_partition_size",
            "activation_checkpointing.number_checkpoints (what runs again is said by training.recompute)"});
}

TEST_CASE("what the study says itself goes before its configuration", "[study][config]") {
  const Training training =
      with_config(", global_batch: 128, micro_batches: 2, parallel: {zero: 3, tensor: 2}, clip_gradients: false")
          .training;
  CHECK(training.global_batch == 128);
  CHECK(training.micro_batches == std::vector<int>{2});
  CHECK(training.sharding.zero == Zero::weights);
  CHECK(training.parallel->tensor == 2);
  CHECK_FALSE(training.clip_gradients);
  CHECK(training.precision == Precision::bf16);
}

// Hugging Face's Trainer fills in what is auto.
TEST_CASE("a configuration whose batch is auto takes the study's", "[study][config]") {
  const std::string file = (kRoot / "tests/study/deepspeed-auto.json").string();
  const std::string text = "model: gpt2\nplatform: nvlink-v100\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
  const auto read = [&](const std::vector<Setting>& settings) {
    return load_study(yaml::parse(text, "study.yaml"), kFolders, settings);
  };
  const Setting config{"training.config", "{file: " + file + "}"};
  const Study own = read({config, {"training.global_batch", "64"}, {"training.micro_batch_size", "2"}});
  CHECK(own.training.global_batch == 64);
  CHECK(own.training.micro_batches == std::vector<int>{4});
  CHECK(own.training.sharding.zero == Zero::gradients);
  CHECK(own.training.unheeded ==
        std::vector<std::string>{"bf16.enabled auto (here it is off unless the study's 'precision' says otherwise)"});
  CHECK_THAT(error_of([&] { read({config}); }),
             Catch::Contains("deepspeed-auto.json:2:23: auto is for the program that starts DeepSpeed to fill in"));
}

// ZeRO-Offload, ZeRO-Infinity and ZeRO++ are those of stage 3; with stage 1 and 2 only the optimiser's part is.
TEST_CASE("what DeepSpeed leaves to hosts and makes smaller is taken over", "[study][config]") {
  const auto read = [](const std::string& zero) {
    return deepspeed("{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true}, \"zero_optimization\": {" + zero + "}}");
  };
  const std::string all =
      R"("offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu"})";
  const std::string plus =
      R"(, "zero_quantized_weights": true, "zero_quantized_gradients": true, "zero_hpz_partition_size": 4)";
  const ImportedTraining third = read("\"stage\": 3, " + all + plus);
  const Training training = load_training(third.training);
  CHECK(training.offload == Offload{.optimizer = 1, .gradients = true, .parameters = true});
  const ShardingRule& rule = training.parallel->sharding;
  CHECK(rule.quantized_weights == QuantizedWeights::int8);
  CHECK(rule.quantized_gradients);
  CHECK(rule.secondary == 4);
  CHECK(third.unheeded.empty());
  const ImportedTraining first = read("\"stage\": 1, " + all + plus);
  CHECK(load_training(first.training).offload == Offload{.optimizer = 1, .gradients = true});
  CHECK(first.unheeded == std::vector<std::string>{"zero_optimization.offload_param",
                                                   "zero_optimization.zero_quantized_weights",
                                                   "zero_optimization.zero_quantized_gradients",
                                                   "zero_optimization.zero_hpz_partition_size"});
  const ImportedTraining part = read(R"("stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.25})");
  CHECK(load_training(part.training).offload == Offload{.optimizer = 0.25, .gradients = true});
  // Disks are not modelled; a group of one keeps no second copy.
  const ImportedTraining disk =
      read(R"("stage": 3, "offload_optimizer": {"device": "nvme"}, "zero_hpz_partition_size": 1)");
  CHECK_FALSE(load_training(disk.training).offload.on());
  CHECK(load_training(disk.training).parallel->sharding.secondary == 0);
  CHECK(disk.unheeded == std::vector<std::string>{"zero_optimization.offload_optimizer"});
  CHECK_THAT(refusal(R"({"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu",
                         "ratio": 2}}})"),
             Catch::Contains("'ratio' must be") && Catch::Contains("0 to 1"));
}

TEST_CASE("DeepSpeed's own defaults hold where its file is silent", "[study][config]") {
  const auto value = [](const std::string& config, const std::string& key) {
    const ImportedTraining read = deepspeed(config);
    const yaml::Node* node = &read.training;
    for (std::size_t begin = 0; node != nullptr && begin <= key.size();) {
      const std::size_t end = std::min(key.find('.', begin), key.size());
      node = node->find(key.substr(begin, end - begin));
      begin = end + 1;
    }
    return node != nullptr ? node->text : "";
  };
  CHECK(value("{\"train_batch_size\": 8}", "micro_batches") == "1");
  CHECK(value("{\"train_batch_size\": 8, \"gradient_accumulation_steps\": \"auto\"}", "micro_batches") == "1");
  CHECK(value("{\"train_batch_size\": 8}", "precision") == "fp32");
  CHECK(value("{\"train_batch_size\": 8, \"fp16\": {\"enabled\": true}}", "precision") == "fp16");
  CHECK(value("{\"train_batch_size\": 8}", "parallel.zero") == "0");
  // overlap_comm is off but for stage 3.
  CHECK(value("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 1}}", "gradient_bucket") == "none");
  CHECK(value("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3}}", "gradient_bucket") == "2000000000 B");
  CHECK(value("{\"train_batch_size\": 8, \"tensor_parallel\": {\"autotp_size\": 4}}", "parallel.tensor") == "4");
  // MiCS: groups of so many share, each for itself; without it, or with less than 2, nothing is said of groups.
  for (const auto& [size, shard] : {std::pair("8", "8"), std::pair("-1", ""), std::pair("1", "")}) {
    const std::string mics = "\"mics_shard_size\": " + std::string(size);
    CHECK(value("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3, " + mics + "}}", "parallel.shard") ==
          shard);
    CHECK(value("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 2, " + mics + "}}", "parallel.shard")
              .empty());
  }
  // Two samples of four replicas of two devices each, three times.
  CHECK(value("{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 3, \"tensor_parallel\": "
              "{\"autotp_size\": 2}}",
              "global_batch") == "24");
  CHECK(value("{\"train_batch_size\": 8, \"optimizer\": {\"type\": \"SGD\", \"params\": {\"momentum\": 0.9}}}",
              "optimizer") == "momentum");
}

TEST_CASE("a DeepSpeed configuration that cannot be is refused where it stands", "[study][config]") {
  CHECK(refusal("{}") == "ds.json:1:1: 'train_batch_size' is missing: the samples of an iteration on all devices");
  CHECK(refusal("{\"train_batch_size\": 0}").starts_with("ds.json:1:22: "));
  CHECK_THAT(refusal("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 4}}"), Catch::Contains("[0, 3]"));
  CHECK_THAT(refusal("{\"train_batch_size\": 8, \"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}"),
             Catch::Contains("both fp16 and bf16 are enabled"));
  CHECK_THAT(refusal("{\"train_batch_size\": 8, \"zero_optimization\": 3}"), Catch::Contains("zero_optimization"));
  CHECK_THAT(refusal("[1]"), Catch::Contains("DeepSpeed configuration"));
  CHECK_THAT(error_of([] { with_config("", "../deepspeed.json"); }), Catch::Contains("is no file beside this one"));
  CHECK_THAT(error_of([] { with_config("", "absent.json"); }), Catch::Contains("absent.json"));
}

// Three of eight devices are no degree: what is wrong is the degree, whatever the samples would come to.
TEST_CASE("samples of replicas are not counted where degrees do not divide the devices", "[study][config]") {
  for (const std::string more : {"", ", micro_batches: 4"}) {
    const Study study = batches("global_batch: 48, micro_batch_size: 5" + more + ", parallel: {data: 3}");
    CHECK(study.training.micro_batches == std::vector<int>{more.empty() ? 1 : 4});
  }
}

// Eight replicas of three samples are 24.
TEST_CASE("micro-batches can be counted by the samples of a replica", "[study][config]") {
  CHECK(batches("global_batch: 48, micro_batch_size: 3, parallel: {data: 8}").training.micro_batches ==
        std::vector<int>{2});
  CHECK(batches("global_batch: 48, micro_batch_size: 3, parallel: {tensor: 2}").training.micro_batches ==
        std::vector<int>{4});
  CHECK_THAT(
      error_of([] { batches("global_batch: 40, micro_batch_size: 3, parallel: {data: 8}"); }),
      Catch::Contains("global_batch 40 is no multiple of micro_batch_size 3 x 8 replicas = 24; nearest that are: "
                      "24 or 48"));
  CHECK_THAT(error_of([] { batches("global_batch: 48, micro_batch_size: 3"); }),
             Catch::Contains("allowed: 'micro_batches', or 'parallel' beside it"));
  CHECK_THAT(error_of([] { batches("global_batch: 48, micro_batch_size: 3, micro_batches: 4, parallel: {data: 8}"); }),
             Catch::Contains("is 2 times micro_batch_size 3 x 8 replicas, and 'micro_batches' is 4"));
  CHECK_THAT(
      error_of([] { batches("global_batch: 48, micro_batch_size: 3, micro_batches: [2, 4], parallel: {data: 8}"); }),
      Catch::Contains("'micro_batches' lists several"));
}

} // namespace
} // namespace stagecraft::test
