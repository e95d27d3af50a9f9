// Files of measurements: read whole, or refused with the place and the reason.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

std::string with(const std::string& row, const std::string& end = "complete: true\n") {
  return "schema: stagecraft-measurements/1\ndevice: {name: d, vendor: v, kind: gpu, memory: 1 GiB}\nmeasured:\n  - {" +
         row + "}\n" + end;
}
Measurements read(const std::string& text) { return read_measurements(yaml::parse(text, "m.yaml")); }
std::string gemm(const std::string& rest) {
  return "op: gemm, precision: bf16, shape: {batch: 1, m: 128, n: 128, k: 128}, " + rest;
}

TEST_CASE("the example of the document reads", "[platform][measurements]") {
  const std::string text = read_file(test::source_dir() / "docs/formats/measurements.md");
  const std::size_t begin = text.find("```yaml\n") + 8;
  const Measurements measurements = read(text.substr(begin, text.find("```", begin) - begin));
  CHECK(measurements.device.name == "h200-sxm");
  CHECK(measurements.device.processors == 132);
  CHECK(measurements.measured.size() == 2);
  CHECK(measurements.measured[0].time.median.value == Catch::Detail::Approx(180e-6));
  CHECK(measurements.measured[1].regime == Regime::graph);
  CHECK(measurements.copies.size() == 1);
  CHECK(measurements.collectives[0].devices == 8);
  REQUIRE(measurements.host.size() == 2);
  CHECK(measurements.host[0].streams == 4);
  CHECK(measurements.host[0].call->value == Catch::Detail::Approx(1.9e-6));
  CHECK(measurements.host[1].nodes == 10);
  REQUIRE(measurements.interference.size() == 1);
  CHECK(measurements.interference[0].beside == "host-to-device");
  CHECK(measurements.interference[0].alone.value == Catch::Detail::Approx(184e-6));
  CHECK(measurements.interference[0].rate_alone.value == Catch::Detail::Approx(55e9));
  CHECK(measurements.power[2].flops.value == Catch::Detail::Approx(690e12));
  CHECK(measurements.sentinels.size() == 1);
  CHECK(measured_kernels(measurements).size() == 1); // launches by a graph are another regime
}

TEST_CASE("what events add to a kernel's time is taken off, if the file knows it", "[platform][measurements]") {
  const std::string in_graph = "}\n  - {op: launch, precision: fp32, shape: {}, median: 0.5 us, regime: graph";
  const auto time = [&](const std::string& median, const std::string& rows, const std::string& method) {
    const Measurements measurements = read(with(gemm("median: " + median) + rows, method + "complete: true\n"));
    return kernel_time(measurements, measurements.measured.front()).value * 1e6;
  };
  using Catch::Detail::Approx;
  const std::string method = "method: {timer: event, empty_kernel: 2800 ns}\n"; // 2.3 us of which are no kernel
  CHECK(time("10 us", in_graph, method) == Approx(7.7));
  CHECK(time("10 us, regime: sustained", in_graph, method) == Approx(10)); // many kernels between two events
  CHECK(time("2.4 us", in_graph, method) == Approx(0.48));                 // a fifth at least
  CHECK(time("10 us", in_graph, "") == Approx(10));
  CHECK(time("10 us", "", method) == Approx(10)); // nothing says what an empty kernel takes by itself
}

TEST_CASE("measurements that cannot be are refused with place and reason", "[platform][measurements]") {
  const auto refused = [](const std::string& text, const std::string& why) {
    INFO(text);
    CHECK_THROWS_WITH(read(text), Catch::Contains(why));
  };
  CHECK_NOTHROW(read(with(gemm("median: 10 us, q1: 9 us, q3: 11 us, least: 9 us"))));
  refused(with(gemm("median: 10 us"), ""), "m.yaml:4:84: the measurements end here without 'complete: true'");
  refused(with(gemm("median: 10 us"), "complete: false\n"), "cut off");
  refused("schema: stagecraft-measurements/2\n", "m.yaml:1:9: schema 'stagecraft-measurements/2'; allowed: "
                                                 "stagecraft-measurements/1");
  refused(with(gemm("median: -1 us")), "m.yaml:4:84: ");
  refused(with(gemm("median: 0")), "more than 0");
  refused(with(gemm("median: nan us")), "m.yaml:4:84: ");
  refused(with(gemm("median: 10 us, q1: 12 us, q3: 11 us")), "'q1' is more than 'q3'");
  refused(with(gemm("median: 10 us, q1: 11 us, q3: 12 us")), "'median' is not between 'q1' and 'q3'");
  refused(with(gemm("median: 10 us, q1: 9 us, q3: 12 us, least: 9.5 us")), "'least' is more than");
  refused(with(gemm("median: 0.01 ns")), "allowed: at most 1e17 FLOP/s");
  refused(with(gemm("median: 10 us, medain: 1 us")), "unknown key 'medain'");
  refused(with("op: gemm, precision: bf16, shape: {batch: 0, m: 1, n: 1, k: 1}, median: 1 us"), "1 to 1e12");
  refused(with("op: gemm, precision: bf16, shape: {batch: 1, m: 1.5, n: 1, k: 1}, median: 1 us"), "no whole number");
  refused(with("op: gemm, precision: bf16, shape: {batch: 1, m: 1, n: 1}, median: 1 us"), "missing key 'k'");
  refused(with("op: gem, precision: bf16, shape: {}, median: 1 us"), "unknown");
  const auto section = [](const std::string& rows) { return with(gemm("median: 10 us"), rows + "\ncomplete: true\n"); };
  CHECK_NOTHROW(read(section("launching: [{op: event, median: 1 us}]")));
  refused(section("launching: [{op: lunch, median: 1 us}]"), "unknown op 'lunch'");
  refused(section("launching: [{op: graph, median: 1 us}]"), "'nodes' goes with a graph");
  refused(section("launching: [{op: launch, nodes: 3, median: 1 us}]"), "'nodes' goes with a graph");
  refused(section("launching: [{op: launch, threads: 0, median: 1 us}]"), "'threads'");
  const auto beside = [&](const std::string& rest) {
    return section("interference: [{" + gemm("median: 10 us, alone: 9 us, beside_rate: 1 GB/s, rate_alone: " + rest) +
                   "}]");
  };
  CHECK_NOTHROW(read(beside("2 GB/s, beside: 16-blocks")));
  refused(beside("2 GB/s, beside: 17-blocks"), "unknown beside '17-blocks'");
  refused(beside("2 GB/s"), "missing key 'beside'");
  refused(beside("0 GB/s, beside: 16-blocks"), "more than 0");
  refused(with(gemm("median: 10 us"), "copies: [{from: host, to: moon, size: 1 MiB, median: 1 us}]\ncomplete: true\n"),
          "unknown to 'moon'");
  refused(
      with(gemm("median: 10 us"), "copies: [{from: host, to: device, size: 1 GiB, median: 1 ns}]\ncomplete: true\n"),
      "allowed: at most 1e15 B/s");
}

} // namespace
} // namespace stagecraft
