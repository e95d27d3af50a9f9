// What is alike is simulated once, and nothing changes: runs with and without folding, and what is folded.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "sim/plan/estimate/steady_estimate.hpp"
#include "sim/plan/fold.hpp"
#include "sim/study/compare/prepare.hpp"
#include "tests/study/random_studies.hpp"

namespace stagecraft::test {
namespace {

// A transformer of four layers on nodes of which one may be slow.
std::string folded_study(const std::string& parallel, const std::string& schedule, const std::string& engine) {
  return "model: small-transformer.yaml\nplatform: straggling-nodes.yaml\nengine: " + engine +
         "\ntraining: {global_batch: 96, micro_batches: 4, precision: fp16, optimizer: adam, parallel: " + parallel +
         "}\ncompare: {strategies: [mesh], schedules: [" + schedule + "]}\n";
}

// Numbers of nodes before and behind the straggler, devices in each, and how they are joined.
std::vector<Setting> random_cluster(std::mt19937& random, int nodes, int devices) {
  const auto networks = std::array{"topology: switch, nic: device", "topology: switch, nic: node",
                                   "topology: leaf-spine, nic: device, nodes_per_leaf: 2, oversubscription: 4",
                                   "topology: rails, nic: device, nodes_per_leaf: 2, oversubscription: 4",
                                   "topology: leaf-spine, nic: node, nodes_per_leaf: 2, oversubscription: 1"};
  const auto bandwidths = std::array{"3 GB/s", "25 GB/s", "400 GB/s"};
  const auto stragglers = std::array{"a100-sxm-80gb", "v100-sxm2-32gb", "h100-sxm-80gb"};
  const int before = static_cast<int>(random() % (nodes - 2)) + 1;
  std::vector<Setting> settings = {
      {"platform.nodes.0.count", std::to_string(before)},
      {"platform.nodes.2.count", std::to_string(nodes - 1 - before)},
      {"platform.nodes.1.devices.0.type", any_of(stragglers, random)},
      {"platform.network", "{" + std::string(any_of(networks, random)) +
                               ", latency: 5 us, bandwidth: " + any_of(bandwidths, random) + "}"}};
  const std::string in_node = any_of(bandwidths, random);
  for (const int group : {0, 1, 2}) {
    const std::string key = "platform.nodes." + std::to_string(group) + ".";
    settings.push_back({key + "devices.0.count", std::to_string(devices)});
    settings.push_back({key + "links.0.bandwidth", in_node});
  }
  return settings;
}

// How many of so many replicas share, groups of which hold the same; `least` of them have different experts.
std::string random_shard(std::mt19937& random, int replicas, int least = 1) {
  const int groups = 1 << (random() % 3);
  return replicas % groups == 0 && replicas / groups >= least && groups > 1
             ? ", shard: " + std::to_string(replicas / groups)
             : "";
}

// Degrees of so many devices, with what replicas share.
std::string random_degrees(std::mt19937& random, int devices, int in_node) {
  const int tensor = 1 << (random() % (in_node >= 4 ? 3 : 2));
  const int pipeline = std::min(devices / tensor, 1 << (random() % 3));
  const int zero = static_cast<int>(random() % 4);
  const auto orders = std::array{"tensor-data-pipeline", "tensor-pipeline-data"};
  return "{tensor: " + std::to_string(tensor) + (tensor > 1 && random() % 2 == 0 ? ", sequence: true" : "") +
         ", pipeline: " + std::to_string(pipeline) +
         (zero > 0 ? ", zero: " + std::to_string(zero) + random_shard(random, devices / tensor / pipeline) : "") +
         ", order: " + any_of(orders, random) + "}";
}

Approx equal(double expected) { return Approx(expected).epsilon(1e-9).margin(0); }

void check_equal(const std::vector<Seconds>& folded, const std::vector<Seconds>& unfolded, double period) {
  REQUIRE(folded.size() == unfolded.size());
  for (std::size_t device = 0; device < folded.size(); ++device) {
    CHECK(std::abs(folded[device].value - unfolded[device].value) <= 1e-9 * period);
  }
}

void check_same_metrics(const Metrics& one, const Metrics& other) {
  const double period = other.iteration.value;
  CHECK(one.iteration.value == equal(period));
  CHECK(one.makespan.value == equal(other.makespan.value));
  check_equal(one.busy, other.busy, period);
  check_equal(one.waiting, other.waiting, period);
  check_equal(one.exposed, other.exposed, period);
  check_equal(one.tail, other.tail, period);
  CHECK(one.peak_memory == other.peak_memory);
  CHECK(one.bubble_fraction == Approx(other.bubble_fraction).margin(1e-9));
  CHECK(one.energy.total().value == equal(other.energy.total().value));
  CHECK(one.energy.links_dynamic.value == equal(other.energy.links_dynamic.value));
  CHECK(one.cost.value == equal(other.cost.value));
}

void check_same_figures(const Run& folded, const Run& unfolded) {
  REQUIRE(folded.feasible == unfolded.feasible);
  CHECK(folded.why_not == unfolded.why_not);
  CHECK(folded.devices == unfolded.devices);
  check_same_metrics(folded.metrics, unfolded.metrics);
  CHECK(folded.estimate.value == equal(unfolded.estimate.value));
  CHECK(folded.bottleneck.value == equal(unfolded.bottleneck.value));
  CHECK(folded.mfu == equal(unfolded.mfu));
  CHECK(folded.busiest_link == unfolded.busiest_link);
  CHECK(folded.busiest_link_share == equal(unfolded.busiest_link_share));
}

// The study, and what was set on top of it.
std::string told(const std::string& text, const std::vector<Setting>& settings) {
  std::string all = text;
  for (const Setting& setting : settings) {
    all += setting.key + "=" + setting.value + "\n";
  }
  return all;
}

// Whether ranks of tensor groups are simulated once: a class has more devices than replicas.
bool folds_ranks(const Run& run) {
  return std::any_of(run.classes.begin(), run.classes.end(),
                     [&](const auto& alike) { return static_cast<int>(alike.size()) > run.folded_replicas; });
}

struct BothWays {
  std::vector<Run> folded, unfolded;
};
const Run& only_run(const std::vector<Run>& runs) {
  REQUIRE(runs.size() == 1);
  REQUIRE(runs.front().why_not == "");
  return runs.front();
}

BothWays both_ways(const std::string& text, std::vector<Setting> settings) {
  BothWays runs;
  runs.folded = compare_text(text, settings).comparison.runs;
  settings.push_back({"unfold", "true"});
  runs.unfolded = compare_text(text, settings).comparison.runs;
  return runs;
}

TEST_CASE("random plans with stragglers come to the same with and without folding", "[study][fold]") {
  const auto schedules = std::array{"1f1b", "gpipe", "zb-h1", "eager-1f1b", "interleaved", "breadth-first", "zb-v"};
  const auto engines = std::array{"simgrid", "simgrid", "analytic", "simgrid-full"};
  const auto reductions = std::array{"auto", "auto", "ring", "tree"};
  const auto details = std::array{"auto", "auto", "all"};
  std::mt19937 random(7);
  int folded_runs = 0, split_runs = 0, folded_groups = 0, folded_ranks = 0;
  for (int draw = 0; draw < 130; ++draw) {
    const int nodes = 4 << (random() % 2), devices = 2 << (random() % 2);
    std::vector<Setting> settings = random_cluster(random, nodes, devices);
    const std::string degrees = random_degrees(random, nodes * devices, devices);
    const std::string text = folded_study(degrees, any_of(schedules, random), any_of(engines, random));
    settings.push_back({"training.all_reduce", any_of(reductions, random)});
    settings.push_back({"training.clip_gradients", random() % 3 == 0 ? "true" : "false"});
    settings.push_back({"training.recompute", random() % 3 == 0 ? "full" : "none"});
    settings.push_back({"training.gradient_bucket", random() % 2 == 0 ? "1 TB" : "4 MB"});
    settings.push_back({"detail", any_of(details, random)});
    INFO(told(text, settings));
    const auto [folded, unfolded] = both_ways(text, settings);
    REQUIRE(folded.size() == unfolded.size());
    for (std::size_t run = 0; run < folded.size(); ++run) {
      check_same_figures(folded[run], unfolded[run]);
      CHECK(unfolded[run].classes.empty());
      folded_runs += folded[run].folded_replicas > 1 ? 1 : 0;
      const std::size_t stages = folded[run].stages.size();
      split_runs += folded[run].folded_replicas > 1 && folded[run].classes.size() > stages ? 1 : 0;
      folded_groups += folded[run].folded_replicas > 1 && degrees.find("shard") != std::string::npos ? 1 : 0;
      folded_ranks += folds_ranks(folded[run]) ? 1 : 0;
    }
  }
  CHECK(folded_ranks >= 10);
  CHECK(folded_runs >= 40);
  CHECK(split_runs >= 10);
  CHECK(folded_groups >= 10);
}

// Degrees of so many devices of which some share tokens, experts or both.
std::string random_axes(std::mt19937& random, int devices) {
  const auto rules = std::array{"ring", "all-gather", "all-to-all"};
  const auto orders = std::array{"tensor-data-pipeline", "tensor-pipeline-data"};
  const int tensor = 1 << (random() % 2), pipeline = 1 << (random() % 2);
  const int context = std::min(devices / tensor / pipeline, 1 << (random() % 3));
  const int expert = std::min(devices / pipeline, 1 << (random() % 4));
  const int zero = static_cast<int>(random() % 4);
  std::string degrees = "{pipeline: " + std::to_string(pipeline) + ", tensor: " + std::to_string(tensor);
  degrees += context > 1 ? ", context: " + std::to_string(context) + ", context_rule: " + any_of(rules, random) : "";
  degrees += expert > 1 ? ", expert: " + std::to_string(expert) : "";
  degrees += expert > 1 && expert * tensor <= devices / pipeline && tensor > 1 && random() % 2 == 0
                 ? ", expert_tensor: " + std::to_string(tensor)
                 : "";
  const int replicas = devices / tensor / pipeline;
  return degrees +
         (zero > 0 ? ", zero: " + std::to_string(zero) + random_shard(random, replicas, std::min(expert, replicas))
                   : "") +
         ", order: " + any_of(orders, random) + "}";
}

// Ranks of a team wait for each other at its exchanges and meet the others' on links; the first experts are chosen more
// often than the last, or all are alike.
TEST_CASE("ranks that share tokens or experts come to the same with and without folding", "[study][fold][experts]") {
  const auto schedules = std::array{"1f1b",       "zb-h1", "combined-1f1b", "combined-interleaved",
                                    "dualpipe-v", "gpipe", "dualpipe",      "chimera"};
  const auto engines = std::array{"simgrid", "simgrid", "analytic", "simgrid-full"};
  const auto dispatchers = std::array{"alltoall", "deepep", "hybridep", "allgather"};
  const auto reductions = std::array{"auto", "auto", "ring", "tree"};
  const auto skews = std::array{"0", "0", "0.3"};
  std::mt19937 random(5);
  int folded_runs = 0, folded_members = 0, folded_groups = 0, folded_ranks = 0;
  for (int draw = 0; draw < 160; ++draw) {
    const int nodes = 4 << (random() % 2), devices = 2 << (random() % 2);
    std::vector<Setting> settings = random_cluster(random, nodes, devices);
    if (random() % 2 == 0) {
      settings.push_back({"platform.nodes.1.devices.0.type", "a100-sxm-80gb"});
    }
    const std::string degrees = random_axes(random, nodes * devices);
    const std::string text = folded_study(degrees, any_of(schedules, random), any_of(engines, random));
    settings.push_back({"model", "small-mixture.yaml"});
    settings.push_back({"training.global_batch", "128"});
    settings.push_back({"training.precision", "bf16"});
    const bool in_turn = draw % 4 == 1;
    const std::string skew = any_of(skews, random);
    settings.push_back({"training.expert_choice", in_turn ? "round-robin" : "drawn"});
    settings.push_back({"training.expert_skew", in_turn ? "0" : skew});
    settings.push_back({"training.token_dispatcher", any_of(dispatchers, random)});
    settings.push_back({"training.parallel.tensor_rule", draw % 3 == 0 ? "torchtitan" : "megatron"});
    settings.push_back({"training.clip_gradients", random() % 3 == 0 ? "true" : "false"});
    settings.push_back({"training.recompute", random() % 3 == 0 ? "full" : "none"});
    settings.push_back({"training.gradient_bucket", random() % 2 == 0 ? "1 TB" : "4 MB"});
    settings.push_back({"detail", random() % 3 == 0 ? "all" : "auto"});
    settings.push_back({"training.all_reduce", any_of(reductions, random)});
    if (random() % 6 == 0) {
      settings.push_back({"training.offload", "{optimizer: 1, gradients: true}"});
    }
    INFO(told(text, settings));
    const auto [folded, unfolded] = both_ways(text, settings);
    REQUIRE(folded.size() == unfolded.size());
    for (std::size_t run = 0; run < folded.size(); ++run) {
      check_same_figures(folded[run], unfolded[run]);
      const bool folds = folded[run].folded_replicas > 1;
      folded_runs += folds ? 1 : 0;
      const bool shares = degrees.find("context") != std::string::npos || degrees.find("expert") != std::string::npos;
      folded_members += folds && shares ? 1 : 0;
      folded_ranks += folds_ranks(folded[run]) && shares ? 1 : 0;
      folded_groups += folds && shares && degrees.find("shard") != std::string::npos ? 1 : 0;
    }
  }
  CHECK(folded_runs >= 30);
  CHECK(folded_members >= 20);
  CHECK(folded_ranks >= 10);
  CHECK(folded_groups >= 10);
}

// Rings of contexts of which each rank of a tensor group has one, through its own NIC or through one of the node's.
TEST_CASE("tensor ranks of contexts come to the same with and without folding", "[study][fold]") {
  for (const std::string nic : {"device", "node"}) {
    for (const std::string rule : {"ring", "all-gather"}) {
      for (const std::string schedule : {"1f1b", "interleaved"}) {
        const std::string text =
            folded_study("{tensor: 4, sequence: true, context: 2, context_rule: " + rule + ", pipeline: 2, zero: 1}",
                         schedule, "simgrid");
        const std::vector<Setting> settings = {
            {"model", "gpt2"},
            {"training.gradient_bucket", "25 MB"},
            {"platform", "8 x dgx-h100"},
            {"platform.network", "{topology: leaf-spine, nodes_per_leaf: 4, oversubscription: 1, nic: " + nic +
                                     ", latency: 1 us, bandwidth: 50 GB/s}"}};
        INFO(told(text, settings));
        const auto [folded, unfolded] = both_ways(text, settings);
        check_same_figures(only_run(folded), only_run(unfolded));
        if (nic == "device") { // else the links that ranks cross are not alike one by one
          CHECK(folds_ranks(folded.front()));
          CHECK(4 * folded.front().metrics.tasks < unfolded.front().metrics.tasks);
        }
      }
    }
  }
}

// Below leaves with narrow uplinks equal replicas meet on their way to the next stage. Where that costs next to nothing
// they fold; where it costs more, each is simulated, since they may drift apart.
TEST_CASE("replicas that meet at uplinks fold where drifting apart gains nothing", "[study][fold][drift]") {
  const auto networks = std::array{"topology: leaf-spine, nodes_per_leaf: 2", "topology: rails, nodes_per_leaf: 3"};
  for (const std::string network : networks) {
    for (const std::string zero : {"0", "1"}) {
      for (const bool is_fast : {true, false}) {
        const std::string text = folded_study("{tensor: 2, pipeline: 4, zero: " + zero + "}", "1f1b", "simgrid");
        const std::vector<Setting> settings = {
            {"model", "gpt2-medium"},
            {"training.global_batch", "96"},
            {"platform", "12 x dgx-a100"},
            {"platform.network", "{" + network + ", oversubscription: 4, nic: device, latency: 1 us, bandwidth: " +
                                     (is_fast ? "20 TB/s}" : "1 GB/s}")}};
        INFO(told(text, settings));
        const auto [folded, unfolded] = both_ways(text, settings);
        check_same_figures(only_run(folded), only_run(unfolded));
        CHECK((folded.front().folded_replicas > 1) == is_fast);
        CHECK((unfolded.front().note.find("draws") != std::string::npos) == !is_fast);
      }
    }
  }
}

// Devices of a node copy over one uplink and share their host; replicas that lie across nodes do so alike.
TEST_CASE("what is left to hosts comes to the same with and without folding", "[study][fold][offload]") {
  const auto offloads = std::array{"{optimizer: 1}", "{optimizer: 0.5, gradients: true}",
                                   "{optimizer: 1, gradients: true, activations: all}"};
  const auto engines = std::array{"simgrid", "analytic", "simgrid-full"};
  std::mt19937 random(3);
  int folded_runs = 0;
  for (int draw = 0; draw < 12; ++draw) {
    const int nodes = 4, devices = 2 << (random() % 2);
    std::vector<Setting> settings = random_cluster(random, nodes, devices);
    const std::string text =
        folded_study(random_degrees(random, nodes * devices, devices), "1f1b", any_of(engines, random));
    settings.push_back({"training.offload", any_of(offloads, random)});
    INFO(told(text, settings));
    const auto [folded, unfolded] = both_ways(text, settings);
    REQUIRE(folded.size() == 1);
    check_same_figures(folded.front(), unfolded.front());
    folded_runs += folded.front().feasible && folded.front().folded_replicas > 1 ? 1 : 0;
  }
  CHECK(folded_runs >= 4);
}

TEST_CASE("what is gathered in 8 bits comes to the same with and without folding", "[study][fold][fp8]") {
  for (const std::string more :
       {"zero: 1", "zero: 1, gather: before-use", "tensor: 2, zero: 2", "tensor: 2, zero: 3"}) {
    const std::string text = "model: small-transformer.yaml\nplatform: 2 x dgx-h100\nengine: simgrid\ntraining: "
                             "{global_batch: 64, micro_batches: 2, precision: bf16, optimizer: adam, fp8: blockwise, "
                             "fp8_weights: true, parallel: {quantized_weights: fp8, " +
                             more + "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
    CAPTURE(more);
    const auto [folded, unfolded] = both_ways(text, {});
    REQUIRE(folded.size() == 1);
    CHECK(folded.front().why_not.empty());
    CHECK(folded.front().folded_replicas > 1);
    check_same_figures(folded.front(), unfolded.front());
  }
}

// Second copies are gathered among each few replicas, gradients of 4 bits go inside nodes and then between them.
TEST_CASE("what ZeRO++ sends comes to the same with and without folding", "[study][fold][zero++]") {
  const auto kinds = std::array{", hpz_partition_size: 2", ", quantized_gradients: true",
                                ", hpz_partition_size: 2, quantized_gradients: true, quantized_weights: int8"};
  const auto engines = std::array{"simgrid", "analytic", "simgrid-full"};
  std::mt19937 random(11);
  int folded_runs = 0, folded_groups = 0;
  for (int draw = 0; draw < 40; ++draw) {
    const int nodes = 4, devices = 2 << (random() % 2);
    std::vector<Setting> settings = random_cluster(random, nodes, devices);
    if (random() % 2 == 0) {
      settings.push_back({"platform.nodes.1.devices.0.type", "a100-sxm-80gb"});
    }
    const std::string shard = random_shard(random, nodes * devices, 4);
    const std::string text =
        folded_study("{zero: 3" + shard + any_of(kinds, random) + "}", "1f1b", any_of(engines, random));
    INFO(told(text, settings));
    const auto [folded, unfolded] = both_ways(text, settings);
    REQUIRE(folded.size() == 1);
    check_same_figures(folded.front(), unfolded.front());
    const bool folds = folded.front().feasible && folded.front().folded_replicas > 1;
    folded_runs += folds ? 1 : 0;
    folded_groups += folds && !shard.empty() ? 1 : 0;
  }
  CHECK(folded_runs >= 12);
  CHECK(folded_groups >= 3);
}

const Run& only(const ComparisonResult& result) {
  REQUIRE(result.comparison.runs.size() == 1);
  REQUIRE(result.comparison.runs.front().feasible);
  return result.comparison.runs.front();
}

// Eight nodes of two devices, pipelines of two stages, each along the devices of one node: eight replicas.
TEST_CASE("a straggler splits its replica off, and the others stay together", "[study][fold]") {
  const std::vector<Setting> eight = {{"platform.nodes.0.count", "3"},
                                      {"platform.nodes.2.count", "4"},
                                      {"platform.nodes.0.devices.0.count", "2"},
                                      {"platform.nodes.1.devices.0.count", "2"},
                                      {"platform.nodes.2.devices.0.count", "2"},
                                      {"platform.network.nic", "device"},
                                      {"training.all_reduce", "ring"}};
  const std::string text = folded_study("{pipeline: 2, order: tensor-pipeline-data}", "1f1b", "simgrid");
  const Run alike = only(compare_text(text, eight));
  CHECK(alike.folded_replicas == 8);
  REQUIRE(alike.classes.size() == 2); // one of each stage
  CHECK(alike.classes[0].size() == 8);

  std::vector<Setting> slow = eight;
  slow.push_back({"platform.nodes.1.devices.0.type", "v100-sxm2-32gb"});
  const Run split = only(compare_text(text, slow));
  CHECK(split.folded_replicas == 7);
  REQUIRE(split.classes.size() == 4);
  std::multiset<std::size_t> sizes;
  for (const std::vector<std::int32_t>& alike_devices : split.classes) {
    sizes.insert(alike_devices.size());
    if (alike_devices.size() == 1) {
      CHECK(split.devices[static_cast<std::size_t>(alike_devices.front())].starts_with("straggler"));
    }
  }
  CHECK(sizes == std::multiset<std::size_t>{1, 1, 7, 7});
  CHECK(split.metrics.tasks == 2 * alike.metrics.tasks - 2); // but for the two all-reduces, which are one each
}

// Eight nodes of one device: eight replicas of one stage, whose eight experts four ranks share. They form two teams,
// and four pairs that have the same experts.
TEST_CASE("teams that share experts are alike, and so are their members where experts are chosen alike",
          "[study][fold][experts]") {
  const auto run_with = [](const std::string& skew) {
    return only(compare_text(folded_study("{expert: 4, zero: 1}", "1f1b", "simgrid"),
                             {{"model", "small-mixture.yaml"},
                              {"platform.nodes.0.count", "3"},
                              {"platform.nodes.2.count", "4"},
                              {"platform.nodes.0.devices.0.count", "1"},
                              {"platform.nodes.1.devices.0.count", "1"},
                              {"platform.nodes.2.devices.0.count", "1"},
                              {"training.precision", "bf16"},
                              {"training.all_reduce", "ring"},
                              {"training.expert_skew", skew}}));
  };
  const Run alike = run_with("0");
  CHECK(alike.folded_replicas == 8);
  REQUIRE(alike.classes.size() == 1);
  CHECK(alike.classes.front().size() == 8);
  // Each of the four has other experts, so it computes for another time: one class with its fellow of the other team.
  const Run unlike = run_with("0.5");
  CHECK(unlike.folded_replicas == 2);
  CHECK(unlike.classes == std::vector<std::vector<std::int32_t>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

// Four replicas of two devices: classes {0, 2} and {1, 3}.
TEST_CASE("groups with a class in common are alike", "[study][fold]") {
  const StageFold fold{.class_of = {0, 1, 0, 1}, .first = {0, 1}, .count = {2, 2}};
  CHECK(fold.simulated(5, 2) == 1); // the second device of replica 2, for which replica 0 stands
  const std::vector<std::vector<std::size_t>> teams = {{0, 2}, {4, 6}, {1, 3}, {5, 7}};
  const std::vector<FoldedGroup> folded = fold_groups(teams, &fold, 2);
  REQUIRE(folded.size() == 2);
  CHECK(folded[0].members == teams[0]);
  CHECK(folded[1].members == teams[2]);
  CHECK((folded[0].count == 2 && folded[1].count == 2));
  CHECK(simulated_places({4, 6, 0}, &fold, 2) == std::vector<std::size_t>{0, 2});
  CHECK(fold_groups(teams, nullptr, 2).size() == 4);
  CHECK(simulated_places({4, 6, 0}, nullptr, 2) == std::vector<std::size_t>{4, 6, 0});
}

// Nodes of eight devices: as many as a verdict looks at one by one, and more.
TEST_CASE("a verdict on many folded devices names the part of many that would help most", "[study][fold]") {
  const auto helps = [](const std::string& behind, const std::string& unfold) {
    const std::string text = folded_study("{pipeline: 4, order: tensor-data-pipeline}", "1f1b, gpipe", "analytic");
    const Comparison made = compare_text(text, {{"platform.nodes.0.count", "63"},
                                                {"platform.nodes.2.count", behind},
                                                {"platform.nodes.0.devices.0.count", "8"},
                                                {"platform.nodes.1.devices.0.count", "8"},
                                                {"platform.nodes.2.devices.0.count", "8"},
                                                {"training.global_batch", behind == "64" ? "1024" : "1040"},
                                                {"unfold", unfold}})
                                .comparison;
    CHECK((made.runs.front().folded_replicas > 1) == (unfold == "false"));
    const auto found = std::find_if(made.verdict.begin(), made.verdict.end(), [](const std::string& sentence) {
      return sentence.find("What would help most is a faster part 'all ") != std::string::npos;
    });
    REQUIRE(found != made.verdict.end());
    return found->substr(0, found->find("The busiest"));
  };
  for (const std::string behind : {"64", "66"}) { // 1024 devices, and 1040
    CHECK(helps(behind, "false") == helps(behind, "true"));
  }
}

// Four flows, each over an access link of its own and over one of two uplinks, two of them over each: links 0 to 3 are
// one class, 4 and 5 another.
TEST_CASE("a link that stands for others is crossed by as many flows as each of them", "[study][fold]") {
  const Fold fold{.stages = {}, .pairs = {}, .link = {0, 0, 0, 0, 4, 4}, .links = {4, 0, 0, 0, 2, 0}};
  const Leg leg{{1, 4}, Seconds{1e-6}, BytesPerSecond{1e9}};
  const Leg folded = fold.leg(leg, 4);
  CHECK(folded.links == std::vector<LinkId>{0, 4, 4}); // 4 · 1/4 and 4 · 1/2
  CHECK(folded.latency == leg.latency);
  CHECK(folded.bandwidth == leg.bandwidth);
  CHECK(fold.meetings(leg, 4) == std::vector<LinkId>{4});
  // One flow over all of them crosses each once, and meets nobody.
  const Leg coupled{{0, 1, 2, 3, 4, 5}, Seconds{0}, BytesPerSecond{1e9}};
  CHECK(fold.leg(coupled, 1).links == std::vector<LinkId>{0, 4});
  CHECK(fold.meetings(coupled, 1).empty());
  CHECK_THROWS_AS(fold.leg(leg, 3), std::logic_error); // some link would have fewer than another
}

TEST_CASE("what is not folded says so by its classes", "[study][fold]") {
  const std::string text = folded_study("{pipeline: 2, order: tensor-pipeline-data}", "1f1b", "simgrid");
  CHECK(only(compare_text(text, {{"unfold", "true"}})).folded_replicas == 1);
  // Noise of each device, and loaders.
  CHECK(only(compare_text(text, {{"perturb", "{samples: 2, jitter: 0.02}"}})).folded_replicas == 1);
  // Replicas that share a link on which they do not all fit drift apart.
  const std::vector<Setting> narrow = {
      {"platform.network", "{topology: switch, nic: node, bandwidth: 100 MB/s, latency: 5 us}"}};
  const std::string across = folded_study("{pipeline: 2, order: tensor-data-pipeline}", "1f1b", "simgrid");
  CHECK(only(compare_text(across, narrow)).folded_replicas == 1);
}

// Of many nodes pairs of places are looked at, not pairs of devices.
TEST_CASE("the slowest transfer between two stages is that of all pairs of their devices", "[study][fold]") {
  const std::string network = GENERATE("topology: switch, nic: device", "topology: switch, nic: node",
                                       "topology: leaf-spine, nic: device, nodes_per_leaf: 3, oversubscription: 4");
  const std::string order = GENERATE("tensor-data-pipeline", "tensor-pipeline-data");
  const Study twenty =
      study(folded_study("{tensor: 2, sequence: true, pipeline: 4, order: " + order + "}", "1f1b", "analytic"),
            {{"platform.nodes.0.count", "9"},
             {"platform.nodes.1.links.0.bandwidth", "1 GB/s"},
             {"platform.nodes.2.count", "10"},
             {"training.global_batch", "80"},
             {"platform.network", "{" + network + ", latency: 5 us, bandwidth: 2 GB/s}"}});
  ScheduleCounts counts;
  StudyMemo memo(twenty, counts);
  const std::vector<Prepared> made = prepare(memo, scenarios_of(twenty));
  REQUIRE(made.size() == 1);
  const Problem& problem = memo.costs.problem(4);
  const PlanCost cost = cost_plan(problem, made.front().plan);
  for (std::size_t s = 0; s + 1 < cost.stages.size(); ++s) {
    const StageCost &from = cost.stages[s], &to = cost.stages[s + 1];
    Seconds slowest;
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::size_t j = 0; j < to.size(); ++j) {
        const double part =
            std::max(part_sent(from, from.rank(i), to, to.rank(j)), part_sent(to, to.rank(j), from, from.rank(i)));
        if (part > 0 && from.device(i) != to.device(j)) {
          slowest = std::max(slowest, problem.path(from.device(i), to.device(j)).time(cost.cut[s] * part));
        }
      }
    }
    CHECK(slowest_transfer(problem, from, to, cost.cut[s]) == slowest);
  }
}

// Twenty nodes of four devices, a pipeline along each: twenty replicas, one of them slow.
TEST_CASE("beyond 64 devices results list classes, and devices where they are asked for", "[study][fold]") {
  const std::vector<Setting> eighty = {{"platform.nodes.0.count", "9"},
                                       {"platform.nodes.2.count", "10"},
                                       {"platform.nodes.1.devices.0.type", "v100-sxm2-32gb"},
                                       {"platform.network.nic", "device"},
                                       {"training.global_batch", "80"},
                                       {"training.all_reduce", "ring"}};
  const std::string text = folded_study("{pipeline: 4, order: tensor-pipeline-data}", "1f1b", "simgrid");
  const auto json_of = [&](const std::vector<Setting>& settings) {
    return nlohmann::json::parse(to_json(only(compare_text(text, settings)), {}, false));
  };
  const nlohmann::json folded = json_of(eighty);
  CHECK(folded["utilization"].is_null());
  CHECK(folded["peak_memory_bytes"].is_null());
  CHECK(folded["folded_replicas"] == 19);
  REQUIRE(folded["classes"].size() == 8);
  std::vector<Setting> listed = eighty;
  listed.push_back({"per_device", "true"});
  listed.push_back({"unfold", "true"});
  const nlohmann::json unfolded = json_of(listed);
  CHECK(unfolded["classes"].is_null());
  REQUIRE(unfolded["utilization"].size() == 80);
  std::map<std::string, std::size_t> place;
  for (std::size_t device = 0; device < 80; ++device) {
    place[unfolded["devices"][device]] = device;
  }
  std::size_t all = 0;
  for (const nlohmann::json& one : folded["classes"]) {
    all += one["count"].get<std::size_t>();
    REQUIRE(one["devices"].size() == one["count"]);
    for (const nlohmann::json& device : one["devices"]) {
      CHECK(one["utilization"].get<double>() ==
            equal(unfolded["utilization"][place.at(device.get<std::string>())].get<double>()));
    }
  }
  CHECK(all == 80);
  listed.pop_back();
  CHECK(json_of(listed)["utilization"].size() == 80);
}

} // namespace
} // namespace stagecraft::test
