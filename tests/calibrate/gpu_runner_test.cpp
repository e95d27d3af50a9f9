// Whole runs of the harness for GPUs, on a runtime without a device.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "sim/base/format/yaml.hpp"
#include "sim/base/system/file.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "tests/calibrate/fake_cuda.hpp"
#include "tests/calibrate/fresh_file.hpp"
#include "tests/catch.hpp"

#include "calibrate/gpu/check/check.hpp"
#include "calibrate/gpu/device/sampler.hpp"
#include "calibrate/gpu/output/unended.hpp"
#include "calibrate/gpu/probe.hpp"
#include "calibrate/gpu/runner.hpp"

namespace stagecraft::gpu {
namespace {

namespace fs = std::filesystem;

Options options_of(const std::string& path) {
  Options options;
  options.out = path;
  options.budget = 60;
  return options;
}

Group group_of(const std::string& name, std::vector<Point> points, int processors = 0) {
  return {name, "", 1, std::move(points), processors};
}

KernelPoint kernel(const std::string& text, Regime regime = Regime::burst) { return {parse_kernel(text), regime}; }

// The median of the row that begins with an identity, in seconds.
double median_of(const std::string& path, const std::string& section, const std::string& identity) {
  const std::string text = read_file(path), front = "  - {" + identity + ", median: ";
  const std::size_t at = text.find(front, text.find("\n" + section + ":"));
  if (at == std::string::npos) {
    return -1;
  }
  const std::size_t begin = at + front.size();
  return parse_quantity<Seconds>(text.substr(begin, text.find(',', begin) - begin), {path, 1, 1}).value;
}

const std::atomic<bool> kGoOn{false};

const std::vector<Group>& groups() {
  static const std::vector<Group> kGroups = {
      group_of("launch", {kernel("launch forward fp32"), kernel("launch forward fp32", Regime::graph),
                          kernel("launch forward fp32", Regime::event)}),
      group_of("gemm", {kernel("gemm backward-weight bf16 batch=1 m=2000 n=2000 k=1000")}),
      group_of("elementwise", {kernel("gelu forward bf16 rows=1000 columns=2000"),
                               kernel("gelu forward bf16 rows=1000 columns=2000", Regime::warm),
                               kernel("relu backward-weight bf16 rows=1000 columns=2000")}),
      group_of("copies", {CopyPoint{End::host, End::device, true, false, 1 << 20},
                          CopyPoint{End::device, End::host, false, false, 1 << 20},
                          CopyPoint{End::device, End::device, true, false, 4096},
                          CopyPoint{End::host, End::device, true, true, 1 << 20}}),
      group_of("partitions",
               {kernel("gelu forward bf16 rows=1000 columns=2000"),
                kernel("gelu forward bf16 rows=1000 columns=2000", Regime::contended)},
               16),
  };
  return kGroups;
}

TEST_CASE("a run measures every point and writes what the runtime's clocks say", "[gpu][runner]") {
  const std::string path = test::fresh_file("run.yaml"), part = partition_path(path, 16);
  std::remove(part.c_str());
  fake::state() = {};
  REQUIRE(run_sweep(options_of(path), groups(), kGoOn) == Ended::done);

  const std::string launch = "op: launch, pass: forward, precision: fp32, shape: {}";
  CHECK(median_of(path, "measured", launch) == Approx(fake::kEmpty));
  CHECK(median_of(path, "measured", launch + ", regime: graph") == Approx(fake::kEmpty / 2));
  CHECK(median_of(path, "measured", launch + ", regime: event") == Approx(fake::kEmpty));
  CHECK(median_of(path, "measured",
                  "op: gemm, pass: backward-weight, precision: bf16, shape: {batch: 1, m: 2000, n: 2000, k: 1000}") ==
        Approx(4e9 / fake::kProductRate));
  CHECK(read_file(path).find("variant: \"tile 1, stages 6, split-k 2, waves 1.5\"") != std::string::npos);
  const std::string gelu = "op: gelu, pass: forward, precision: bf16, shape: {rows: 1000, columns: 2000}";
  const double cells = 1000 * 2000;
  CHECK(median_of(path, "measured", gelu) == Approx(cells / fake::kKernelRate));
  CHECK(median_of(path, "measured", gelu + ", regime: warm") == Approx(cells / fake::kKernelRate));
  const double copied = (1 << 20) / fake::kCopyRate;
  CHECK(median_of(path, "copies", "from: host, to: device, memory: pinned, size: 1 MiB") == Approx(copied));
  CHECK(median_of(path, "copies", "from: device, to: host, memory: pageable, size: 1 MiB") == Approx(copied));
  CHECK(median_of(path, "copies", "from: host, to: device, memory: pinned, both_ways: true, size: 1 MiB") ==
        Approx(copied));

  const yaml::Node document = yaml::load(path);
  yaml::Map map(document, "measurements");
  CHECK(map.boolean("complete", false));
  CHECK(yaml::Map(map.node("device"), "device").text("name") == "fake-80gb");
  CHECK(map.node("method").find("left_out_1") != nullptr); // among them relu's backward-weight
  CHECK(read_file(path).find("elementwise: 1 point: no kernel for this pass") != std::string::npos);

  CHECK(read_measurements(document).measured.size() == 6);

  const yaml::Node partition = yaml::load(part);
  yaml::Map of_partition(partition, "measurements");
  yaml::Map device(of_partition.node("device"), "device");
  CHECK(device.text("name") == "fake-80gb-sm16");
  CHECK(device.text("kind") == "gpu-partition");
  CHECK(device.integer("processors", 1, 200) == 16);
  CHECK(read_measurements(partition).measured.size() == 2);
  CHECK(of_partition.boolean("complete", false));
}

TEST_CASE("launches of the host, interference and power are measured, or left out with the reason", "[gpu][runner]") {
  const std::string path = test::fresh_file("beside.yaml");
  fake::state() = {};
  fake::state().refuses_fp8 = true;
  const Kernel gelu = parse_kernel("gelu forward bf16 rows=1000 columns=2000");
  const std::vector<Group> some = {
      group_of("launch", {HostPoint{HostOp::launch, 1, 2, 0}, HostPoint{HostOp::launch, 2, 2, 0},
                          HostPoint{HostOp::event, 1, 2, 0}, HostPoint{HostOp::graph, 1, 1, 10}}),
      group_of("gemm", {kernel("gemm forward fp8 batch=1 m=32 n=32 k=32")}),
      group_of("interference", {InterferencePoint{gelu, Beside::both_ways}, InterferencePoint{gelu, Beside::blocks_8}}),
      group_of("power", {PowerPoint{PowerState::blocked, {}}}),
  };
  REQUIRE(run_sweep(options_of(path), some, kGoOn) == Ended::done);
  fake::state() = {};

  const Measurements read = read_measurements(yaml::load(path));
  REQUIRE(read.host.size() == 4);
  CHECK(read.host[1].threads == 2);
  CHECK(read.host[1].call.has_value());
  CHECK(read.host[3].nodes == 10);
  REQUIRE(read.interference.size() == 1);
  CHECK(read.interference[0].beside == "both-ways");
  const double alone = 1000 * 2000 / fake::kKernelRate; // nothing interferes on this runtime
  CHECK(read.interference[0].alone.value == Approx(alone));
  CHECK(read.interference[0].time.median.value == Approx(alone));
  CHECK(read.interference[0].rate_alone.value > 0);

  const std::string text = read_file(path);
  CHECK(text.find("gemm: 1 point: cuBLASLt knows no algorithm for this product") != std::string::npos);
  CHECK(text.find("interference: 1 point: nothing was copied beside the kernel") != std::string::npos);
  CHECK(text.find("power: 1 point: the driver does not give the power") != std::string::npos);
}

TEST_CASE("a check finds kernels that compute nothing, and products that are right", "[gpu][check]") {
  fake::state() = {};
  Session session(0, {});
  std::vector<std::string> lines;
  const Checked checked =
      check_kernels(session, make_stream().get(), [&](const std::string& line) { lines.push_back(line); });
  const auto said = [&](const std::string& front) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.compare(0, front.size(), front) == 0; });
  };
  CHECK(said("right  gemm forward fp32") == 1); // this runtime multiplies in fp32, and computes nothing else
  CHECK(said("right  gemm backward-input fp32") == 1);
  CHECK(said("right  gemm backward-weight fp32") == 1);
  CHECK(said("WRONG  swiglu forward fp32") == 3);
  CHECK(said("WRONG  rms-norm backward-input fp32") == 3);
  CHECK(checked.right + checked.wrong + checked.left_out == static_cast<int>(lines.size()));
  CHECK(checked.left_out == 0);
}

TEST_CASE("a probe says what can be used, and of what is missing why", "[gpu][check]") {
  fake::state() = {};
  const Session session(0, {});
  const std::vector<std::string> lines = probe(session);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0].find("132 multiprocessors") != std::string::npos);
  CHECK(lines[2] == "cuBLASLt: found"); // that of the tests
  CHECK(lines[3].find("cuDNN: ") == 0);
  CHECK(lines[4].find("NVML: libnvidia-ml") == 0); // there is no driver here
  CHECK(lines[5] == "parts of the device: of 8 multiprocessors beside 120 others");
}

TEST_CASE("sentinels are measured at the start, in the middle and at the end", "[gpu][runner]") {
  const std::string path = test::fresh_file("sentinels.yaml");
  REQUIRE(run_sweep(options_of(path), groups(), kGoOn) == Ended::done);
  const std::string text = read_file(path);
  for (const char* when : {"start", "middle", "end"}) {
    for (const Kernel& kernel : sentinels()) {
      CHECK(text.find("{when: " + std::string(when) + ", kernel: \"" + to_text(kernel) + "\"") != std::string::npos);
    }
  }
}

TEST_CASE("a run that goes on measures only what is missing", "[gpu][runner]") {
  const std::string path = test::fresh_file("again.yaml");
  fake::state() = {};
  const std::vector<Group> first = {group_of("elementwise", {kernel("gelu forward bf16 rows=10 columns=20")})};
  run_sweep(options_of(path), first, kGoOn);
  const int once = fake::state().kernels;
  run_sweep(options_of(path), first, kGoOn);
  const int of_sentinels = fake::state().kernels - once;
  CHECK(of_sentinels < once); // the copy sentinel alone
  const std::vector<Group> more = {group_of(
      "elementwise", {kernel("gelu forward bf16 rows=10 columns=20"), kernel("add forward bf16 rows=10 columns=20")})};
  run_sweep(options_of(path), more, kGoOn);
  CHECK(yaml::load(path).find("measured")->items.size() == 2);
}

TEST_CASE("a run that is stopped leaves a file that is not complete", "[gpu][runner]") {
  const std::string path = test::fresh_file("stopped.yaml");
  const std::atomic<bool> stop{true};
  CHECK(run_sweep(options_of(path), groups(), stop) == Ended::interrupted);
  CHECK(yaml::load(path).find("complete") == nullptr);
}

TEST_CASE("a point that fails is left out with the reason, and the others go on", "[gpu][runner]") {
  const std::string path = test::fresh_file("failing.yaml");
  fake::state() = {};
  fake::state().refused_copy = 4096;
  REQUIRE(run_sweep(options_of(path), groups(), kGoOn) == Ended::done);
  fake::state() = {};
  CHECK(yaml::load(path).find("copies")->items.size() == 3);
  CHECK(read_file(path).find("copies: 1 point: ") != std::string::npos);
}

TEST_CASE("a point that an earlier run did not end is left out, and what comes after it is measured", "[gpu][runner]") {
  const std::string path = test::fresh_file("unended.yaml"), unended = path + ".unended";
  const std::string point = "elementwise 0: gelu forward bf16 rows=10 columns=20";
  write_file(unended, point + "\n");
  const std::vector<Group> some = {group_of(
      "elementwise", {kernel("gelu forward bf16 rows=10 columns=20"), kernel("add forward bf16 rows=10 columns=20")})};
  REQUIRE(run_sweep(options_of(path), some, kGoOn) == Ended::done);
  CHECK(yaml::load(path).find("measured")->items.size() == 1);
  CHECK(read_file(path).find("did not end in an earlier run: gelu forward bf16 rows=10 columns=20") !=
        std::string::npos);
  CHECK(read_file(unended) == point + "\n");
  const Unended twice(path);
  CHECK_FALSE(twice.has("elementwise 0: gelu forward bf16 rows=11 columns=20"));
  write_file(unended, point + "\nelementwise 0: gelu forward bf16 rows=30 columns=20\n");
  CHECK(Unended(path).has("elementwise 0: gelu forward bf16 rows=11 columns=20")); // no size of it works
  CHECK_FALSE(Unended(path).has("elementwise 0: gelu forward fp32 rows=11 columns=20"));
  std::remove(unended.c_str());
  REQUIRE(run_sweep(options_of(path), some, kGoOn) == Ended::done);
  CHECK(yaml::load(path).find("measured")->items.size() == 2);
  CHECK_FALSE(fs::exists(unended));
}

TEST_CASE("without time, points are counted as left out", "[gpu][runner]") {
  const std::string path = test::fresh_file("hurried.yaml");
  Options options = options_of(path);
  options.budget = 1;
  REQUIRE(run_sweep(options, groups(), kGoOn) == Ended::done);
  CHECK(read_file(path).find("launch: 3 points: no time left") != std::string::npos);
}

TEST_CASE("links between devices are measured one way and both ways at once", "[gpu][runner]") {
  const std::string path = test::fresh_file("peers.yaml");
  fake::state() = {};
  fake::state().devices = 2;
  const std::vector<Group> peers = {group_of("peers", {CopyPoint{End::device, End::peer, true, false, 1 << 20},
                                                       CopyPoint{End::device, End::peer, true, true, 1 << 20}})};
  REQUIRE(run_sweep(options_of(path), peers, kGoOn) == Ended::done);
  fake::state() = {};
  const double copied = (1 << 20) / fake::kCopyRate;
  CHECK(median_of(path, "copies", "from: device, to: peer, size: 1 MiB") == Approx(copied));
  CHECK(median_of(path, "copies", "from: device, to: peer, both_ways: true, size: 1 MiB") == Approx(copied));
}

TEST_CASE("all memory of a run is given back", "[gpu][runner]") {
  fake::state() = {};
  run_sweep(options_of(test::fresh_file("memory.yaml")), groups(), kGoOn);
  CHECK(fake::state().allocations == 0);
}

TEST_CASE("partitions have files of their own beside the device's", "[gpu][runner]") {
  CHECK(partition_path("out/h200.yaml", 16) == "out/h200.sm16.yaml");
  CHECK(partition_path("out.d/h200", 8) == "out.d/h200.sm8");
}

} // namespace
} // namespace stagecraft::gpu
