// Names, files and settings become models, platforms and studies.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cmath>

#include "sim/analysis/buy.hpp"
#include "sim/analysis/judge.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

TEST_CASE("a study has a default for all but model and platform", "[study]") {
  const Study read = study(chain_study(""));
  CHECK(read.model->name == "chain");
  CHECK(read.training.global_batch == 1);
  CHECK(read.training.micro_batches == std::vector<int>{1});
  CHECK(read.strategies.size() == strategies().size() - 2); // but best-known, and mesh where no degrees are given
  CHECK(read.schedules.size() == schedules().size());
  CHECK(read.engine->name == "simgrid");
  CHECK(read.seed == 1);
}

TEST_CASE("lists keep their order; `all` is every row; one name stands for a list of one", "[study]") {
  const Study some = study(chain_study("compare: {strategies: [uniform, single], schedules: gpipe}\n"));
  REQUIRE(some.strategies.size() == 2);
  CHECK(some.strategies[0]->name == "uniform");
  CHECK(some.strategies[1]->name == "single");
  REQUIRE(some.schedules.size() == 1);
  CHECK(some.schedules[0].name() == "gpipe");
  const Study all = study(chain_study("compare: {strategies: all, schedules: [all]}\n"));
  CHECK(all.strategies.size() == strategies().size() - 2);
  CHECK(all.schedules.size() == schedules().size());
}

TEST_CASE("a list of every row in another order keeps that order", "[study]") {
  std::vector<std::string> names = names_of(schedules());
  std::reverse(names.begin(), names.end());
  const Study read = study(chain_study("compare: {schedules: [" + join(names) + "]}\n"));
  REQUIRE(read.schedules.size() == names.size());
  CHECK(read.schedules.front().name() == names.front());
}

TEST_CASE("a platform given as a number of devices has private links, no latency and unlimited memory by default",
          "[study]") {
  const Study read = study(chain_study(""));
  REQUIRE(read.platform.devices.size() == 2);
  CHECK(std::isinf(read.platform.types[0].memory.value));
  Router router(read.platform);
  CHECK(router.cost(0, 1).time(Bytes{1e12}).value == 0);

  const Study slow = study(chain_study("", "{devices: 3, bandwidth: 2 MB/s, latency: 10 us, memory: 1 GiB}"));
  REQUIRE(slow.platform.devices.size() == 3);
  CHECK(slow.platform.types[0].memory.value == 1024.0 * 1024 * 1024);
  Router slow_router(slow.platform);
  CHECK(slow_router.cost(2, 1).time(Bytes{4e6}).value == near(2 + 10e-6));
}

// 47 GB/s of an H100's NIC, 22.5 of an A100's.
TEST_CASE("nodes of several kinds are one cluster, and each keeps its NICs", "[study]") {
  const Study mixed = study(chain_study("", "2 x dgx-h100 + dgx-a100"));
  CHECK(mixed.platform.devices.size() == 24);
  REQUIRE(mixed.platform.types.size() == 2);
  CHECK(mixed.platform.nodes[0].name == "dgx-h100-0");
  CHECK(mixed.platform.nodes[2].name == "dgx-a100-0");
  CHECK(mixed.platform.description.find("assumed: each keeps its NICs (dgx-h100 47 GB/s, dgx-a100 22.5 GB/s)") !=
        std::string::npos);
  Router router(mixed.platform);
  CHECK(router.cost(0, 8).time(Bytes{47e9}).value == Approx(1).epsilon(1e-3));    // between the H100 nodes
  CHECK(router.cost(0, 16).time(Bytes{22.5e9}).value == Approx(1).epsilon(1e-3)); // to the A100
  CHECK_THAT(error_of([] { study(chain_study("", "2 x dgx-h100 + dgx-h100-cluster")); }),
             Catch::Contains("is not one node"));
  CHECK_THAT(error_of([] { study(chain_study("", "dgx-a100-384 + 2 x dgx-h100")); }), Catch::Contains("no such file"));
}

TEST_CASE("a platform's name may be written in letters of another case", "[study]") {
  CHECK(study(chain_study("", "DGX-H100")).platform.devices.size() == 8);
  CHECK(study(chain_study("", "2 x DGX-H100")).platform.devices.size() == 16);
}

TEST_CASE("a study gives prices in place of the catalogue's", "[study]") {
  const auto price = [](const Study& of, std::size_t type) { return of.platform.types[type].price.rate.value * 3600; };
  for (const char* text : {"2.49 USD/h", "$2.49/h", "2.49 $/h"}) {
    const Study one = study(chain_study("price: " + std::string(text) + "\n", "dgx-h100"));
    CHECK(price(one, 0) == Approx(2.49));
    CHECK(in_words(one.platform.types[0].price) == "2.49 USD/h (as given)");
  }
  const Study two = study(chain_study("price: {A100-sxm-80gb: 1 USD/h}\n", "1 x dgx-h100 + 1 x dgx-a100"));
  CHECK(price(two, 1) == Approx(1));
  CHECK(price(two, 0) > 1);
  CHECK_THAT(error_of([] { study(chain_study("price: 1 USD/h\n", "1 x dgx-h100 + 1 x dgx-a100")); }),
             Catch::Contains("one price for 2 device types; allowed: a price of each"));
  CHECK_THAT(error_of([] { study(chain_study("price: {h200: 1 USD/h}\n", "dgx-h100")); }),
             Catch::Contains("unknown device type"));
}

TEST_CASE("settings reach the study, a model's file and a platform's file", "[study]") {
  const Study read = study(chain_study("", "pcie-v100"), {{"training.global_batch", "8"},
                                                          {"model.layers.1.forward_time", "3 s"},
                                                          {"platform.nodes.0.devices.0.count", "4"},
                                                          {"seed", "7"}});
  CHECK(read.training.global_batch == 8);
  CHECK(read.model->profiles.front().times[1].forward.value == 3);
  CHECK(read.platform.devices.size() == 4);
  CHECK(read.seed == 7);
  CHECK_THAT(error_of([] {
               study(chain_study("", "pcie-v100"), {{"platform.nodse", "1"}});
             }),
             Catch::StartsWith("--set platform.nodse: unknown key 'nodse'; did you mean 'nodes'?"));
}

TEST_CASE("a profile of a minibatch of unknown size is one iteration, cut into any number of micro-batches",
          "[study]") {
  const Study read = study("model: two.txt\nplatform: {devices: 2}\ntraining: {micro_batches: [3, 4]}\n");
  CHECK(read.training.global_batch == 1);
  CHECK(read.training.micro_batches == std::vector<int>{3, 4});
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  CHECK(memo.costs.problem(4).seconds(0, 0) == near(3e-3 / 4));
  CHECK(memo.costs.single_device_seconds().value == near(5e-3));
}

TEST_CASE("samples of a profile scale what is counted for the whole minibatch", "[study]") {
  const Study read = study("model: {file: two.txt, samples: 4}\nplatform: {devices: 2}\n"
                           "training: {global_batch: 8, micro_batches: [2]}\n");
  CHECK(read.model->operators[0].output_elements == near(400.0 / 4 / 4)); // 400 B of fp32, four samples
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  CHECK(memo.costs.problem(2).output_bytes(0).value == near(400)); // four samples again
  CHECK(memo.costs.problem(2).seconds(0, 0) == near(3e-3));
}

TEST_CASE("a device of a type that the model's file measured takes its own times, any other scaled ones", "[study]") {
  const fs::path folder = fs::temp_directory_path() / ("stagecraft-types-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const auto write = [&](const std::string& first) {
    write_file(folder / "model.yaml", "name: m\nprofile: [{device: " + first +
                                          ", samples: 1}, {device: p100-sxm2-16gb, samples: 1}]\nlayers:\n"
                                          "  - {name: a, kind: elementwise, forward: 0, output: 1, forward_time: {" +
                                          first + ": 1 s, p100-sxm2-16gb: 7 s}, backward_time: {" + first +
                                          ": 2 s, p100-sxm2-16gb: 9 s}}\n");
  };
  const auto read = [&](const std::string& platform, const std::string& model = "model.yaml") {
    return load_study(yaml::parse("model: " + model + "\nplatform: " + platform + "\n", "study.yaml"), {folder, kRoot},
                      {});
  };
  const auto forward = [](const Study& study, const std::string& type) {
    const DeviceType& row = find_by_name(study.platform.types, type, "type", {});
    return study.cost->time(0, row, 1, Precision::fp32)->forward.value;
  };
  write("v100-sxm2-16gb");
  const Study both = read("mixed-v100-p100");
  CHECK(forward(both, "v100-sxm2-16gb") == 1);
  CHECK(forward(both, "p100-sxm2-16gb") == 7);
  const Study other = read("pcie-v100"); // scaled from the first: elementwise kernels by memory bandwidth
  const DeviceType& pcie = other.platform.types.front();
  CHECK(forward(other, pcie.name) ==
        near(find_by_name(both.platform.types, "v100-sxm2-16gb", "type", {}).memory_bandwidth / pcie.memory_bandwidth));
  write("of-no-catalogue");
  CHECK_THAT(error_of([&] { read("mixed-v100-p100"); }), Catch::Contains("of-no-catalogue")); // v100 needs it
  CHECK_THAT(error_of([&] { read("mixed-v100-p100", "{file: model.yaml, device: t4-16gb}"); }),
             Catch::StartsWith("study.yaml:1:35: the file has times of several device types"));
  fs::remove_all(folder);
}

TEST_CASE("every shipped study and the test's own load", "[study]") {
  for (const auto& entry : fs::directory_iterator(kRoot / "reports")) {
    if (const fs::path file = entry.path() / "study.yaml"; fs::exists(file)) {
      INFO(file);
      const yaml::Node document = yaml::load(file);
      if (document.find("judge") != nullptr) {
        CHECK_NOTHROW(load_judge_study(document, {file.parent_path(), kRoot}, {}));
      } else if (document.find("buy") != nullptr) {
        std::vector<Setting> settings;
        const BuyQuestion question = load_buy_question(document, settings);
        for (const Offer& offer : question.offers) {
          INFO(offer.name);
          const Folders folders{file.parent_path(), kRoot};
          REQUIRE(offer.platform);
          const Platform platform = read_platform(*offer.platform, folders, {});
          CHECK_NOTHROW(load_study(question.rest, folders, settings_for(offer, platform, {})));
        }
      } else {
        CHECK_NOTHROW(load_study(document, {file.parent_path(), kRoot}, {}));
      }
      REQUIRE(document.find("name") != nullptr);
      CHECK(document.find("name")->text == entry.path().filename());
      CHECK(document.find("description") != nullptr);
      CHECK(document.find("training")->find("global_batch") != nullptr);
    }
  }
  CHECK(load_study(yaml::load(kRoot / "tests/study/small.yaml"), kFolders, {}).name == "small");
}

TEST_CASE("a file is looked for in the study's folder, then among the shipped ones", "[study]") {
  const Where where{"here", 0, 0};
  CHECK(find_file(kFolders, "workloads", "chain.yaml", where) == kRoot / "tests/study/chain.yaml");
  CHECK(find_file(kFolders, "workloads", "vgg16", where) == kRoot / "workloads/vgg16.yaml");
  CHECK(find_file(kFolders, "workloads", "workloads/vgg16.yaml", where) == kRoot / "workloads/vgg16.yaml");
  CHECK_THAT(error_of([&] { find_file(kFolders, "workloads", "alexnte", where); }),
             Catch::StartsWith("here: no such file, and unknown workload 'alexnte'; did you mean 'alexnet'?"));
}

Study on(const std::string& platform) { return study("model: gpt2\nplatform: " + platform + "\n"); }

TEST_CASE("N x NAME is a platform of so many nodes", "[study][platform]") {
  const Platform one = on("dgx-h100").platform;
  const Platform three = on("3 x dgx-h100").platform;
  CHECK(one.devices.size() == 8);
  REQUIRE(three.devices.size() == 24);
  CHECK(three.nodes.size() == 3);
  CHECK(three.name == "3 x dgx-h100");
  for (const char* short_form : {"3xdgx-h100", "3x dgx-h100", "3 X dgx-h100"}) {
    const Platform again = on(short_form).platform;
    CHECK(again.name == three.name);
    CHECK(again.devices == three.devices);
    CHECK(again.links == three.links);
  }
  // The shipped cluster is four of the same node on the same network.
  const Platform four = on("4 x dgx-h100").platform;
  const Platform cluster = on("dgx-h100-cluster").platform;
  REQUIRE(four.links.size() == cluster.links.size());
  Router of_four(four);
  Router of_cluster(cluster);
  for (const DeviceId other : {1, 8, 31}) {
    CHECK(of_four.cost(0, other).latency.value == of_cluster.cost(0, other).latency.value);
    CHECK(of_four.cost(0, other).seconds_per_byte == of_cluster.cost(0, other).seconds_per_byte);
  }
}

TEST_CASE("the network between such nodes can be another one", "[study][platform]") {
  const auto between = [](const std::string& platform, const std::vector<Setting>& settings = {}) {
    const Study read = study("model: gpt2\nplatform: " + platform + "\n", settings);
    return 1 / Router(read.platform).cost(0, 8).seconds_per_byte;
  };
  CHECK(between("2 x dgx-h100") == near(47e9));
  CHECK(between("{nodes: 2 x dgx-h100, network: {bandwidth: 20 GB/s}}") == near(20e9));
  CHECK(between("2 x dgx-h100", {{"platform.network.bandwidth", "10 GB/s"}}) == near(10e9));
}

TEST_CASE("clusters in few words are refused where they are no cluster", "[study][platform][bad-input]") {
  const auto error = [](const std::string& platform) { return error_of([&] { on(platform); }); };
  CHECK_THAT(error("0 x dgx-h100"), Catch::StartsWith("study.yaml:2:11: ") && Catch::Contains("[1, 100000]"));
  CHECK_THAT(error("2 x dgx-h10"), Catch::Contains("did you mean 'dgx-h100'"));
  CHECK_THAT(error("2 x dgx-h100-cluster"), Catch::Contains("'dgx-h100-cluster' is not one node"));
  CHECK_THAT(error("2 x nvlink-v100"), Catch::Contains("'nvlink-v100' says no 'network' to join its nodes by"));
  CHECK_THAT(error("{nodes: two, network: {}}"),
             Catch::StartsWith("study.yaml:2:19: 'nodes' must be a number of nodes"));
  CHECK_THAT(error("{nodes: 2 x dgx-h100, network: {bandwidht: 1 GB/s}}"), Catch::Contains("did you mean 'bandwidth'"));
  CHECK_THAT(error("20000 x dgx-h100"), Catch::Contains("more than 100000"));
}

} // namespace
} // namespace stagecraft::test
