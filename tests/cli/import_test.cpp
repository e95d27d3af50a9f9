// stagecraft import: measurements and machine descriptions from other tools, used at once.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

const std::string kMatrix = "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV2 SYS SYS\nGPU1 NV2 X SYS SYS\nGPU2 SYS SYS X NV2\n"
                            "GPU3 SYS SYS NV2 X\n";

TEST_CASE("a matrix of nvidia-smi becomes a platform that models are replayed on", "[cli][import]") {
  const Workshop shop;
  shop.write("topo.txt", kMatrix);
  shop.succeed("import nvidia-smi-topo topo.txt --device v100-sxm2-16gb -o mine.yaml");
  CHECK_THAT(shop.succeed("show mine.yaml").out, Contains("47.90 GB/s, 8.000 us")); // two links of 23.95 GB/s
  const Json run = shop.succeed("replay alexnet --platform mine.yaml --strategy uniform --schedule 1f1b --set "
                                "training.global_batch=64 --micro-batches 8 --format json")
                       .json();
  CHECK(run["iteration_seconds"].get<double>() > 0);
}

TEST_CASE("a machine with the user's own device names the device's file", "[cli][import]") {
  const Workshop shop;
  shop.write("topo.txt", kMatrix);
  shop.write("mine.yaml",
             "name: v100-mine\nvendor: nvidia\norigin: made-up\nderived: {from: v100-sxm2-16gb, scale: {}}\n");
  shop.succeed("import nvidia-smi-topo topo.txt --device mine.yaml -o machine.yaml");
  CHECK_THAT(shop.read("machine.yaml"), Contains("device_types: ['mine.yaml']\n"));
  CHECK_THAT(shop.succeed("show machine.yaml").out, Contains("node/v100-mine-3"));
}

TEST_CASE("times of nccl-tests go into a device file by way of calibrate fit", "[cli][import]") {
  const Workshop shop;
  std::string text = "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 2 iters: 20\n"
                     "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  for (int power = 12; power <= 24; ++power) { // 10 us and 100 GB/s; of two ranks both bandwidths are the same
    const double bytes = 1 << power, time = 10 + bytes / 100e3;
    const std::string rate = " " + std::to_string(bytes / time / 1e3);
    const std::string part = " " + std::to_string(time) + rate + rate + " 0";
    text += std::to_string(1 << power) + " 1 float sum -1" + part + part + "\n";
  }
  shop.write("nccl.txt", text);
  shop.succeed("import nccl-tests nccl.txt --device h100-sxm-80gb -o nccl.yaml");
  const Json fits = shop.succeed("calibrate fit nccl.yaml -o mine.yaml --format json").json();
  REQUIRE(fits["fits"].size() == 1);
  CHECK(fits["fits"][0]["fit"] == "all-reduce/2");
  CHECK(fits["fits"][0]["mape"].get<double>() < 0.01);
  CHECK_THAT(shop.read("mine.yaml"), Contains("seconds_per_byte: 1e-11"));
}

TEST_CASE("a trace of PyTorch becomes measurements; what is left out is said", "[cli][import]") {
  const Workshop shop;
  shop.write("trace.json", R"({"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":9,"args":{"External id":1,"Input Dims":[[512,512],[512,512]],"Input type":["float","float"]}},
{"ph":"X","cat":"kernel","name":"sgemm","ts":20,"dur":30,"args":{"External id":1}},
{"ph":"X","cat":"kernel","name":"other","ts":60,"dur":10,"args":{}}]})");
  const Outcome outcome = shop.succeed("import kineto trace.json --device h100-sxm-80gb -o trace.yaml");
  CHECK(outcome.err == "left out, 25.0 % of the time: 1 x kernels whose operator the trace does not name\n");
  CHECK_THAT(shop.read("trace.yaml"), Contains("shape: {batch: 1, m: 512, n: 512, k: 512}, median: 30 us"));
  CHECK_THAT(shop.succeed("calibrate fit trace.yaml -o mine.yaml").out, Contains("gemm/forward/fp32"));
}

TEST_CASE("import refuses formats, flags and values that it does not know", "[cli][import]") {
  const Workshop shop;
  shop.write("topo.txt", kMatrix);
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = shop.run("import " + arguments);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains(why));
  };
  refused("nccl-test topo.txt", "unknown format 'nccl-test'; did you mean 'nccl-tests'?");
  refused("nvidia-smi-topo topo.txt --device v100-sxm2-16gb --ranks 2", "--ranks: 'nvidia-smi-topo' does not heed it");
  refused("nvidia-smi-topo topo.txt --device v100", "'v100'");
  refused("nvidia-smi-topo topo.txt --device v100-sxm2-16gb --nvlink '0 GB/s'", "--nvlink: '0 GB/s'");
  refused("nvidia-smi-topo topo.txt --device v100-sxm2-16gb --format json", "becomes YAML");
  // 2 x 10^12 times 2^10 operations in a microsecond are beyond what any device does.
  shop.write("fast.json", R"({"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":9,"args":{"External id":1,"Input Dims":[[1000000,1000000],[1000000,1024]],"Input type":["float","float"]}},
{"ph":"X","cat":"kernel","name":"sgemm","ts":20,"dur":1,"args":{"External id":1}}]})");
  refused("kineto fast.json --device h100-sxm-80gb -o out.yaml", "allowed: at most 1e17 FLOP/s");
  CHECK(shop.files() == 2);
}

TEST_CASE("list names the formats of measurements", "[cli][import]") {
  const Workshop shop;
  const std::string out = shop.succeed("list measurement-formats").out;
  for (const char* name : {"nccl-tests", "nvidia-smi-topo", "kineto"}) {
    CHECK_THAT(out, Contains(name));
  }
}

} // namespace
} // namespace stagecraft::test
