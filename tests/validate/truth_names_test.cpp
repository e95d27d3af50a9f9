// What people call devices, frameworks and settings in tables of measured runs. The tables here are made up.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/named_table.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"
#include "sim/validate/truth/study/truth_study.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

// A row of a decoder of eight layers on 16 devices, eight of a node.
TruthRow row_on(const std::string& gpu) {
  TruthRow row;
  row.case_name = "a";
  row.source = "NVIDIA/Megatron-LM README";
  row.model = "GPT small";
  row.sizes = {.layers = 8, .hidden = 512, .heads = 8, .vocabulary = 1024, .sequence = 128};
  row.gpu = gpu;
  row.devices = 16;
  row.devices_per_node = 8;
  row.inter_link = "400 Gb/s per GPU";
  row.precision = "bf16";
  row.recompute = "none";
  row.micro_batch = 1;
  row.global_batch = 64;
  row.metric = "iteration_seconds";
  row.unit = "s";
  row.known = find_truth_metric(row.metric, row.unit);
  row.value = 1;
  return row;
}

std::string text_of(const TruthRow& row);

// Words of a row's flags, as flags.csv has them.
std::string flagged(std::map<std::string, std::string> flags) {
  TruthRow row = row_on("h100-80gb-sxm");
  row.degrees.context = 2;
  row.zero = "distributed optimizer";
  row.flags = std::move(flags);
  return text_of(row);
}

std::string text_of(const TruthRow& row) {
  const auto study = truth_study(row, kRoot);
  const auto* reason = std::get_if<Infeasible>(&study);
  return reason != nullptr ? "refused: " + reason->reason : std::get<TruthStudy>(study).text;
}

std::string text_on(const std::string& gpu) { return text_of(row_on(gpu)); }

std::string type_is(const std::string& name) { return "\"type\": \"" + name + "\""; }

TEST_CASE("a name without a form factor is that of the module which nodes are made of", "[validate][truth]") {
  CHECK_THAT(text_on("H100"), Contains(type_is("h100-sxm-80gb")));
  CHECK_THAT(text_on("H100-80GB"), Contains(type_is("h100-sxm-80gb")));
  CHECK_THAT(text_on("NVIDIA H100 80GB HBM3"), Contains(type_is("h100-sxm-80gb"))); // as the driver says
  CHECK_THAT(text_on("A100 80 GB"), Contains(type_is("a100-sxm-80gb")));
  CHECK_THAT(text_on("A100-40G"), Contains(type_is("a100-sxm-40gb")));
  CHECK_THAT(text_on("8xH100SXM5"), Contains(type_is("h100-sxm-80gb")));
  CHECK_THAT(text_on("DGX H100"), Contains(type_is("h100-sxm-80gb")));
  CHECK_THAT(text_on("NVIDIA H100 PCIe"), Contains(type_is("h100-pcie-80gb")));
  CHECK_THAT(text_on("AMD Instinct MI300X"), Contains(type_is("mi300x-192gb")));
  CHECK_THAT(text_on("A800-80GB"), Contains(type_is("a800-sxm-80gb")) && Contains("\"bandwidth\": \"162 GB/s\""));
  for (const char* name : {"RTX2080Ti", "GeForce RTX 2080 Ti", "rtx-2080-ti"}) {
    CAPTURE(name);
    CHECK_THAT(text_on(name), Contains(type_is("rtx-2080-ti-11gb")));
  }
  for (const auto& [theirs, ours] : {std::pair{"TPU v5 lite", "tpu-v5e"}, // as JAX says
                                     {"v5litepod-16", "tpu-v5e"},
                                     {"TPU v6 lite", "tpu-v6e"},
                                     {"Trillium", "tpu-v6e"},
                                     {"v6e-256 TPU", "tpu-v6e"},
                                     {"TPU7x", "tpu-v7x"},
                                     {"Google Ironwood", "tpu-v7x"},
                                     {"TPU v5p", "tpu-v5p"}}) {
    CAPTURE(theirs);
    CHECK_THAT(text_on(theirs), Contains(type_is(ours)));
  }
  CHECK_THAT(text_on("A10"), Contains(type_is("a10-24gb"))); // and no A100
  CHECK_THAT(text_on("NVIDIA A30"), Contains(type_is("a30-24gb")));
  TruthRow alone = row_on("V100");
  alone.devices = alone.devices_per_node = 1;
  CHECK_THAT(text_of(alone), Contains(type_is("v100-pcie-16gb"))); // a card, as far as one device says
}

TEST_CASE("a device that is not known is no other that shares a word with it", "[validate][truth]") {
  for (const auto& [name, nearest] : {std::pair{"RTX 4070", "rtx-4090-24gb"},
                                      {"RTX 4080", "rtx-3080-10gb, rtx-4090-24gb"},
                                      {"RTX 4060 Ti", "rtx-2080-ti-11gb"},
                                      {"RTX 3080 Ti", "rtx-2080-ti-11gb"},
                                      {"TITAN RTX", "rtx-2080-ti-11gb"},
                                      {"RTX A4000", "rtx-a5000-24gb, rtx-a6000-48gb"},
                                      {"RTX", "rtx-3080-10gb"},
                                      {"RTX PRO 6000", "rtx-6000-ada"},
                                      {"Quadro P6000", "quadro-rtx-6000-24gb"},
                                      {"TPU v8", "tpu-v3, tpu-v4"},
                                      {"H100 NVL", "h100-pcie-80gb"},
                                      {"H100 SXM 64GB", "h100-pcie-80gb, h100-sxm-80gb"},
                                      {"MI250X GCD", "mi250-gcd-64gb"},
                                      {"A100 H100", "a100-pcie-40gb"},
                                      {"MI300A", "mi300x-192gb"}}) {
    CAPTURE(name);
    CHECK_THAT(text_on(name),
               Catch::StartsWith("refused: the GPU '" + std::string(name) + "' is not known; nearest: " + nearest));
  }
  CHECK_THAT(text_on("quantum"), Catch::StartsWith("refused: the GPU 'quantum' is not known; allowed: one of "));
  CHECK_THAT(text_on(""), Catch::StartsWith("refused: the row names no GPU; allowed: one of "));
  // AMD's modules of two chips, of which a node has eight.
  CHECK_THAT(text_on("MI250X"), Contains("'MI250X', of which a node has eight chips (GCD), is not known"));
}

TEST_CASE("words that tell no devices apart, and a series that is left out, change no device", "[validate][truth]") {
  for (const auto& [name, device] : {std::pair{"8 x NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"},
                                     {"HGX H100 8-GPU 80GB HBM3", "h100-sxm-80gb"},
                                     {"Tesla P100-PCIE-16GB", "p100-pcie-16gb"},
                                     {"NVIDIA GeForce RTX 4090", "rtx-4090-24gb"},
                                     {"4090", "rtx-4090-24gb"},
                                     {"Quadro RTX A6000", "rtx-a6000-48gb"},
                                     {"RTX 6000 Ada Generation", "rtx-6000-ada-48gb"},
                                     {"quadro-rtx6000", "quadro-rtx-6000-24gb"},
                                     {"GB200 NVL72", "gb200"},
                                     {"H200 NVL", "h200-nvl-141gb"}}) {
    CAPTURE(name);
    CHECK_THAT(text_on(name), Contains(type_is(device)));
  }
}

TEST_CASE("a name that leaves the memory open says which other it is not", "[validate][truth]") {
  const auto assumed = [](const char* gpu) {
    const auto study = truth_study(row_on(gpu), kRoot);
    return join(std::get<TruthStudy>(study).assumed, "; ");
  };
  CHECK_THAT(assumed("A100"), Contains("the device type a100-sxm-40gb, and not a100-sxm-80gb"));
  CHECK_THAT(assumed("H100"), Contains("the device type h100-sxm-80gb") && !Contains("and not"));
}

TEST_CASE("a rate of a network is read with its sign and exponent", "[validate][truth]") {
  const auto on = [](const std::string& words) {
    TruthRow row = row_on("H100");
    row.inter_link = words;
    return text_of(row);
  };
  CHECK_THAT(on("4e2 Gb/s per GPU"), Contains("\"bandwidth\": \"45.000000 GB/s\""));
  CHECK_THAT(on("ConnectX-7 400 Gb/s per GPU"), Contains("\"bandwidth\": \"45.000000 GB/s\""));
  for (const std::string words : {"-4 Gb/s per GPU", "1e999 Gb/s per GPU"}) {
    CHECK(on(words) == "refused: the inter_link '" + words +
                           "' states no rate that a network has; allowed: above 0 and finite, as '400 Gb/s per GPU'");
  }
  TruthRow silent = row_on("H100");
  const auto assumed = [&](const char* words) {
    silent.inter_link = words;
    return join(std::get<TruthStudy>(truth_study(silent, kRoot)).assumed, "; ");
  };
  CHECK_THAT(assumed("fast"), Contains("the network of dgx-h100, as inter_link 'fast' states no rate"));
  CHECK_THAT(assumed("not stated"), Contains("the network of dgx-h100") && !Contains("states no rate"));
}

TEST_CASE("key-value heads are as many as ranks of a larger tensor group", "[validate][truth]") {
  TruthRow row = row_on("H100");
  row.sizes.key_value_heads = 1;
  row.degrees.tensor = 4;
  const auto study = truth_study(row, kRoot);
  REQUIRE(std::holds_alternative<TruthStudy>(study));
  CHECK_THAT(join(std::get<TruthStudy>(study).assumed, "; "),
             Contains("4 key-value heads for 1, one for each rank of a tensor group"));
  TruthRow other = row;
  other.sizes.key_value_heads = 4;
  CHECK(text_of(other) == text_of(row));
  other.sizes.key_value_heads = 3;
  CHECK(text_of(other) == "refused: kv_heads, 3, do not divide heads, 8");
  row.sizes.experts = 4;
  row.sizes.experts_active = 8;
  row.sizes.feed_forward = 18432;
  row.sizes.expert_hidden = 512;
  CHECK(text_of(row) == "refused: experts_active, 8, are more than experts, 4");
}

TEST_CASE("what a row states against itself, or in words that mean nothing here, is a reason", "[validate][truth]") {
  const auto reason = [](void (*change)(TruthRow & row)) {
    TruthRow row = row_on("H100");
    change(row);
    return text_of(row);
  };
  CHECK(reason([](TruthRow& row) { row.nodes = 1; }) ==
        "refused: num_gpus 16 are not those of 1 node of 8 devices; allowed: 1 to 8");
  CHECK_THAT(reason([](TruthRow& row) { row.nodes = 3; }), Contains("allowed: 17 to 24"));
  CHECK_THAT(reason([](TruthRow& row) { row.zero = "4"; }), Contains("the zero_stage '4' is not modelled; allowed: 0"));
  CHECK_THAT(reason([](TruthRow& row) { row.zero = "-1"; }), Contains("the zero_stage '-1' is not modelled"));
  CHECK_THAT(reason([](TruthRow& row) { row.zero = "not stated"; }), !Contains("refused"));
  CHECK_THAT(reason([](TruthRow& row) {
               row.recompute = "";
               row.flags["recompute"] = "nonsense";
             }),
             Contains("the recompute 'nonsense' is not modelled"));
  CHECK_THAT(reason([](TruthRow& row) { row.flags["cpu_offload"] = "optimizer 500 %"; }), Contains("is not modelled"));
  CHECK(reason([](TruthRow& row) { row.model = " "; }) == "refused: the row names no model");
  // Of a table that does not count devices its degrees do; contexts may be among the replicas.
  const auto without_count = [](int tensor, int data, int context) {
    TruthRow row = row_on("H100");
    row.devices = 0;
    row.nodes = 1;
    row.degrees.tensor = tensor;
    row.degrees.data = data;
    row.degrees.context = context;
    return text_of(row);
  };
  CHECK(without_count(2, 8, 1) ==
        "refused: the 16 devices of its degrees are not those of 1 node of 8 devices; allowed: 1 to 8");
  for (const auto& [tensor, data, context] : {std::tuple{2, 4, 1}, {1, 4, 2}, {1, 8, 2}}) {
    CHECK_THAT(without_count(tensor, data, context), Contains("\"count\": \"8\""));
  }
}

TEST_CASE("words of a row that change nothing are said", "[validate][truth]") {
  const auto assumed = [](void (*change)(TruthRow & row)) {
    TruthRow row = row_on("H100");
    change(row);
    return join(std::get<TruthStudy>(truth_study(row, kRoot)).assumed, "; ");
  };
  CHECK_THAT(assumed([](TruthRow& row) { row.data_set = "foo"; }), Contains("nothing of the data set 'foo'"));
  CHECK_THAT(assumed([](TruthRow& row) { row.schedule = "nonsense"; }), Contains("nothing of the schedule 'nonsense'"));
  CHECK_THAT(assumed([](TruthRow& row) {
               row.degrees.pipeline = 4;
               row.schedule = "anything but 1f1b";
             }),
             Contains("the schedule 'anything but 1f1b' as 1f1b"));
  CHECK_THAT(assumed([](TruthRow& row) {
               row.degrees.pipeline = 4;
               row.schedule = "non-interleaved 1F1B";
             }),
             !Contains("the schedule"));
  CHECK_THAT(assumed([](TruthRow& row) { row.degrees.expert = 4; }), Contains("nothing of expert_parallel 4"));
  CHECK_THAT(assumed([](TruthRow& row) { row.degrees.interleave = 3; }), Contains("nothing of virtual_stages 3"));
}

TEST_CASE("cards of several nodes are joined by PCIe in a node, and as the row says between nodes",
          "[validate][truth]") {
  const std::string cards = text_on("RTX4090");
  CHECK_THAT(cards, Contains(type_is("rtx-4090-24gb")) && Contains("\"kind\": \"pcie-switch\", \"devices\": \"all\""));
  CHECK_THAT(cards, Contains("\"bandwidth\": \"25 GB/s\"") && Contains("\"bandwidth\": \"45.000000 GB/s\""));
  TruthRow node = row_on("L40S");
  node.devices = 8;
  CHECK_THAT(text_of(node), Contains("\"devices\": [\"6\", \"7\"]"));
  TruthRow silent = row_on("L40S");
  silent.inter_link = "not stated";
  CHECK_THAT(text_of(silent),
             Contains("refused: nothing says how nodes of l40s-48gb are joined; allowed: an inter_link"));
}

TEST_CASE("modules of which no node is shipped are joined as the row says", "[validate][truth]") {
  CHECK_THAT(text_on("GH200"),
             Contains("refused: nothing says how gh200-96gb of a node are joined; allowed: an intra_link"));
  TruthRow stated = row_on("GH200");
  stated.intra_link = "NVLink 150 GB/s per direction";
  CHECK_THAT(text_of(stated), Contains("\"bandwidth\": \"150.000000 GB/s\""));
}

TEST_CASE("a network's rate may be in other units", "[validate][truth]") {
  for (const std::string words : {"3.2 Tb/s per node", "50 GB/s per GPU", "8x400 GbE"}) {
    CAPTURE(words);
    TruthRow row = row_on("H100");
    row.inter_link = words;
    CHECK_THAT(text_of(row), Contains("\"network\"") && Contains("\"bandwidth\": \"45.000000 GB/s\""));
  }
}

TEST_CASE("Megatron-LM is that of the year in which the source appeared", "[validate][truth]") {
  const auto framework = [](const std::string& source) {
    TruthRow row = row_on("A100");
    row.source = source;
    return std::string(framework_of(row).name);
  };
  CHECK(framework("Somebody et al. 2021, Megatron-LM at work") == "megatron-lm-2021");
  CHECK(framework("Somebody et al. 2023, Megatron-LM at work (arXiv 2204.01234)") == "megatron-lm-2022");
  CHECK(framework("Somebody et al. 2024, Megatron-LM at work (arXiv 2402.01234)") == "megatron-lm-2025");
  CHECK(framework("NVIDIA/Megatron-LM README") == "megatron-lm-2025");
}

// The loss is compiled since April 2025 (pull request 1033).
TEST_CASE("TorchTitan is that of the year in which the source appeared, and not compiled where that is said",
          "[validate][truth]") {
  const auto framework = [](const std::string& source, const std::string& note) {
    TruthRow row = row_on("A100");
    row.source = source;
    row.note = note;
    return std::string(framework_of(row).name);
  };
  CHECK(framework("pytorch/torchtitan docs/performance.md (2024)", "") == "torchtitan-2024");
  CHECK(framework("pytorch/torchtitan (2025)", "torch.compile") == "torchtitan");
  CHECK(framework("pytorch/torchtitan (2025)", "not compiled") == "torchtitan-eager");
  CHECK(framework("fms-fsdp", "without torch.compile") == "torchtitan-eager");
  CHECK(framework("fms-fsdp", "torch.compile") == "fsdp");
}

TEST_CASE("plain PyTorch is compiled where that is said", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.source = "NeuSight labels";
  CHECK(framework_of(row).name == "pytorch");
  row.note = "torch.compile (fusion)";
  CHECK(framework_of(row).name == "pytorch-compiled");
  row.note = "without torch.compile";
  CHECK(framework_of(row).name == "pytorch");
}

// pipelining_utils.py at 9dec370: micro-batches are as many as ranks, and two stages of each rank where they
// interleave.
TEST_CASE("TorchTitan's pipelines of 2024 have as many micro-batches as ranks", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  row.source = "pytorch/torchtitan docs/performance.md (2024)";
  row.degrees.pipeline = 4;
  row.micro_batch = 0;
  CHECK_THAT(text_of(row), Contains("  micro_batch_size: 4\n")); // 64 samples of four replicas in four micro-batches
  row.source = "pytorch/torchtitan (2025)";
  CHECK_THAT(text_of(row), Contains("  micro_batch_size: 1\n"));
  row.schedule = "interleaved 1F1B";
  row.sizes.layers = 12; // three of each rank
  CHECK_THAT(text_of(row), Contains("    interleave: 2\n"));
  row.source = "NVIDIA/Megatron-LM README";
  CHECK_THAT(text_of(row), Contains("    interleave: 3\n"));
}

// Four sequences of up to 4,096 tokens; of more tokens fewer.
TEST_CASE("a micro-batch that nobody states has no more tokens than four usual sequences", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  row.micro_batch = 0;
  for (const auto& [tokens, size] : {std::pair{4096, "4"}, {4097, "2"}, {8192, "2"}, {16384, "1"}, {32768, "1"}}) {
    row.sizes.sequence = tokens;
    CHECK_THAT(text_of(row), Contains(std::string("  micro_batch_size: ") + size + "\n"));
  }
}

// PyTorch 2.0 brought scaled dot product attention in March 2023.
TEST_CASE("plain PyTorch has the attention of its year", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.devices = row.devices_per_node = 1;
  const auto text = [&](const std::string& source, const std::string& note = "") {
    row.source = source;
    row.note = note;
    return text_of(row);
  };
  CHECK_THAT(text("somebody's script of December 2022"), Contains("attention: eager"));
  CHECK_THAT(text("somebody's script of December 2022", "FlashAttention"), !Contains("attention: eager"));
  CHECK_THAT(text("somebody's script of 2024"), !Contains("attention: "));
  CHECK_THAT(text("somebody's script of 2024", "no flash attention"), Contains("attention: eager"));
}

TEST_CASE("schedules and precisions have other names", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.degrees.pipeline = 2;
  for (const auto& [theirs, ours] : {std::pair{"v-half", "v-half"},
                                     {"V-Min", "v-min"},
                                     {"zb-vhalf", "v-half"},
                                     {"ZB-V", "zb-v"},
                                     {"zbb", "zb-h1"},
                                     {"AFAB", "gpipe"},
                                     {"eager-1f1b", "eager-1f1b"}}) {
    CAPTURE(theirs);
    row.schedule = theirs;
    CHECK_THAT(text_of(row), Contains(std::string("schedules: [") + ours + "]"));
  }
  row = row_on("H100");
  row.precision = "float8";
  CHECK_THAT(text_of(row), Contains("fp8: delayed")); // Transformer Engine's
  row.source = "pytorch/torchtitan";
  CHECK_THAT(text_of(row), Contains("fp8: tensorwise")); // torchao's
  for (const char* mixed : {"amp", "Mixed precision", "16-mixed"}) {
    row.precision = mixed;
    CHECK_THAT(text_of(row), Contains("  precision: fp16\n"));
  }
  row.precision = "mxfp4";
  CHECK_THAT(text_of(row), Contains("refused: the precision 'mxfp4' is not modelled"));
}

// Google Cloud's slices: of v5e and v6e two axes, of which those of 16 wrap around; of v5p and 7x three, which all do
// in a slice of cubes of 4 x 4 x 4.
TEST_CASE("chips of a TPU stand in the slices that there are", "[validate][truth]") {
  const auto slice = [](const char* gpu, int chips, const char* note = "") {
    TruthRow row = row_on(gpu);
    row.devices = chips;
    row.devices_per_node = 0;
    row.global_batch = 4 * chips;
    row.note = note;
    const std::string text = text_of(row);
    const auto after = [&](const std::string& key) {
      const std::size_t begin = text.find(key);
      REQUIRE(begin != std::string::npos);
      return text.substr(begin + key.size(), text.find(']', begin) - begin - key.size());
    };
    const std::string from = "\"shape\": [", wraps = "\"wraparound\": [";
    return after(from) + " " + after(wraps);
  };
  CHECK(slice("tpu-v6e-trillium", 8) == "\"2\", \"4\" \"false\", \"false\"");
  CHECK(slice("tpu-v6e-trillium", 128) == "\"8\", \"16\" \"false\", \"true\"");
  CHECK(slice("TPU v5e", 256) == "\"16\", \"16\" \"true\", \"true\"");
  CHECK(slice("tpu-v6e", 512) == "\"16\", \"16\" \"true\", \"true\""); // two pods
  CHECK(slice("tpu-v6e", 256, "slices=4") == "\"8\", \"8\" \"false\", \"false\"");
  CHECK(slice("TPU v4", 128) == "\"4\", \"4\", \"8\" \"true\", \"true\", \"true\"");
  CHECK(slice("tpu-v5p", 8) == "\"2\", \"2\", \"2\" \"false\", \"false\", \"false\"");
  CHECK(slice("tpu-v7x-ironwood", 256) == "\"4\", \"8\", \"8\" \"true\", \"true\", \"true\"");
}

// Four chips to a host: a slice of twice the chips has twice the hosts, one of two chips a half.
TEST_CASE("a slice has the hosts of its chips", "[validate][truth]") {
  const auto host = [](int chips) {
    TruthRow row = row_on("tpu-v5p");
    row.devices = chips;
    row.devices_per_node = 0;
    row.global_batch = 4 * chips;
    return text_of(row);
  };
  CHECK_THAT(host(64), Contains(R"("cores": "3328")") && Contains(R"("memory": "7168)")); // as shipped
  CHECK_THAT(host(128), Contains(R"("cores": "6656")") && Contains(R"("memory": "14336)"));
  CHECK_THAT(host(4), Contains(R"("cores": "208")") && Contains(R"("memory": "448)"));
  CHECK_THAT(host(4), Contains(R"("count": "4")") && Contains(R"("idle": "0.3)")); // 5 kW / 16
}

TEST_CASE("what MaxText keeps is what its own recipes keep", "[validate][truth]") {
  TruthRow row = row_on("tpu-v6e");
  row.source = "tpu-recipes, MaxText";
  row.recompute = "";
  CHECK(framework_of(row).name == "maxtext");
  const std::string policy = "  recompute: {kinds: [attention, normalization, elementwise], operators: "
                             "[layer.0.projection, layer.0.expand, ";
  CHECK_THAT(text_of(row), Contains(policy) && Contains("  offload: {activations: all}\n")); // of 32 GB
  row.gpu = "tpu-v5p";
  CHECK_THAT(text_of(row), Contains(policy) && !Contains("offload"));
  row.recompute = "full";
  CHECK_THAT(text_of(row), Contains("  recompute: blocks\n") && !Contains("operators"));
  row.recompute = ""; // a mixture leaves what goes into its blocks to the host, whatever the chip
  row.model = "DeepSeek-V3 671B";
  row.sizes.experts = 256;
  row.sizes.experts_active = 8;
  row.sizes.feed_forward = 18432;
  row.sizes.expert_hidden = 2048;
  CHECK_THAT(text_of(row), Contains("  recompute: blocks\n") && Contains("  offload: {activations: all}\n"));
}

TEST_CASE("MaxText shares weights within a slice, and slices are replicas", "[validate][truth]") {
  TruthRow row = row_on("tpu-v6e");
  row.source = "MaxText";
  row.devices_per_node = 0;
  row.devices = row.global_batch = 512; // two pods
  CHECK_THAT(text_of(row), Contains("    shard: 256\n"));
  row.devices = row.global_batch = 256;
  CHECK_THAT(text_of(row), !Contains("shard:"));
}

TEST_CASE("where there are more chips than sequences, MaxText shares each", "[validate][truth]") {
  TruthRow row = row_on("tpu-v7x");
  row.source = "MaxText";
  row.micro_batch = 0;
  row.devices = 64;
  row.devices_per_node = 0;
  row.global_batch = 16;
  CHECK_THAT(text_of(row), Contains("    context: 4\n") && Contains("  micro_batch_size: 1\n"));
  row.global_batch = 128; // in one pass
  CHECK_THAT(text_of(row), !Contains("context:") && Contains("  micro_batch_size: 2\n"));
}

TEST_CASE("a run that names no framework has the usual one of what it shares, which is said", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.source = "Somebody et al. 2024";
  for (const std::string sixteen : {"bf16", "fp16", "amp", "mixed"}) {
    row.precision = sixteen;
    CHECK(framework_of(row).name == "pytorch-autocast");
  }
  row.precision = "fp32";
  CHECK(framework_of(row).name == "pytorch");
  row.note = "torch.compile";
  CHECK(framework_of(row).name == "pytorch-compiled");
  row.zero = "FSDP";
  CHECK(framework_of(row).name == "fsdp");
  row.note = "";
  CHECK(framework_of(row).name == "torchtitan-eager");
  row.zero = "";
  row.degrees.tensor = 8;
  CHECK(framework_of(row).name == "megatron-lm-2025");
  const auto study = truth_study(row, kRoot);
  REQUIRE(std::holds_alternative<TruthStudy>(study));
  CHECK(std::get<TruthStudy>(study).assumed.front() == "the framework megatron-lm-2025");
}

TEST_CASE("kernels of attention that a row names go before those of an older framework", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.source = "Somebody et al. 2023, GPT-NeoX";
  CHECK_THAT(text_of(row), !Contains("attention: flash"));
  row.note = "Flash Attention";
  CHECK_THAT(text_of(row), Contains("  attention: flash-1\n"));
  row.note = "with FlashAttention-2";
  CHECK_THAT(text_of(row), Contains("  attention: flash-2\n"));
  row.note = "no flash attention";
  CHECK_THAT(text_of(row), !Contains("attention: flash"));
}

TEST_CASE("a stage of ZeRO may be a number", "[validate][truth]") {
  for (const auto& [words, stage] : {std::pair{"1", 1},
                                     {"2", 2},
                                     {"3", 3},
                                     {"0", 0},
                                     {"1.0", 1},
                                     {"ZeRO 2", 2},
                                     {"zero_stage 3", 3},
                                     {"DeepSpeed ZeRO-1", 1},
                                     {"distributed optimizer (ZeRO-1)", 1}}) {
    CAPTURE(words);
    TruthRow row = row_on("A100");
    row.zero = words;
    CHECK_THAT(text_of(row), Contains("    zero: " + std::to_string(stage) + "\n"));
  }
}

TEST_CASE("settings have the names that people give them", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.precision = "bfloat16 mixed";
  row.recompute = "activation checkpointing";
  CHECK_THAT(text_of(row), Contains("  precision: bf16\n") && Contains("  recompute: blocks\n"));
  row.precision = "half";
  row.recompute = "false";
  CHECK_THAT(text_of(row), Contains("  precision: fp16\n") && !Contains("recompute:"));
  row.precision = "int3";
  CHECK_THAT(text_of(row), Contains("refused: the precision 'int3' is not modelled; allowed: bf16, "));
  row.precision = "bf16";
  row.recompute = "sometimes";
  CHECK_THAT(text_of(row),
             Contains("refused: the recompute 'sometimes' is not modelled; allowed: none, selective, full"));
}

TEST_CASE("schedules have the names that papers give them", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.recompute = "none";
  row.degrees.pipeline = 4;
  for (const auto& [theirs, ours] : {std::pair{"PipeDream-Flush", "1f1b"},
                                     {"Interleaved 1F1B", "interleaved"},
                                     {"Interleaved1F1B", "interleaved"},
                                     {"zero bubble", "zb-h1"},
                                     {"DualPipe", "dualpipe"},
                                     {"DualPipeV", "dualpipe-v"}}) {
    CAPTURE(theirs);
    row.schedule = theirs;
    CHECK_THAT(text_of(row), Contains("schedules: [" + std::string(ours) + "]"));
    CHECK((text_of(row).find("interleave: 2") != std::string::npos) == (std::string(ours) == "interleaved"));
  }
  row.schedule = "magic";
  CHECK_THAT(text_of(row), Contains("refused: the schedule 'magic' is not modelled; allowed: "));
}

// Partitions keep what they are given and make all else again; their number of modules stands in the note, or they are
// of about the same time.
TEST_CASE("torchgpipe's partitions are those that it states, and are recomputed whole", "[validate][truth]") {
  TruthRow row = row_on("Tesla P40 24GB");
  row.source = "torchgpipe benchmarks";
  row.model = "AmoebaNet-D (18,256)";
  row.sizes = {};
  row.devices = 4;
  row.degrees = {.pipeline = 4, .data = 1};
  row.schedule = "GPipe";
  row.recompute = "full except last micro-batch";
  row.note = "chunks=64; balance=[3, 6, 7, 8]; PyTorch 1.3";
  CHECK_THAT(text_of(row), Contains("recompute: {what: full, except_last: true}"));
  CHECK_THAT(text_of(row), Contains("layers: \"E,t*3|t*6|t*7|t*8L\""));
  CHECK_THAT(text_of(row), Contains("strategies: [mesh], schedules: [gpipe]"));
  row.recompute = "full (checkpoint=always)";
  CHECK_THAT(text_of(row), Contains("recompute: {what: full, except_last: false}"));
  for (const char* other :
       {"balance=[3, 6, 7]", "balance=[30, 66, 84, 61]", "balance=[3, -6, 19, 8]", "balance=[", ""}) {
    row.note = other; // modules that are not the model's blocks, or none
    INFO(other);
    CHECK_THAT(text_of(row), Contains("strategies: [block-partition], schedules: [gpipe]"));
    CHECK_THAT(text_of(row), !Contains("layers: "));
  }
}

// 25,000 samples in 1,667 chunks are 15 in each but the last.
TEST_CASE("a micro-batch that is no whole number is the mean of some that are", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.devices = 2;
  row.degrees = {.pipeline = 2, .data = 1};
  row.micro_batch = 14.997;
  row.global_batch = 25000;
  CHECK_THAT(text_of(row), Contains("global_batch: 25005\n  micro_batch_size: 15\n"));
  row.micro_batch = 14;
  CHECK_THAT(text_of(row), Contains("25000 is no multiple of micro_batch 14"));
}

TEST_CASE("models without a gate, and such as are no decoders, are not built as Llama's", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.model = "Falcon-40B";
  CHECK_THAT(text_of(row), !Contains("kind: gated"));
  row.model = "DeBERTa-large";
  CHECK_THAT(text_of(row), Contains("refused: the architecture of 'DeBERTa-large'"));
  row.model = "Qwen3-Next 80B-A3B";
  CHECK_THAT(text_of(row), Contains("refused: the architecture of 'Qwen3-Next 80B-A3B'"));
}

TEST_CASE("a model is known whatever stands between the words of its name", "[validate][truth]") {
  TruthRow row = row_on("H100");
  row.sizes = {.layers = 8,
               .hidden = 7168,
               .heads = 128,
               .feed_forward = 18432,
               .vocabulary = 1024,
               .experts = 8,
               .experts_active = 2,
               .expert_hidden = 2048,
               .sequence = 128};
  for (const char* name : {"DeepSeek-V3 671B", "DeepSeek V3 671B", "DeepSeekV3", "deepseek_v3"}) {
    CAPTURE(name);
    row.model = name;
    CHECK_THAT(text_of(row), Contains("kind: latent_attention"));
  }
  row.sizes.experts = 0;
  row.model = "Mixtral 8x22B"; // and no dense model
  CHECK(text_of(row) == "refused: the row does not state experts");
  row.sizes = {};
  for (const char* name : {"Llama 3.1 8B", "Llama3.1-8B", "Llama3 8B"}) {
    CAPTURE(name);
    row.model = name;
    CHECK_THAT(text_of(row), Contains("llama3-8b"));
  }
  for (const char* name : {"gpt-oss 120B", "GPT OSS 120B"}) { // which is shipped
    CAPTURE(name);
    row.model = name;
    CHECK_THAT(text_of(row), Contains("gpt-oss-120b"));
  }
}

// Llama 4's config.json: interleave_moe_layer_step is 1 of Scout's 16 experts, 2 of Maverick's 128; a shared expert.
TEST_CASE("Llama 4 has an expert that all tokens go through, and Maverick has dense layers", "[validate][truth]") {
  TruthRow row = row_on("H100");
  row.model = "Llama4 Scout";
  row.sizes = {.layers = 8,
               .hidden = 5120,
               .heads = 40,
               .key_value_heads = 8,
               .feed_forward = 16384,
               .vocabulary = 1024,
               .experts = 16,
               .experts_active = 1,
               .expert_hidden = 8192,
               .sequence = 128};
  const auto count = [](const std::string& text, const std::string& word) {
    std::size_t times = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      ++times;
    }
    return times;
  };
  const std::string scout = text_of(row), dense = "{name: expand, kind: linear, features: 32768,";
  CHECK_THAT(scout, Contains("shared_expand, kind: linear, features: 16384"));
  CHECK(count(scout, dense) == 0);
  row.model = "Llama-4-Maverick";
  row.sizes.experts = 128;
  CHECK(count(text_of(row), dense) > 0);
}

TEST_CASE("a model of a billion layers is refused before it is built", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.sizes.layers = 1 << 30;
  CHECK_THAT(text_of(row), Contains("refused: layers is 1073741824; allowed: up to 4096"));
}

TEST_CASE("degrees of a billion share no model", "[validate][truth]") {
  TruthRow row = row_on("A100");
  row.degrees.tensor = row.degrees.pipeline = row.degrees.context = 1 << 30;
  CHECK_THAT(text_of(row), Contains("refused: its degrees, 1237940039285380274899124224 in all, do not divide 16"));
  row.devices = row.nodes = row.devices_per_node = 0;
  CHECK_THAT(text_of(row), Contains("refused: "));
}

TEST_CASE("a metric has the names that tables give it", "[validate][truth]") {
  CHECK(usual_metric("MFU") == "mfu_percent");
  CHECK(usual_metric("step_time") == "iteration_seconds");
  CHECK(usual_metric("tokens_per_second_per_gpu") == "tokens_per_gpu_second");
  CHECK(usual_metric("epochs_of_glory") == "epochs_of_glory");
}

TEST_CASE("a unit may be spelled in any usual way", "[validate][truth]") {
  const Where here{"table.csv", 2, 3};
  const auto scale = [&](const char* metric, const std::string& unit) {
    const TruthMetric* known = find_truth_metric(metric, unit);
    REQUIRE(known != nullptr);
    return scale_of(*known, unit, here);
  };
  for (const char* unit : {"TFLOPs/s/GPU", "TFLOPS", "TFLOP/s per GPU", "tflops/device"}) {
    CAPTURE(unit);
    CHECK(scale("tflops_per_gpu", unit) == near(1e12));
  }
  for (const char* unit : {"tok/s/GPU", "tokens/sec/gpu", "tokens per second per GPU", "token/s"}) {
    CAPTURE(unit);
    CHECK(scale("tokens_per_gpu_second", unit) == near(1));
  }
  CHECK(scale("iteration_seconds", "seconds") == near(1));
  CHECK(scale("mfu_percent", "percent") == near(0.01));
  CHECK(scale("mfu_percent", "fraction") == near(1));
  CHECK(scale("peak_memory", "GiB per GPU") == near(1024.0 * 1024 * 1024));
  CHECK_THAT(error_of([&] { scale("peak_memory", "stones"); }),
             Contains("table.csv:2:3: ") && Contains("allowed: GiB"));
  CHECK_THAT(error_of([&] { scale("throughput", "stones"); }), Contains("samples/s") && Contains("tokens/s"));
}

TEST_CASE("what overlaps, and how ranks share tokens, is as the flags of a row say", "[validate][truth]") {
  CHECK_THAT(flagged({}), !Contains("gradient_bucket") && !Contains("gather:") && !Contains("context_rule"));
  CHECK_THAT(flagged({{"overlap_grad_reduce", "true"}}), !Contains("gradient_bucket"));
  CHECK_THAT(flagged({{"overlap_grad_reduce", "false"}}), Contains("  gradient_bucket: none\n"));
  CHECK_THAT(flagged({{"overlap_param_gather", "true"}}), Contains("    gather: before-use\n"));
  CHECK_THAT(flagged({{"overlap_param_gather", "false"}}), Contains("    gather: after-step\n"));
  for (const auto& [theirs, ours] :
       {std::pair{"a2a", "all-to-all"}, {"p2p", "ring"}, {"all_gather", "all-gather"}, {"a2a+p2p", "both"}}) {
    CHECK_THAT(flagged({{"cp_comm_type", theirs}}), Contains("    context_rule: " + std::string(ours) + "\n"));
  }
}

// Megatron Core gathers 16 bits of mxfp8, which are cast after that.
TEST_CASE("weights are held and gathered in 8 bits where the note of a row's flags says so", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  row.zero = "distributed optimizer";
  row.precision = "fp8";
  CHECK_THAT(text_of(row), !Contains("fp8_weights") && !Contains("quantized_weights"));
  for (const char* note : {"fp8_param_gather=true; grad_reduce_in_fp32=false", "FP8_PARAMS=True"}) {
    row.flags = {{"note", note}};
    CHECK_THAT(text_of(row), Contains("  fp8_weights: true\n") && Contains("    quantized_weights: fp8\n"));
  }
  row.precision = "mxfp8";
  row.gpu = "b200-sxm";
  CHECK_THAT(text_of(row), Contains("  fp8_weights: true\n") && !Contains("quantized_weights"));
}

TEST_CASE("MLPerf's GPT-3 drops nothing", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  CHECK_THAT(text_of(row), Contains("dropout"));
  row.source = "MLPerf Training v4.0 results (NVIDIA/results)";
  CHECK_THAT(text_of(row), !Contains("dropout"));
}

TEST_CASE("what is left to hosts is as the flags of a row say, or the reason why it is not predicted", "[validate]") {
  for (const char* nothing : {"", "none", "false", "n/a"}) {
    CHECK_THAT(flagged({{"cpu_offload", nothing}}), !Contains("offload:"));
  }
  CHECK_THAT(flagged({{"cpu_offload", "activations of 40 layers"}}), Contains("  offload: {activations: 40}\n"));
  CHECK_THAT(flagged({{"cpu_offload", "optimizer 50 %"}}),
             Contains("  offload: {optimizer: 0.5") && Contains("gradients: true"));
  CHECK_THAT(flagged({{"cpu_offload", "weights"}}),
             Contains("refused: what is left to hosts, 'weights'") && Contains("allowed: none, optimizer 50 %"));
}

TEST_CASE("a script says how many micro-batches a replica ran", "[validate][truth]") {
  CHECK_THAT(flagged({}), Contains("  micro_batch_size: 1\n"));
  CHECK_THAT(flagged({{"micro_batches", "2"}}), Contains("  micro_batch_size: 4\n")); // 64 samples of eight replicas
}

// What a table says goes before what the script that launched its runs says.
TEST_CASE("a public script that launched a table's runs says what the table does not", "[validate][truth]") {
  TruthRow row = row_on("b200-sxm");
  CHECK(launcher_flags(row).empty());
  row.source = "MooreThreads/SimuMax docs";
  CHECK(launcher_flags(row).at("cp_comm_type") == "a2a");
  CHECK(launcher_flags(row).at("overlap_grad_reduce") == "false");
  row.source = "MLPerf Training v5.1 results (NVIDIA/results)";
  CHECK(launcher_flags(row).empty()); // of pre-training nothing is said
  row.model = "Llama2 70B LoRA";
  CHECK(launcher_flags(row).at("cp_comm_type") == "a2a");
  CHECK(!launcher_flags(row).contains("cuda_graphs"));
  row.source = "MLPerf Training v5.0 results (Oracle/results/8xBM.GPU.B200.8)";
  row.table = "plan from 8xBM.GPU.B200.8/config_DGXB200_8x8x1xtp1pp1cp8.sh";
  CHECK(launcher_flags(row).at("cp_comm_type") == "a2a");
  CHECK(launcher_flags(row).at("cuda_graphs") == "mcore: per layer");
  row.gpu = "mi325x";
  CHECK(launcher_flags(row).empty());
  row.gpu = "h100-80gb-sxm";
  row.source = "MLPerf Training v4.0 results (NVIDIA/results)";
  CHECK(launcher_flags(row).empty());
  row.source = "NeuSight labels";
  row.table = "label/NVIDIA_A100-SXM4-40GB/gpt2_large-train-1024-4-pp4_1.json";
  CHECK(launcher_flags(row).at("micro_batches") == "1");
  row.table = "label/NVIDIA_A100-SXM4-40GB/gpt2_large-train-1024-4-tp4.json";
  CHECK(launcher_flags(row).empty());
}

// NVIDIA-NeMo/Automodel: what the configurations said when their figures were published.
TEST_CASE("runs of NeMo Automodel are those of its configurations", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  row.source = "NVIDIA-NeMo/Automodel docs/performance-summary.mdx";
  const auto flag = [&](const char* column) {
    const std::map<std::string, std::string> flags = launcher_flags(row);
    const auto found = flags.find(column);
    return found == flags.end() ? "" : found->second;
  };
  row.model = "GPT-OSS 20B";
  CHECK(flag("recompute") == "full");
  CHECK(flag("expert_choice") == "round-robin");
  row.model = "GPT-OSS 120B";
  CHECK(flag("recompute") == "none");
  CHECK(flag("expert_parallel") == "16");
  row.model = "Llama3 8B LoRA";
  CHECK(flag("recompute") == "none");
  CHECK(flag("expert_choice").empty());
  row.degrees.tensor = 2;
  row.model = "Llama3 70B LoRA";
  CHECK(flag("recompute") == "full");
  CHECK(flag("sequence_parallel") == "true");
  CHECK(flag("tp_comm_overlap") == "true");
  row.model = "Qwen2.5 32B LoRA";
  CHECK(flag("recompute") == "full");
  CHECK(flag("sequence_parallel") == "false");
  CHECK(flag("tp_comm_overlap").empty());
}

TEST_CASE("NeMo Automodel has three recipes", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  row.source = "NVIDIA-NeMo/Automodel docs/performance-summary.mdx";
  row.note = "kernels=TE + DeepEP";
  CHECK(framework_of(row).name == "automodel");
  row.note = "kernels=TE + triton";
  CHECK(framework_of(row).name == "automodel-transformers");
  row.note = "kernels=TE + triton + fsdp2_prefetch";
  CHECK(framework_of(row).name == "automodel-compiled");
}

// PyTorch's pipelines run once for each local batch.
TEST_CASE("a pipeline of NeMo Automodel fills for each local batch", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  row.source = "NVIDIA-NeMo/Automodel docs/performance-summary.mdx";
  row.note = "local batch=8; GA=4";
  row.micro_batch = 1;
  CHECK_THAT(text_of(row), !Contains("pipeline_fills"));
  row.degrees.pipeline = 2;
  CHECK_THAT(text_of(row), Contains("  pipeline_fills: 4\n"));
  row.source = "NVIDIA-NeMo/Megatron-Bridge";
  CHECK_THAT(text_of(row), !Contains("pipeline_fills"));
}

TEST_CASE("adapters of a model that is shipped are trained alone", "[validate][truth]") {
  TruthRow row = row_on("h100-80gb-sxm");
  row.model = "Qwen2.5 7B LoRA";
  row.sizes = {.sequence = 4096};
  CHECK_THAT(text_of(row), Contains("qwen2.5-7b") && Contains("  lora: 16\n"));
  row.model = "Qwen2.5 7B";
  CHECK_THAT(text_of(row), Contains("qwen2.5-7b") && !Contains("lora"));
}

// Megatron-LM, examples/academic_paper_scripts/sc21/run_table_1.sh: 76B has micro-batches of 2 and 5 layers of 15 in
// each of three virtual stages, 39B micro-batches of 4 and none.
TEST_CASE("the runs of Narayanan et al. are those of their script", "[validate][truth]") {
  TruthRow row = row_on("a100-80gb-sxm");
  row.source = "Narayanan et al. 2021 (SC21)";
  row.table = "Table 1";
  row.schedule = "interleaved-1f1b";
  row.micro_batch = 0;
  row.devices = 32;
  row.degrees.tensor = 8;
  row.degrees.pipeline = 4;
  row.sizes.layers = 60;
  row.sizes.hidden = 10240;
  row.sizes.heads = 80;
  row.flags = launcher_flags(row);
  const std::string interleaved = text_of(row);
  CHECK_THAT(interleaved, Contains("  micro_batch_size: 2\n") && Contains("    interleave: 3\n") &&
                              Contains("schedules: [interleaved]"));
  row.sizes.layers = 48;
  row.sizes.hidden = 8192;
  row.sizes.heads = 64;
  row.flags = launcher_flags(row);
  const std::string plain = text_of(row);
  CHECK_THAT(plain, Contains("  micro_batch_size: 4\n") && !Contains("interleave") && Contains("schedules: [1f1b]"));
}

TEST_CASE("Korthikanti's larger models are interleaved in figure 1, too", "[validate][truth]") {
  TruthRow row = row_on("a100-80gb-sxm");
  row.source = "Korthikanti et al. 2023";
  row.table = "Figure 1 (GiB per GPU)";
  row.model = "GPT 175B";
  CHECK(launcher_flags(row).at("vp") == "3");
  row.model = "GPT 22B";
  CHECK(launcher_flags(row).empty());
}

// 15 layers of a rank in three stages, 14 in two, 13 in as many; of 22 layers and 8 ranks, which do not divide, a stage
// each, with the embedding's and the head's: Zero Bubble's models.
TEST_CASE("interleaved stages that nobody counts are few, and divide the layers of a rank", "[validate][truth]") {
  TruthRow row = row_on("a100-80gb-sxm");
  row.schedule = "interleaved 1F1B";
  row.degrees.pipeline = 4;
  row.degrees.interleave = 1; // as tables have it that mean no other than one pipeline
  for (const auto& [layers, stages] : {std::pair{60, "3"}, {56, "2"}, {52, "13"}, {22, "6"}}) {
    row.sizes.layers = layers;
    CHECK_THAT(text_of(row), Contains(std::string("    interleave: ") + stages + "\n"));
  }
}

TEST_CASE("devices of a DGX-2 are in its sockets", "[validate][truth]") {
  CHECK_THAT(text_of(row_on("v100-32gb-sxm(DGX-2)")), Contains("v100-sxm3-32gb\""));
  CHECK_THAT(text_of(row_on("v100-32gb-sxm-450w(DGX-2H)")), Contains("v100-sxm3-32gb-450w\""));
  CHECK_THAT(text_of(row_on("V100-SXM3-32GB")), Contains("v100-sxm3-32gb\""));
  CHECK_THAT(text_of(row_on("v100-32gb-sxm")), Contains("v100-sxm2-32gb\""));
}

TEST_CASE("sixteen devices of a DGX-2 stand in one node", "[validate][truth]") {
  TruthRow row = row_on("v100-32gb-sxm(DGX-2)");
  row.devices = 16;
  row.devices_per_node = 16;
  CHECK_THAT(text_of(row), Contains("\"count\": \"16\"") && Contains("nvswitch"));
}

} // namespace
} // namespace stagecraft::test
