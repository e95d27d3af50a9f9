// stagecraft calibrate: from tables to a device file, its predictions, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/base/units.hpp"
#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

// Products on a device of 500 TFLOP/s, 2 TB/s and 4 us per launch.
std::string table(const std::vector<int>& sizes) {
  std::string text = "m,n,k,latency_ms\n";
  for (const double m : sizes) {
    for (const double n : sizes) {
      for (const double k : sizes) {
        const double seconds = 4e-6 + 2 * m * n * k / 500e12 + 2 * (m * n + m * k + n * k) / 2e12;
        text += std::to_string(static_cast<int>(m)) + "," + std::to_string(static_cast<int>(n)) + "," +
                std::to_string(static_cast<int>(k)) + "," + std::to_string(seconds * 1e3) + "\n";
      }
    }
  }
  return text;
}

TEST_CASE("a table is fitted into a device file, which predicts another", "[cli][calibrate]") {
  const Workshop shop;
  shop.write("known.csv", table({128, 512, 1024, 2048, 4096, 8192}));
  shop.write("other.csv", table({300, 3000}));
  const Outcome fit = shop.succeed("calibrate fit --device h100-sxm-80gb --gemm known.csv --hold-out 0.2 -o mine.yaml");
  CHECK_THAT(fit.out, Contains("gemm/forward/bf16"));
  CHECK_THAT(fit.out, Contains("held out, 20 %"));
  // Without a file, JSON has the fits; the device file itself is what stands there otherwise.
  const std::string fit_again = "calibrate fit --device h100-sxm-80gb --gemm known.csv --hold-out 0.2";
  CHECK(shop.succeed(fit_again + " --format json").json()["fits"][0]["fit"] == "gemm/forward/bf16");
  CHECK_THAT(shop.succeed(fit_again + " -o -").out, Contains("name: h100-sxm-80gb\n") && Contains("\nfits:\n"));
  const Json predicted = shop.succeed("calibrate predict mine.yaml --gemm other.csv --format json").json();
  REQUIRE(predicted["rows"].size() == 8);
  double sum = 0;
  for (const Json& row : predicted["rows"]) {
    CHECK(row["error"].get<double>() ==
          Catch::Detail::Approx(row["predicted"].get<double>() / row["measured"].get<double>() - 1).margin(1e-12));
    sum += std::abs(row["error"].get<double>()) / 8;
  }
  CHECK(predicted["mape"].get<double>() == Catch::Detail::Approx(sum));
  CHECK(sum < 0.03);
  CHECK_THAT(shop.succeed("calibrate predict mine.yaml --gemm other.csv").out, Contains("MAPE"));
  const Json shown = shop.succeed("calibrate show mine.yaml --format json").json();
  CHECK(shown["fits"][0]["fit"] == "gemm/forward/bf16");
  CHECK_THAT(shop.succeed("show mine.yaml").out, Contains("mine"));
}

TEST_CASE("measurements of one's own are compared with a device file, kind by kind", "[cli][calibrate]") {
  const Workshop shop;
  shop.write("mine.yaml",
             "schema: stagecraft-measurements/1\n"
             "device: {name: mine, vendor: nvidia, kind: gpu, memory: 80 GiB}\n"
             "measured:\n"
             "  - {op: gemm, pass: forward, precision: bf16, shape: {batch: 1, m: 4096, n: 4096, k: 4096}, "
             "median: 200 us}\n"
             "  - {op: gemm, pass: forward, precision: bf16, shape: {batch: 1, m: 4096, n: 4096, k: 4096}, "
             "median: 250 us, regime: sustained}\n"
             "  - {op: gelu, pass: forward, precision: bf16, shape: {rows: 4096, columns: 4096}, "
             "median: 30 us}\ncomplete: true\n");
  const std::string command = "calibrate predict h100-sxm-80gb --measured mine.yaml";
  const Json predicted = shop.succeed(command + " --format json").json();
  REQUIRE(predicted["rows"].size() == 2); // the sustained one is of a hot device
  CHECK(predicted["inputs"].size() == 2);
  CHECK(predicted["rows"][0]["measured"].get<double>() == Catch::Detail::Approx(2e-4));
  CHECK_THAT(shop.succeed(command).out, Contains("gemm forward bf16") && Contains("gelu forward bf16"));
}

// Two products of 256 features.
const std::string kTwoProducts = "name: two\ninput: {shape: [64, 256]}\nlayers:\n"
                                 "  - {name: l0, kind: linear, features: 256, bias: false}\n"
                                 "  - {name: l1, kind: linear, features: 256, bias: false}\n";
const std::string kHere = "name: mine\ndevice_types: [here.yaml]\nnodes:\n  - name: node\n"
                          "    host: {cores: 2, core_speed: 40 GFLOP/s, memory: 64 GiB, memory_bandwidth: 40 GB/s, "
                          "disk_bandwidth: 1 GB/s, power: {idle: 0 W, core_busy: 0 W, core_spin: 0 W}}\n"
                          "    devices: [{type: here, count: 2}]\n"
                          "    links: [{kind: host-link, bandwidth: 10 GB/s, latency: 1 us}]\n";

TEST_CASE("simulations take what is measured here: calibrate, fit, replay, compare", "[cli][calibrate]") {
  const Workshop shop;
  shop.write("two.yaml", kTwoProducts);
  shop.write("mine.yaml", kHere);
  const std::string batch = " --set training.global_batch=8 --set training.optimizer=sgd ";
  shop.succeed("export shapes two.yaml --platform pcie-v100 --micro-batches 4 -o shapes.txt" + batch);
  shop.succeed(
      "calibrate --backend cpu --budget 20 --groups launch,copies --shapes shapes.txt --name here -o measured.yaml");
  CHECK_THAT(shop.succeed("calibrate fit measured.yaml -o here.yaml").out, Contains("gemm/forward/fp32"));
  // The median of the forward product, as the file of measurements has it.
  const std::string measured = shop.read("measured.yaml");
  const std::size_t row = measured.find("op: gemm, pass: forward"), at = measured.find("median: ", row) + 8;
  REQUIRE(row != std::string::npos);
  const double forward = parse_quantity<Seconds>(measured.substr(at, measured.find(',', at) - at), {}).value;
  const Json run =
      shop.succeed("replay two.yaml --platform mine.yaml --strategy uniform --schedule 1f1b --micro-batches 4 "
                   "--cost-model calibrated --timeline --format json" +
                   batch)
          .json();
  int passes = 0;
  for (const Json& event : run["timeline"]["traceEvents"]) {
    if (event.value("cat", "") == "forward") { // a trace counts in microseconds, to nanoseconds
      CHECK(event["dur"].get<double>() * 1e-6 == Catch::Detail::Approx(forward).margin(1e-9));
      ++passes;
    }
  }
  CHECK(passes > 0);
  shop.write("study.yaml", "name: here\nmodel: two.yaml\nplatform: mine.yaml\ncost_model: calibrated\n"
                           "training: {global_batch: 8, micro_batches: 4, optimizer: sgd}\n"
                           "compare: {strategies: [single, uniform, optimal], schedules: [gpipe, 1f1b]}\n");
  // Two schedules each: `single` with 1, 2, 4 and 8 micro-batches, the others with the 4 that the study lists.
  CHECK(shop.succeed("compare study.yaml --format json").json()["runs"].size() == 2 * (4 + 1 + 1));
}

TEST_CASE("calibrate --workload goes on where it was cut off", "[cli][calibrate]") {
  const Workshop shop;
  shop.write("two.yaml", kTwoProducts);
  const std::string part =
      "schema: stagecraft-measurements/1\ndevice: {name: here, vendor: a, kind: cpu, memory: 1 GiB}\nmeasured:\n"
      "  - {op: gemm, pass: forward, precision: fp32, shape: {batch: 1, m: 128, n: 256, k: 256}, median: 7.25 s}\n";
  shop.write("profile.yaml.part", part);
  const std::string command = "calibrate --workload two.yaml --micro-batches 2 --name here -o profile.yaml";
  CHECK_THAT(shop.succeed(command).err, Contains("goes on: 1 measured already, in profile.yaml.part"));
  CHECK_THAT(shop.read("profile.yaml"), Contains("forward_time: [7.25 s]")); // 2 samples of 64 rows: not measured again
  CHECK(shop.files() == 2);
  // A kernel that cannot run ends the second run: what it measured before stays, and the next goes on from there.
  shop.write("large.yaml", kTwoProducts + "  - {name: l2, kind: linear, features: 900000000, bias: false}\n");
  const std::string large = "calibrate --workload large.yaml --micro-batches 2 --name here -o large-profile.yaml";
  CHECK_THAT(shop.run(large).err, Contains("cannot run here"));
  CHECK_THAT(shop.read("large-profile.yaml.part"), Contains("op: gemm, pass: forward"));
  CHECK_THAT(shop.run(large).err, Contains("goes on: "));
  shop.write("profile.yaml.part", part);
  CHECK_THAT(shop.run("calibrate --workload two.yaml --name there -o profile.yaml").err,
             Contains("profile.yaml.part:2: measured on another device"));
}

TEST_CASE("calibrate --workload keeps the times that a model has of other devices", "[cli][calibrate]") {
  const Workshop shop;
  const auto model = [](const std::string& precision) {
    return "name: m\ninput: {shape: [4, 16]}\nprofile: {device: far, samples: [1, 3], precision: " + precision +
           "}\nlayers:\n  - {name: l, kind: linear, features: 16, bias: false, forward_time: [1 s, 3 s], "
           "backward_time: [2 s, 6 s]}\n";
  };
  shop.write("far.yaml", model("fp32"));
  shop.succeed("calibrate --workload far.yaml --micro-batches 2 --name here -o both.yaml");
  const std::string shown = shop.succeed("show both.yaml").out;
  CHECK_THAT(shown, Contains("measured on far with 1 samples: forward 1.000 s, backward 2.000 s"));
  CHECK_THAT(shown, Contains("measured on far with 3 samples: forward 3.000 s, backward 6.000 s"));
  CHECK_THAT(shown, Contains("measured on here with 2 samples"));
  // Measured again on a device of that name, its old times go.
  shop.succeed("calibrate --workload far.yaml --micro-batches 2 --name far -o again.yaml");
  CHECK_THAT(shop.succeed("show again.yaml").out, Contains("on far with 2 samples") && !Contains("with 3 samples"));
  shop.write("half.yaml", model("fp16"));
  const Outcome half = shop.succeed("calibrate --workload half.yaml --micro-batches 2 --name here -o alone.yaml");
  CHECK_THAT(half.err, Contains("the model's own times on far are left out"));
  CHECK_THAT(shop.succeed("show alone.yaml").out, Contains("measured on here") && !Contains("measured on far"));
}

TEST_CASE("calibrate refuses what it cannot use, with the place", "[cli][calibrate]") {
  const Workshop shop;
  shop.write("bad.csv", "m,n,k,latency_ms\n1,1,1,-1\n");
  shop.write("cut.yaml",
             "schema: stagecraft-measurements/1\ndevice: {name: a, vendor: b, kind: cpu, memory: 1 GiB}\nmeasured:\n"
             "  - {op: launch, precision: fp32, shape: {}, median: 4 us}\n");
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = shop.run("calibrate " + arguments);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains(why));
  };
  refused("fit --device h100-sxm-80gb --gemm bad.csv", "bad.csv:2:7: ");
  refused("fit cut.yaml -o out.yaml", "cut.yaml:4:");
  refused("fit --gemm bad.csv", "allowed: --device");
  refused("fit --device h100-sxm-80gb", "nothing to fit");
  refused("predict h100-sxm-80gb", "no measured times");
  refused("predict h100-sxm-80bg --gemm bad.csv", "'h100-sxm-80gb'");
  refused("--threads 2 fit cut.yaml", "--threads before an action does nothing");
  refused("predict h100-sxm-80gb show h100-sxm-80gb", "show");
  CHECK(shop.files() == 2);
}

} // namespace
} // namespace stagecraft::test
