// Random noise for every reader: it must throw InputError, and neither crash nor throw anything else.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "sim/base/system/file.hpp"
#include "tests/workload/models.hpp"
#include "tests/workload/onnx_builder.hpp"

namespace stagecraft {
namespace {

std::string noise(size_t length, bool printable) {
  std::mt19937 random(20240607);
  std::string text(length, ' ');
  for (char& letter : text) {
    const unsigned value = static_cast<unsigned>(random());
    letter = static_cast<char>(printable ? (value % 20 == 0 ? '\n' : ' ' + value % 95) : value % 256);
  }
  return text;
}

TEST_CASE("ten megabytes of noise are refused by every reader", "[workload][bad-input]") {
  constexpr size_t kLength = 10'000'000;
  for (const ModelFormat& format : model_formats()) {
    for (const bool printable : {false, true}) {
      INFO(format.name << (printable ? " text" : " bytes"));
      const std::string bytes = noise(kLength, printable);
      CHECK_THAT(test::error_of([&] { format.read(bytes, "noise", {}); }), Catch::StartsWith("noise"));
    }
  }
}

// A file with a few changed bytes may still be a model; if not, it must be refused with InputError.
TEST_CASE("files with changed bytes are read or refused", "[workload][bad-input]") {
  test::OnnxBuilder onnx;
  onnx.input("x", {2, 3, 8, 8})
      .weight("w", {4, 3, 3, 3})
      .node("Conv", {"x", "w"}, "c")
      .attribute("kernel_shape", {3, 3});
  onnx.node("MaxPool", {"c"}, "p").attribute("kernel_shape", {2, 2}).attribute("strides", {2, 2});
  onnx.node("Flatten", {"p"}, "f").node("Softmax", {"f"}, "y");
  const std::map<std::string_view, std::string> originals = {
      {"onnx", onnx.bytes()},
      {"dnn-partitioning",
       R"({"maxSizePerFPGA": 9, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [{"id": 1, "supportedOnFpga": 1, "cpuLatency": 2,
       "fpgaLatency": 1, "isBackwardNode": 0, "colorClass": 3, "size": 4}, {"id": 2, "supportedOnFpga": true,
       "cpuLatency": 2.5, "fpgaLatency": 0, "isBackwardNode": true, "colorClass": 3, "size": 4}],
       "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5, "size": 7}]})"},
      {"yaml", read_file(test::source_dir() / "workloads/squeezenet.yaml")},
      {"piper",
       R"({"maxDevices": 4, "maxMemoryPerDevice": 100, "bandwidth": 10, "mbsInBatch": 6, "nodes": [{"id": 7, "TMPCs":
       {"1": [{"id": "vanilla", "timePerSample": 6, "parameterSize": 8, "memoryUsageA": 1, "memoryUsageB": 2,
       "syncTimeFw": {}, "syncTimeBw": {"8": 1}}]}}, {"id": 8, "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 6,
       "parameterSize": 8, "memoryUsageA": 1, "memoryUsageB": 2, "syncTimeFw": {"7": 1}, "syncTimeBw": {}}]}}],
       "edges": [{"sourceId": 7, "destId": 8, "communicationCost": 20}]})"},
      {"hugging-face",
       R"({"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4, "num_hidden_layers":
       2, "num_key_value_heads": 2, "vocab_size": 10, "max_position_embeddings": 8, "hidden_act": "silu"})"},
      {"pipedream",
       "1 -- Conv2d(3, 4) -- forward_compute_time=1.5, backward_compute_time=2.5, activation_size=[8.0; "
       "4.0], parameter_size=4.0 -- stage_id=1\n2 -- Add -- forward_compute_time=0, backward_compute_time=0, "
       "activation_size=1e3, parameter_size=0\n\t1 -- 2\n"}};
  std::mt19937 random(7);
  for (const ModelFormat& format : model_formats()) {
    const std::string& original = originals.at(format.name);
    for (int i = 0; i < 300; ++i) {
      std::string bytes = original;
      for (int change = 0; change < 1 + i % 3; ++change) {
        bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
      }
      INFO(format.name << " " << i);
      CHECK_NOTHROW(test::error_of([&] { format.read(bytes, "noise", {}); }));
    }
  }
}

} // namespace
} // namespace stagecraft
