// A short run on this processor: what it writes can be read, and it continues where it ended. No time is asserted.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include "sim/base/system/file.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "tests/calibrate/fresh_file.hpp"
#include "tests/catch.hpp"

#include "calibrate/cpu/measure_kernels.hpp"

namespace stagecraft::cpu {
namespace {

namespace fs = std::filesystem;

Sampling hasty() {
  Sampling sampling;
  sampling.rule.least = sampling.rule.least_slow = 1;
  sampling.rule.seconds = 0;
  sampling.least_sample = 0;
  return sampling;
}

std::vector<gpu::Group> small_sweep() {
  return plan_sweep({"launch"}, {gpu::parse_kernel("gemm forward fp32 batch=1 m=8 n=8 k=8"),
                                 gpu::parse_kernel("relu backward-input fp32 rows=4 columns=4"),
                                 gpu::parse_kernel("gemm forward bf16 batch=1 m=8 n=8 k=8")});
}

TEST_CASE("every point of the sweep is a line of its own, in fp32 and of bounded work", "[cpu]") {
  std::set<std::string> seen;
  for (const gpu::Group& group : plan_sweep({}, {})) {
    CHECK_FALSE(group.points.empty());
    for (const gpu::Point& point : group.points) {
      CHECK(seen.insert(group.name + gpu::identity(point)).second);
      if (const auto* kernel = std::get_if<gpu::KernelPoint>(&point)) {
        CHECK(kernel->kernel.precision == gpu::Precision::fp32);
        CHECK(gpu::flops_of(kernel->kernel) <= 2.5e9);
      }
    }
  }
  CHECK(seen.size() > 500);
  CHECK_THROWS_WITH(plan_sweep({"gem"}, {}), Catch::Contains("unknown group 'gem'; allowed: launch, gemm"));
}

TEST_CASE("each prefix of the products spans all passes and sizes", "[cpu]") {
  const std::vector<gpu::Group> sweep = plan_sweep({"gemm"}, {});
  std::set<std::pair<int, std::int64_t>> seen;
  for (std::size_t i = 0; i < 60; ++i) {
    const gpu::Kernel& kernel = std::get<gpu::KernelPoint>(sweep[0].points[i]).kernel;
    seen.insert({static_cast<int>(kernel.pass), kernel.shape[1] > 256 ? 1 : 0});
  }
  CHECK(seen.size() == 6);
}

TEST_CASE("a run writes a readable file, and the next run measures only what is left", "[cpu]") {
  const std::string path = test::fresh_file("-cpu.yaml");
  SweepOptions options;
  options.sampling = hasty();
  Device device({.name = "cpu-test"});
  {
    gpu::MeasurementFile file(path, device.header());
    std::vector<std::string> remarks;
    options.remark = [&](const std::string& text) { remarks.push_back(text); };
    run_sweep(small_sweep(), device, file, options);
    CHECK(remarks == std::vector<std::string>{"shapes: 1 points: the processor computes in fp32 here"});
    options.remark = {};
  }
  const Measurements read = read_measurements(yaml::load(path));
  CHECK(read.device.kind == "cpu");
  CHECK(read.device.processors == 1);
  REQUIRE(read.measured.size() == 3); // two shapes and the empty task
  CHECK(to_text(read.measured[0].kernel) == "gemm forward fp32 batch=1 m=8 n=8 k=8");
  CHECK(read.measured[0].variant.find(best_routines().instructions) != std::string::npos);
  CHECK(read.sentinels.size() == 6);

  // A run that was killed leaves a file without an end; a new run keeps what is there.
  const std::string whole = read_file(path);
  const std::size_t second = whole.find("  - {op: relu");
  write_file(path, whole.substr(0, second) + "  - {op: relu, pass: backw");
  gpu::MeasurementFile file(path, device.header());
  CHECK(file.size() == 1);
  run_sweep(small_sweep(), device, file, options);
  const Measurements again = read_measurements(yaml::load(path));
  REQUIRE(again.measured.size() == 3);
  CHECK(again.measured[0].time.median == read.measured[0].time.median);
  fs::remove(path);
}

TEST_CASE("a run ends in time and says what it left out", "[cpu]") {
  const std::string path = test::fresh_file("-cpu-short.yaml");
  Device device({.name = "cpu-test"});
  gpu::MeasurementFile file(path, device.header());
  SweepOptions options;
  options.sampling = hasty();
  double clock = 0;
  options.now = [&] { return clock += 0.05; }; // each look at the clock takes so long
  options.budget = 2;
  run_sweep(plan_sweep({"attention", "copies"}, {}), device, file, options);
  CHECK(clock < 20); // a look for each of the points left out, too
  const std::string text = read_file(path);
  CHECK(text.find("points: no time left") != std::string::npos);
  CHECK(read_measurements(yaml::load(path)).measured.size() > 2);
  fs::remove(path);
}

TEST_CASE("a run does not continue the file of another device", "[cpu]") {
  const std::string path = test::fresh_file("-cpu-other.yaml");
  Device device({.name = "cpu-test"}), other({.name = "cpu-other"});
  gpu::MeasurementFile(path, device.header()).finish(1);
  CHECK_THROWS_WITH(gpu::MeasurementFile(path, other.header()), Catch::Contains("another device"));
  fs::remove(path);
}

} // namespace
} // namespace stagecraft::cpu
