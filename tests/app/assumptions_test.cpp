// What a comparison without a study assumes.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/assumptions.hpp"
#include "sim/app/run/given_study.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

std::map<std::string, std::string> assumed(const std::string& model, const std::string& platform,
                                           const std::vector<Setting>& given = {}) {
  const Study study = study_of_model({.model = model, .platform = platform, .reading = {}}, {}).study;
  std::map<std::string, std::string> values;
  for (const Setting& setting : assumptions_for(*study.model, study.platform, given)) {
    values[setting.key] = setting.value;
  }
  return values;
}

TEST_CASE("a batch is assumed for the number of devices, and the precision that all of them have", "[app]") {
  auto values = assumed("vgg16", "pcie-v100");        // four V100, which have no bf16
  CHECK(values.at("training.global_batch") == "128"); // 32 images each
  CHECK(values.at("training.precision") == "fp16");
  CHECK(values.at("training.optimizer") == "adam");
  CHECK(values.count("training.recompute") == 0);
  CHECK(values.count("training.parallel") == 0);
  values = assumed("gpt2", "2 x dgx-h100"); // sixteen H100: four sequences each
  CHECK(values.at("training.global_batch") == "64");
  CHECK(values.at("training.precision") == "bf16");
}

// Parameters and gradients take 4 B each way, Adam's states 12 B, shared by the replicas. A device has 80 GiB, of which
// 60 % are 51.5e9 B.
TEST_CASE("on many devices a replica gets as few as hold it, first within a node, then as a pipeline", "[app]") {
  // 70.55e9 / 4 * (4 + 12 / 32) = 77.2e9 B do not fit, 70.55e9 / 8 * (4 + 12 / 16) = 41.9e9 B do.
  auto values = assumed("llama3-70b", "16 x dgx-h100");
  CHECK(values.at("training.parallel") == "{tensor: 8, pipeline: 1, zero: 1}");
  CHECK(values.at("training.global_batch") == std::to_string(16 * 16)); // sixteen sequences for each of 16 replicas
  // 405.9e9 / 32 * (4 + 12 / 16) = 60.2e9 B do not fit, 405.9e9 / 64 * (4 + 12 / 8) = 34.9e9 B do.
  values = assumed("llama3-405b", "64 x dgx-h100");
  CHECK(values.at("training.parallel") == "{tensor: 8, pipeline: 8, zero: 1}");
  CHECK(values.at("training.global_batch") == std::to_string(8 * 32));
  CHECK(values.at("compare.strategies") == "[mesh, uniform, optimal, dapple]");
  // A trillion parameters make a pipeline of 32 stages, for which dapple takes minutes.
  values = assumed("gpt3-1t", "64 x dgx-h100");
  CHECK(values.at("training.parallel") == "{tensor: 8, pipeline: 32, zero: 1}");
  CHECK(values.at("compare.strategies") == "[mesh, uniform, optimal]");
  // 8.03e9 * (4 + 12 / 128) = 32.9e9 B fit on one device.
  CHECK(assumed("llama3-8b", "16 x dgx-h100").at("training.parallel") == "{tensor: 1, pipeline: 1, zero: 1}");
}

// Two V100 have 15.6e9 B of the 124.4e6 * 16 B of GPT-2, and keep all of a sample; Llama 3 8B's 128.5e9 B leave no room
// on four devices of 16 GiB, whatever they keep.
TEST_CASE("blocks are recomputed where a pipeline could not keep what backward needs", "[app]") {
  CHECK(assumed("gpt2", "pcie-v100").count("training.recompute") == 0);
  const auto values = assumed("llama3-8b", "pcie-v100");
  CHECK(values.at("training.recompute") == "blocks");
  CHECK(values.at("compare.strategies").find("optimal") == std::string::npos); // it takes long with recompute
}

TEST_CASE("what the user says is not assumed, nor anything below it or beside a configuration", "[app]") {
  const auto keys_without = [](const std::vector<Setting>& given) { return assumed("gpt2", "pcie-v100", given); };
  CHECK(keys_without({{"training.global_batch", "8"}}).count("training.global_batch") == 0);
  CHECK(keys_without({{"training", "{precision: fp32}"}}).empty());
  const auto by_degrees = keys_without({{"training.parallel.tensor", "2"}});
  CHECK(by_degrees.count("training.parallel") == 0);
  CHECK(by_degrees.at("compare.strategies") == "[mesh, uniform, optimal, dapple]"); // others do not split by degrees
  CHECK(keys_without({{"training.framework", "megatron-2024"}}).empty());
  CHECK(keys_without({{"training.micro_batches", "[24, 16]"}}).at("training.global_batch") == "96"); // 2 * 48 >= 64
}

} // namespace
} // namespace stagecraft
