// Noise and slightly broken files in every format of the table: they are refused, or what is read becomes one of our
// files.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "sim/base/random.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft::foreign {
namespace {

const std::map<std::string_view, std::string> kExamples = {
    {"nccl-tests", "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 iters: 20\n# Using devices\n"
                   "#  Rank  0 Group  0 Pid  6899 on a device  0 [0000:04:00] NVIDIA H200\n"
                   "#  Rank  1 Group  0 Pid  6900 on a device  1 [0000:05:00] NVIDIA H200\n"
                   "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
                   "1048576 262144 float sum -1 50.00 20.97 20.97 0 50.00 20.97 20.97 N/A\n"},
    {"nvidia-smi-topo",
     "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tNV18\tPXB\t0-31,64-95\t0\n"
     "GPU1\tNV18\t X \tNV18\tNODE\t0-31,64-95\t0\nGPU2\tNV18\tNV18\t X \tSYS\t32-63\t1\nNIC0\tPXB\tNODE\tSYS\t X \n\n"
     "  NIC0: mlx5_0\n"},
    {"kineto",
     R"({"deviceProperties":[{"name":"NVIDIA H200","totalGlobalMem":1500000}],"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":9,"args":{"External id":1,"Input Dims":[[8,8],[8,8]],
"Input Strides":[[8,1],[1,8]],"Input type":["float","float"],"Concrete Inputs":["",""]}},
{"ph":"X","cat":"cuda_runtime","name":"launch","ts":2,"dur":1,"args":{"External id":1,"correlation":5}},
{"ph":"X","cat":"kernel","name":"sgemm","ts":20,"dur":30,"args":{"correlation":5}}]})"}};

const DeviceTypeSource kTypes = device_types_in(test::source_dir() / "platforms/devices");

const ForeignOptions& options() {
  static const ForeignOptions kOptions{.device = load_device_type(kTypes("h200-sxm", {"test", 0, 0}), kTypes)};
  return kOptions;
}

// Does what a user's import does, up to building the platform.
void import(const ForeignFormat& format, const std::string& text) {
  const yaml::Node document = yaml::parse(format.read(text, "noise", options()).text, "noise as YAML");
  if (document.find("nodes") == nullptr) {
    read_measurements(document);
  }
}

TEST_CASE("the examples of all formats are read", "[foreign][bad-input]") {
  for (const ForeignFormat& format : foreign_formats()) {
    INFO(format.name);
    REQUIRE(kExamples.contains(format.name));
    import(format, kExamples.at(format.name));
  }
}

TEST_CASE("examples with changed bytes are read or refused, noise is refused", "[foreign][bad-input]") {
  Random random(5);
  for (const ForeignFormat& format : foreign_formats()) {
    std::string noise(100'000, ' ');
    for (char& letter : noise) {
      letter = static_cast<char>(random.below(256));
    }
    INFO(format.name);
    CHECK_THAT(test::error_of([&] { import(format, noise); }), Catch::StartsWith("noise"));
    const std::string& example = kExamples.at(format.name);
    for (int round = 0; round < 300; ++round) {
      std::string text =
          example.substr(0, round % 3 == 0 ? random.below(static_cast<int>(example.size())) : std::string::npos);
      for (int change = 0; change < 3 && !text.empty(); ++change) {
        text[static_cast<std::size_t>(random.below(static_cast<int>(text.size())))] =
            static_cast<char>(random.below(256));
      }
      INFO(text);
      test::error_of([&] { import(format, text); }); // anything but an InputError fails the test
    }
  }
}

} // namespace
} // namespace stagecraft::foreign
