// What all commands share: help, exit statuses, errors, list, show and import.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/utf8.hpp"
#include "sim/result/metrics_table.hpp"
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::vector<std::string> kCommands = {"compare", "adapt", "plan", "replay", "execute", "schedule",
                                            "check",   "show",  "list", "import", "export"};

TEST_CASE("every command explains itself", "[cli]") {
  const Workshop shop;
  const std::string all = shop.succeed("--help").out;
  for (const std::string& command : kCommands) {
    CHECK_THAT(all, Contains("\n  " + command + " "));
    const Outcome help = shop.succeed(command + " --help");
    CHECK_THAT(help.out, Contains("Usage: stagecraft " + command));
    CHECK_THAT(help.out, Contains("--format"));
    CHECK(help.err.empty());
  }
  CHECK_THAT(shop.succeed("--version").out, StartsWith("stagecraft "));
}

// docs/decisions/0017-short-runs.md
TEST_CASE("what takes long to load is loaded only where it is needed", "[cli]") {
  const std::string program = read_file(STAGECRAFT_PROGRAM);
  CHECK_THAT(program, Contains("libyaml-cpp.so")); // so names of libraries are found in this way
  CHECK_THAT(program, !Contains("libsimgrid.so") && !Contains("libonnx") && !Contains("libprotobuf"));
}

TEST_CASE("a program without the cache of YAML beside it reads the same", "[cli]") {
  const Workshop shop;
  fs::copy_file(STAGECRAFT_PROGRAM, shop.folder() / "alone");
  CHECK(shop.shell("./alone show mixed-v100-p100 >shown;") == 0);
  CHECK(shop.read("shown") == shop.succeed("show mixed-v100-p100").out);
}

TEST_CASE("bad usage ends with status 2 and says so on stderr", "[cli]") {
  const Workshop shop;
  const std::string arguments =
      GENERATE(as<std::string>(), "", "fly", "list strategies --format yaml", "schedule 1f1b",
               "schedule 1f1b --stages 0 --micro-batches 2", "compare a b", "plan vgg16 --strategy single",
               "plan vgg16 --platform pcie-v100 --devices 2 --strategy single", "plan vgg16 --platform pcie-v100",
               "replay vgg16 --platform pcie-v100 --schedule 1f1b", "plan vgg16 --devices 2 --strategy single",
               "plan vgg16 --platform pcie-v100 --strategy single --set batch",
               "plan vgg16 --platform pcie-v100 --strategy single --seed 01", "show pcie-v100 --format json");
  const Outcome outcome = shop.run(arguments);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_FALSE(outcome.err.empty());
  CHECK(shop.files() == 0);
}

TEST_CASE("a name that is not known leads to the nearest that is", "[cli]") {
  const Workshop shop;
  const auto [arguments, hint] = GENERATE(table<std::string, std::string>({
      {"list strateges", "'strategies'"},
      {"show alexnte", "'alexnet'"},
      {"show a100-sxm-80bg", "'a100-sxm-80gb'"},
      {"show pcie-v10", "'pcie-v100'"},
      {"import onxx model", "'onnx'"},
      {"schedule 1f1d --stages 2 --micro-batches 2", "'1f1b'"},
      {"plan alexnte --platform pcie-v100 --strategy single", "'alexnet'"},
      {"plan vgg16 --platform pcie-v10 --strategy single", "'pcie-v100'"},
      {"plan vgg16 --platform pcie-v100 --strategy singel", "'single'"},
      {"replay vgg16 --platform pcie-v100 --strategy single --schedule gpip", "'gpipe'"},
      {"plan vgg16 --platform pcie-v100 --strategy single --engine simgird", "'simgrid'"},
      {"plan vgg16 --platform pcie-v100 --strategy single --cost-model rofline", "'roofline'"},
      {"plan vgg16 --platform pcie-v100 --strategy single --set training.global_bach=2", "'global_batch'"},
      {"plan vgg16 --platform pcie-v100 --strategy single --set platform.netwrok=2", "'network'"},
  }));
  const Outcome outcome = shop.run(arguments);
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, StartsWith("error: "));
  CHECK_THAT(outcome.err, Contains("did you mean " + hint));
}

TEST_CASE("list names every kind, as a table and as JSON", "[cli]") {
  const Workshop shop;
  const auto [kind, name] = GENERATE(table<std::string, std::string>({{"strategies", "capability"},
                                                                      {"schedules", "1f1b"},
                                                                      {"devices", "a100-sxm-80gb"},
                                                                      {"platforms", "mixed-v100-p100"},
                                                                      {"workloads", "vgg16"},
                                                                      {"cost-models", "roofline"},
                                                                      {"engines", "simgrid"},
                                                                      {"formats", "onnx"},
                                                                      {"metrics", "iteration_seconds"}}));
  CHECK_THAT(shop.succeed("list " + kind).out, Contains("\n" + name + " "));
  const Json json = shop.succeed("list " + kind + " --format json").json();
  bool found = false;
  for (const Json& entry : json) {
    CHECK(entry.at("help").is_string());
    found = found || entry.at("name") == name;
  }
  CHECK(found);
}

TEST_CASE("list metrics has every row of their table with its unit, and no other", "[cli]") {
  const Workshop shop;
  const Json json = shop.succeed("list metrics --format json").json();
  REQUIRE(json.size() == kMetrics.size());
  for (std::size_t i = 0; i < kMetrics.size(); ++i) {
    INFO(kMetrics.at(i).name);
    CHECK(json[i].at("name") == kMetrics.at(i).name);
    CHECK_THAT(json[i].at("help").get<std::string>(), StartsWith(std::string(kMetrics.at(i).help)));
    CHECK_THAT(json[i].at("help").get<std::string>(), Catch::EndsWith(std::string(kMetrics.at(i).unit)));
  }
}

TEST_CASE("show sums up every kind of input, by name and by file", "[cli]") {
  const Workshop shop;
  CHECK_THAT(shop.succeed("show vgg16").out, Contains("138.36 M parameters"));
  for (const char* name : {"VGG16", "A100-SXM-80GB", "DGX-H100"}) { // names match whatever their case
    CHECK(shop.succeed("show " + std::string(name)).out == shop.succeed("show " + lower_case(name)).out);
  }
  CHECK_THAT(shop.succeed("show mixed-v100-p100").out, Contains("47.90 GB/s, 8.000 us"));
  CHECK_THAT(shop.succeed("show a100-sxm-80gb").out, Contains("80.00 GiB"));
  CHECK_THAT(shop.succeed("show " + kChain).out, Contains("forward 4.000 s, backward 8.000 s"));
  CHECK_THAT(shop.succeed("show " + (kRoot / "platforms/pcie-v100.yaml").string()).out, Contains("16.00 GiB"));
  CHECK_THAT(shop.succeed("show " + (kRoot / "platforms/devices/t4-16gb.yaml").string()).out, Contains("t4-16gb"));
  for (const char* name : {"study.yaml", "study.yml"}) {
    CHECK_THAT(shop.succeed("show " + shop.write(name, small_study())).out,
               Contains("12 runs: 2 strategies x 3 schedules x 2 numbers of micro-batches"));
  }
}

TEST_CASE("show of a model on a platform says who compares it there", "[cli]") {
  const Workshop shop;
  CHECK_THAT(shop.run("show gpt2 --platform '2 x dgx-h100'").err,
             Contains("allowed: stagecraft compare gpt2 --platform '2 x dgx-h100'"));
}

TEST_CASE("show of a platform says what its nodes are and how they are joined, and what it leaves out", "[cli]") {
  const Workshop shop;
  // 32 devices in four nodes that are alike; each device has its NIC: 8 x 47 GB/s a node.
  const std::string cluster = shop.succeed("show dgx-h100-cluster").out;
  CHECK_THAT(cluster,
             Catch::Matches("[^]*\ndgx-0 … dgx-3 +4 +8 h100-sxm-80gb\n +8 x device–nvswitch +370.0 GB/s +5.000 us "
                            "+2.960 TB/s\n[^]* 8 x device–fabric +47.00 GB/s +10.00 us +376.0 GB/s\n[^]*"));
  CHECK_THAT(cluster, Contains("between the first 8 of 32 devices:"));
  CHECK_THAT(shop.succeed("show pcie-v100").out, Contains("of a lone transfer:")); // of all four devices
  CHECK_THAT(shop.succeed("show leaf-spine-a100").out, Catch::Matches("[^]*\nbetween nodes\n +4 x spine–leaf [^]*"));
  const auto torus = [&](const char* shape, const char* ends) {
    const std::string shaped =
        std::string("nodes: [{name: n, host: {cores: 1, core_speed: 1 GFLOP/s, memory: 1 GB, memory_bandwidth: 1 GB/s, "
                    "disk_bandwidth: 1 GB/s, power: {idle: 1 W, core_busy: 1 W, core_spin: 1 W}}, devices: [{type: "
                    "tpu-v6e, count: 12}], links: [{kind: torus, ") +
        "devices: all, shape: [3, 4], wraparound: " + ends + ", bandwidth: 1 GB/s, latency: 1 us}]}]\nname: slice\n";
    return shop.succeed("show " + shop.write(shape, shaped)).out;
  };
  CHECK_THAT(torus("a.yaml", "true"), Contains(" torus of 3 x 4, the ends of all axes joined\n"));
  CHECK_THAT(torus("b.yaml", "[false, true]"), Contains(" torus of 3 x 4, the ends of axis 2 joined\n"));
  CHECK_THAT(torus("c.yaml", "false"), Contains(" torus of 3 x 4, no ends joined\n"));
}

// Two nodes of eight devices with a NIC each; tensor 4 x data 2 x pipeline 2, so that a node is a pipeline rank.
TEST_CASE("show of a plan says where each rank is", "[cli]") {
  const Workshop shop;
  const std::string on = " gpt2 --platform '2 x dgx-h100' ";
  const std::string degrees = "--set 'training={global_batch: 4, micro_batches: 2, parallel: {tensor: 4, data: 2}}' ";
  shop.succeed("plan" + on + "--strategy mesh " + degrees + "-o plan.yaml");
  const Json ranks = shop.succeed("show plan.yaml" + on + "--format json").json().at("ranks");
  REQUIRE(ranks.size() == 16);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) { // tensor first, then data, then pipeline
    CHECK(ranks[rank].at("rank") == rank);
    CHECK(ranks[rank].at("tensor") == rank % 4);
    CHECK(ranks[rank].at("data") == rank / 4 % 2);
    CHECK(ranks[rank].at("pipeline") == rank / 8);
    CHECK(ranks[rank].at("node") == "dgx-" + std::to_string(rank / 8));
    CHECK(ranks[rank].at("stages") == Json({rank / 8}));
    CHECK_THAT(ranks[rank].at("nic").get<std::string>(),
               StartsWith(ranks[rank].at("device").get<std::string>() + ">")); // a NIC of its own
  }
  CHECK_THAT(shop.succeed("show plan.yaml" + on).out, Contains("into the network by"));
  const Outcome other = shop.run("show plan.yaml gpt2 --platform dgx-h100");
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Contains("plan.yaml"));
}

TEST_CASE("import and show give the sums of a model as JSON", "[cli]") {
  const Workshop shop;
  const Json json = shop.succeed("import yaml " + kChain + " --format json").json();
  Json shown = shop.succeed("show " + kChain + " --format json").json();
  shown.erase("fits"); // below
  CHECK(json == shown);
  CHECK(json.at("schema") == "stagecraft/1");
  CHECK(json.at("name") == "chain");
  CHECK(json.at("operators") == 4);
  CHECK(json.at("parameters") == 4000);
  CHECK(json.at("forward_flops") == 0);
  CHECK(json.at("backward_flops") == 0);
  CHECK(json.at("activation_bytes") == 16'000'000);
}

TEST_CASE("show --all names the operators and blocks of a model, as plan files need them", "[cli]") {
  const Workshop shop;
  const Json shown = shop.succeed("show gpt2 --all --format json").json();
  const Json& names = shown.at("operator_names");
  REQUIRE(names.size() == shown.at("operators"));
  const Json& blocks = shown.at("block_operators");
  std::size_t in_blocks = 0;
  for (const auto& [block, operators] : blocks.items()) {
    in_blocks += operators.size();
  }
  CHECK(in_blocks == names.size());
  const Json plan = shop.succeed("plan gpt2 --platform pcie-v100 --strategy uniform --format json").json();
  for (const Json& name : plan.at("stages")[0].at("operators")) {
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  CHECK_FALSE(shop.succeed("show gpt2 --format json").json().contains("operator_names"));
}

// 4000 parameters with a weight and a gradient of 4 B and two states of Adam are 64 000 B; each operator but the first
// keeps its input of 4 MB.
TEST_CASE("show says on which shipped devices a model fits, and on how many at least", "[cli]") {
  const Workshop shop;
  const Json chain = shop.succeed("show " + kChain + " --format json").json().at("fits");
  CHECK(chain.at("precision") == "fp32"); // as it was measured
  CHECK(chain.at("training_bytes") == 64'000 + 3 * 4'000'000);
  for (const Json& device : chain.at("devices")) {
    CHECK(device.at("fits") == true);
    CHECK(device.at("devices_at_least") == 1);
  }
  // Weights, gradients, master weights and two states of Llama 3 8B take 16 B of each of 8.03 G parameters, 119.66 GiB;
  // with what blocks keep of 8192 tokens it is still less than the 160 GiB of two devices.
  const Json llama = shop.succeed("show llama3-8b --format json").json();
  const Json& fits = llama.at("fits");
  CHECK(fits.at("precision") == "bf16");
  const double states = 16 * llama.at("parameters").get<double>();
  CHECK(states / (1U << 30U) == Approx(119.66).epsilon(1e-4));
  CHECK(fits.at("recomputed_bytes").get<double>() > states);
  CHECK(fits.at("training_bytes").get<double>() > fits.at("recomputed_bytes").get<double>());
  std::size_t seen = 0;
  for (const Json& device : fits.at("devices")) {
    const std::string name = device.at("device");
    const double memory = device.at("memory_bytes");
    CHECK(device.at("fits") == (fits.at("training_bytes") <= memory));
    CHECK(device.at("fits_recomputed") == (fits.at("recomputed_bytes") <= memory));
    if (name == "h100-sxm-80gb") {
      CHECK(device.at("devices_at_least") == 2);
      ++seen;
    }
  }
  CHECK(seen == 1);
  const std::string text = shop.succeed("show llama3-8b").out;
  CHECK_THAT(text,
             Contains("To train on one sample takes") && Contains("… 336 more operators; --all prints every one"));
  CHECK_THAT(shop.succeed("show llama3-8b --all").out, !Contains("more operators"));
}

TEST_CASE("list alone gives the kinds with their numbers, and models are workloads", "[cli]") {
  const Workshop shop;
  const Json kinds = shop.succeed("list --format json").json();
  for (const Json& kind : kinds) {
    const std::string name = kind.at("name");
    CHECK(kind.at("number") == shop.succeed("list " + name + " --format json").json().size());
  }
  CHECK(kinds.size() > 10);
  CHECK(shop.succeed("list models").out == shop.succeed("list workloads").out);
  CHECK(shop.succeed("list strategy").out == shop.succeed("list strategies").out);
}

TEST_CASE("show sums up a model's blocks, those that are alike in one row", "[cli]") {
  const Workshop shop;
  shop.write("blocks.yaml", "name: t\ninput: {shape: [16, 8]}\nblocks:\n  - name: part\n    layers:\n"
                            "      - {name: up, kind: linear, features: 32}\n"
                            "      - {name: down, kind: linear, features: 8}\n"
                            "layers:\n  - {name: first, kind: linear, features: 8}\n"
                            "  - {block: part, name: layer, repeat: 3}\n  - {name: loss, kind: cross_entropy}\n");
  const Json blocks = shop.succeed("show blocks.yaml --format json").json().at("blocks");
  REQUIRE(blocks.size() == 3);
  // 8 * 32 + 32 and 32 * 8 + 8 parameters; 16 positions; inputs of 8 and 32 features are kept.
  CHECK(blocks[1] == Json({{"first", "layer.0"},
                           {"last", "layer.2"},
                           {"count", 3},
                           {"operators", 2},
                           {"parameters", 552},
                           {"forward_flops", 2 * 16 * 2 * 8 * 32},
                           {"stash_elements", 16 * (8 + 32)}}));
  // 552 parameters are 2208 B in fp32, 1104 B in 16 bits; 640 elements 2560 B and 1280 B.
  CHECK_THAT(shop.succeed("show blocks.yaml").out, Contains("layer.0 … layer.2") && Contains("2.156 KiB") &&
                                                       Contains("1.078 KiB") && Contains("2.500 KiB") &&
                                                       Contains("1.250 KiB"));
  CHECK(shop.succeed("show " + kChain + " --format json").json().at("blocks").empty());
  CHECK_THAT(shop.succeed("show " + kChain).out, !Contains("Each block"));
}

TEST_CASE("a PipeDream profile is imported by name and by its suffix", "[cli]") {
  const Workshop shop;
  shop.write("p.txt",
             "node1 -- Conv2d(3, 4) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=400.0, "
             "parameter_size=40.0\nnode2 -- ReLU() -- forward_compute_time=1.0, backward_compute_time=1.0, "
             "activation_size=400.0, parameter_size=0.0\n\tnode1 -- node2\n");
  CHECK(shop.succeed("import pipedream p.txt --format json").json().at("parameters") == 10);
  CHECK(shop.succeed("plan p.txt --devices 2 --strategy uniform --format json").json().at("stages").size() == 2);
  const Outcome wrong = shop.run("import pipedream " + kChain);
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, StartsWith("error: " + kChain + ":1:1: "));
}

TEST_CASE("errors in files name file, line and column", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study() + "sed: 3\n");
  const Outcome outcome = shop.run("compare study.yaml");
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, StartsWith("error: study.yaml:6:1: unknown key 'sed'; did you mean 'seed'?"));
}

TEST_CASE("shipped data is found where STAGECRAFT_DATA says", "[cli]") {
  const Workshop shop;
  CHECK(shop.run("show vgg16", "STAGECRAFT_DATA='" + kRoot.string() + "'").status == 0);
  const Outcome elsewhere = shop.run("show vgg16", "STAGECRAFT_DATA=/nowhere");
  CHECK(elsewhere.status == 2);
}

} // namespace
} // namespace stagecraft::test
