// What a comparison without a study assumes.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/assumptions.hpp"
#include "sim/app/run/given_study.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

std::map<std::string, std::string> assumed(const std::string& model, const std::string& platform,
                                           const std::vector<Setting>& given = {}, const TryDegrees& attempt = {},
                                           AssumedDegrees degrees = AssumedDegrees::where_needed) {
  const Study study = study_of_model({.model = model, .platform = platform, .reading = {}}, {}).study;
  std::map<std::string, std::string> values;
  for (const Setting& setting : assumptions_for(*study.model, study.platform, given, attempt, degrees).settings) {
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

TEST_CASE("a transformer on NVIDIA's devices of today is trained as a recipe of today says", "[app]") {
  CHECK(assumed("llama3-8b", "dgx-h100").at("training.framework") == "megatron-lm-2025");
  CHECK(assumed("llama3-8b", "tpu-v5p-4x4x4").at("training.framework") == "maxtext");
  CHECK(assumed("llama3-8b", "hetero-host").count("training.framework") == 0); // of three vendors
  CHECK(assumed("gpt2", "pcie-v100").count("training.framework") == 0);        // no bf16
  CHECK(assumed("llama3-8b", "mi300x-8").count("training.framework") == 0);    // not measured by it
  CHECK(assumed("vgg16", "dgx-h100").count("training.framework") == 0);        // no transformer
}

// Parameters and gradients take 4 B each way, Adam's states 12 B, shared by the replicas. A device has 80 GiB, of which
// 60 % are 51.5e9 B.
TEST_CASE("on many devices a replica gets as few as hold it, first within a node, then as a pipeline", "[app]") {
  // 70.55e9 / 4 * (4 + 12 / 32) = 77.2e9 B do not fit, 70.55e9 / 8 * (4 + 12 / 16) = 41.9e9 B do.
  auto values = assumed("llama3-70b", "16 x dgx-h100");
  CHECK(values.at("training.parallel") == "{tensor: 8, pipeline: 1, zero: 1}");
  CHECK(values.at("training.global_batch") == std::to_string(16 * 16)); // sixteen sequences for each of 16 replicas
  CHECK(values.at("compare.strategies") == "[mesh, uniform, optimal, dapple]"); // 80^2 * 16 = 102,400
  // 405.9e9 / 32 * (4 + 12 / 16) = 60.2e9 B do not fit, 405.9e9 / 64 * (4 + 12 / 8) = 34.9e9 B do.
  values = assumed("llama3-405b", "64 x dgx-h100");
  CHECK(values.at("training.parallel") == "{tensor: 8, pipeline: 8, zero: 1}");
  CHECK(values.at("training.global_batch") == std::to_string(8 * 32));
  CHECK(values.at("compare.strategies") == "[mesh, uniform, optimal]"); // 126^2 * 64 > 400,000: dapple takes minutes
  // A trillion parameters make a pipeline of 32 stages, for which dapple takes minutes.
  values = assumed("gpt3-1t", "64 x dgx-h100");
  CHECK(values.at("training.parallel") == "{tensor: 8, pipeline: 32, zero: 1}");
  CHECK(values.at("training.global_batch") == std::to_string(2 * 4 * 32)); // four for each stage
  CHECK(values.at("compare.strategies") == "[mesh, uniform, optimal]");
  // 8.03e9 * (4 + 12 / 128) = 32.9e9 B fit on one device.
  CHECK(assumed("llama3-8b", "16 x dgx-h100").at("training.parallel") == "{tensor: 1, pipeline: 1, zero: 1}");
}

TEST_CASE("degrees are assumed on few devices where platforms of many sizes compare", "[app]") {
  CHECK(assumed("gpt2", "dgx-h100").count("training.parallel") == 0); // holds the model eight times
  const auto values = assumed("gpt2", "dgx-h100", {}, {}, AssumedDegrees::anywhere);
  CHECK(values.at("training.parallel") == "{tensor: 1, pipeline: 1, zero: 1}");
  CHECK(values.at("compare.strategies") == "[mesh, uniform, optimal, dapple]");
  // Unlike devices have none.
  CHECK(assumed("gpt2", "mixed-v100-p100", {}, {}, AssumedDegrees::anywhere).count("training.parallel") == 0);
}

TEST_CASE("no degrees are assumed beside strategies of which none keeps them", "[app]") {
  const auto degrees = [](const std::string& strategies) {
    return assumed("llama3-8b", "4 x dgx-h100", {{"compare.strategies", strategies}}).count("training.parallel");
  };
  CHECK(degrees("data-parallel") == 0);
  CHECK(degrees("[single, data-parallel]") == 0);
  CHECK(degrees("[data-parallel, mesh]") == 1);
  CHECK(degrees("uniform") == 1);
  CHECK(degrees("all") == 1);
  CHECK(degrees("[]") == 0);
}

// What assumptions_for() tries, in its order.
std::vector<std::string> tried(const std::string& model, const std::string& platform,
                               const std::vector<Setting>& given = {}) {
  std::vector<std::string> degrees;
  assumed(model, platform, given, [&](const std::vector<Setting>& settings) -> std::optional<Seconds> {
    degrees.push_back(settings.back().value);
    return Seconds{1};
  });
  return degrees;
}

TEST_CASE("the fastest of a handful of degrees is assumed, and none that does not fit", "[app]") {
  const auto values = assumed("llama3-8b", "4 x dgx-h100", {}, [](const std::vector<Setting>& settings) {
    CHECK(settings.back().key == "training.parallel");
    const std::string& degrees = settings.back().value;
    return degrees == "{tensor: 1, pipeline: 1, zero: 3}"   ? std::optional(Seconds{3})
           : degrees == "{tensor: 1, pipeline: 2, zero: 1}" ? std::nullopt // does not fit
                                                            : std::optional(Seconds{4});
  });
  CHECK(values.at("training.parallel") == "{tensor: 1, pipeline: 1, zero: 3}");
  CHECK(
      in_words(std::vector<TriedDegrees>{{"{zero: 1}", Seconds{4}}, {"{tensor: 8}", {}}, {"{zero: 3}", Seconds{3}}}) ==
      "Of these degrees the fastest are assumed, each tried as mesh under 1f1b without contention: {zero: 3} 3.000 s; "
      "{zero: 1} 4.000 s; {tensor: 8} cannot run. --set training.parallel='{zero: 1}' asks for others.");
}

// 8.03e9 * (4 + 12 / 32) = 35.1e9 B fit on one device; a product of 1 does, so 2 is the most that is tried.
TEST_CASE("degrees are tried that hold the model and divide devices, layers and batch", "[app]") {
  CHECK(tried("llama3-8b", "4 x dgx-h100") ==
        std::vector<std::string>{"{tensor: 1, pipeline: 1, zero: 1}", "{tensor: 1, pipeline: 1, zero: 3}",
                                 "{tensor: 2, pipeline: 1, zero: 1}", "{tensor: 1, pipeline: 2, zero: 1}"});
  // A batch of 24 is shared by eight replicas at most.
  CHECK(tried("llama3-8b", "4 x dgx-h100", {{"training.global_batch", "24"}}) ==
        std::vector<std::string>{"{tensor: 4, pipeline: 1, zero: 1}", "{tensor: 2, pipeline: 2, zero: 1}",
                                 "{tensor: 1, pipeline: 4, zero: 1}", "{tensor: 8, pipeline: 1, zero: 1}",
                                 "{tensor: 4, pipeline: 2, zero: 1}", "{tensor: 2, pipeline: 4, zero: 1}",
                                 "{tensor: 1, pipeline: 8, zero: 1}"});
  CHECK(tried("llama3-8b", "4 x dgx-h100", {{"training.parallel", "{tensor: 2}"}}).empty());
}

// Of Mixtral 8x7B's 46.7e9 parameters 45.1e9 are experts'. (1.6 + 45.1 / 8) * 4 + 46.7 * 12 / 32 = 46.4e9 B fit on a
// device that has an eighth of the experts, which no device has without tensor ranks.
TEST_CASE("of a mixture, degrees that share experts in a node are tried, too", "[app]") {
  const std::vector<std::string> degrees = tried("mixtral-8x7b", "4 x dgx-h100");
  const auto has = [&](const std::string& one) {
    return std::find(degrees.begin(), degrees.end(), one) != degrees.end();
  };
  CHECK(has("{tensor: 1, pipeline: 1, zero: 1, expert: 8}"));
  CHECK_FALSE(has("{tensor: 1, pipeline: 1, zero: 1}"));
  CHECK(has("{tensor: 8, pipeline: 1, zero: 1}"));
}

// 8.03e9 * 16 B = 128.5e9 B do not fit on one H100, so that replicas must share them; 124.4e6 * 16 B of GPT-2 do.
TEST_CASE("few devices have degrees where one alone does not hold what Adam keeps", "[app]") {
  CHECK(assumed("llama3-8b", "dgx-h100").at("training.parallel") == "{tensor: 1, pipeline: 1, zero: 1}");
  CHECK(assumed("gpt2", "dgx-h100").count("training.parallel") == 0);
  CHECK(assumed("llama3-8b", "pcie-v100").count("training.parallel") == 0);     // four V100 do not hold them together
  CHECK(assumed("gpt2-xl", "mixed-v100-p100").count("training.parallel") == 0); // these differ in speed
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
  CHECK(keys_without({{"training.config", "train.toml"}}).empty());
  // A recipe says neither batch nor precision nor degrees: without these it would be of one sample in single precision.
  const auto by_recipe = assumed("llama3-8b", "dgx-h100", {{"training.framework", "torchtitan"}});
  CHECK(by_recipe.at("training.global_batch") == "64");
  CHECK(by_recipe.at("training.precision") == "bf16");
  CHECK(by_recipe.count("training.framework") == 0);
  CHECK(keys_without({{"training.micro_batches", "[24, 16]"}}).at("training.global_batch") == "96"); // 2 * 48 >= 64
}

} // namespace
} // namespace stagecraft
