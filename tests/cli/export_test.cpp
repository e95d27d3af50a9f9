// stagecraft export, and plans of other tools given to check, replay and compare.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.hpp"
#include "tests/workload/onnx_builder.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::string kOn = " " + kChain + " --devices 2 --set training.global_batch=4 --micro-batches 4 ";

TEST_CASE("an exported plan is checked, replayed and exported again in every form that can say it", "[cli]") {
  const Workshop shop;
  const Json direct =
      shop.succeed("replay" + kOn + "--strategy uniform --schedule 1f1b --format json").json().at("iteration_seconds");
  for (const std::string format : {"stagecraft", "torchgpipe", "pipedream", "device-map"}) {
    shop.succeed("export " + format + kOn + "--strategy uniform -o plan");
    CHECK(shop.succeed("check plan" + kOn).out ==
          std::string("plan: a valid plan that fits\n") +
              (format == "torchgpipe" ? "plan: note: made for 4 micro-batches\n" : ""));
    CHECK(shop.succeed("replay" + kOn + "--plan plan --schedule 1f1b --format json").json().at("iteration_seconds") ==
          direct);
    CHECK(shop.succeed("export " + format + kOn + "--plan plan --plan-format " + format).out == shop.read("plan"));
  }
  const Outcome outcome = shop.run("export megatron" + kOn + "--strategy uniform");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, StartsWith("'megatron' cannot express the plan of uniform: 'chain' has no numbered blocks"));
  const Outcome config = shop.run("export nemo" + kOn + "--strategy uniform");
  CHECK(config.status == 1);
  CHECK_THAT(config.err, StartsWith("'nemo' cannot express the plan of uniform: 'chain' has no numbered blocks"));
  CHECK_THAT(shop.run("export megatorn" + kOn + "--strategy uniform").err, Contains("did you mean 'megatron'?"));
}

TEST_CASE("compare ranks plans of other tools beside ours", "[cli]") {
  const Workshop shop;
  shop.write("study.yaml", small_study());
  shop.write("balance.json", "{\"balance\": [1, 3], \"chunks\": 4}");
  shop.write("map.json", "{\"a\": \"cuda:0\", \"b\": \"cuda:1\"}");
  const Outcome outcome = shop.succeed("compare study.yaml --plan balance.json --plan map.json --all");
  CHECK_THAT(outcome.out, Contains("balance.json"));
  CHECK_THAT(outcome.out, Contains("operator 'c' is in no stage; operator 'd' is in no stage"));
  CHECK(shop.run("compare study.yaml --plan absent.json").status == 2);
}

TEST_CASE("an ONNX file needs no profile to be split and mapped onto devices", "[cli]") {
  const Workshop shop;
  OnnxBuilder onnx;
  onnx.input("x", {1, 16, 32, 32});
  std::string data = "x";
  for (int layer = 0; layer < 8; ++layer) { // one for each of the platform's devices
    const std::string number = std::to_string(layer);
    onnx.weight("w" + number, {16, 16, 3, 3});
    onnx.node("Conv", {data, "w" + number}, "c" + number).attribute("kernel_shape", {3, 3});
    onnx.attribute("pads", {1, 1, 1, 1});
    data = "r" + number;
    onnx.node("Relu", {"c" + number}, data);
  }
  shop.write("model.onnx", onnx.bytes());
  const std::string on = " model.onnx --platform v100-p100-node --set training.global_batch=8 --micro-batches 4 ";
  const Json planned = shop.succeed("plan" + on + "--strategy capability --format json").json();
  const Json map = shop.succeed("export device-map" + on + "--strategy capability").json();
  std::size_t operators = 0;
  for (const Json& stage : planned.at("stages")) {
    for (const Json& op : stage.at("operators")) {
      CHECK(map.at(op.get<std::string>()) == stage.at("devices").at(0));
      ++operators;
    }
  }
  CHECK(operators == 16);
  CHECK(map.size() == operators);
}

TEST_CASE("control bytes of a name do not reach the terminal raw", "[cli]") {
  const Workshop shop;
  shop.write("plan.yaml", "stages: [{devices: [node/profiled-0], operators: [\"\\e[31ma\"]}]\n");
  const Outcome outcome = shop.run("check plan.yaml" + kOn);
  CHECK(outcome.status == 2);
  CHECK(outcome.err.find('\x1b') == std::string::npos);
  CHECK_THAT(outcome.err, Contains("unknown operator '\\x1b[31ma'"));
}

} // namespace
} // namespace stagecraft::test
