// Output of nccl-tests as files of measurements.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft::foreign {
namespace {

using test::error_of;

ForeignOptions with_device() {
  ForeignOptions options;
  options.device.emplace();
  options.device->name = "h100-sxm-80gb";
  options.device->vendor = "nvidia";
  options.device->memory = Bytes{80e9};
  return options;
}

Measurements imported(const std::string& text, const ForeignOptions& options = with_device()) {
  return read_measurements(yaml::parse(import_nccl_tests(text, "run.txt", options).text, "imported"));
}

std::string error(const std::string& text, const ForeignOptions& options = with_device()) {
  return error_of([&] { import_nccl_tests(text, "run.txt", options); });
}

const std::string kHeader =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
    "algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)\n";
const std::string kFour =
    "# nccl-tests version 2.17.4 nccl-headers=22803 nccl-library=22803\n"
    "# Collective test starting: ./build/all_reduce_perf\n"
    "# nThread 1 nGpus 4 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 "
    "agg iters: 1 validation: 1 graph: 0\n#\n" +
    kHeader;
// 1 MiB in 50 us are 20.97 GB/s, times 2 * 3 / 4 on the bus.
const std::string kRow =
    "     1048576        262144     float     sum      -1    50.00   20.97   31.46       0    40.00   "
    "26.21   39.32     N/A\n";

TEST_CASE("every size of nccl-tests is a collective out of place and one in place", "[foreign][nccl]") {
  const Measurements read = imported(kFour + kRow + "# Out of bounds values : 0 OK\n# Avg bus bandwidth : 35.4\n");
  CHECK(read.device.name == "h100-sxm-80gb");
  CHECK(read.measured.empty());
  REQUIRE(read.collectives.size() == 2);
  for (const bool in_place : {false, true}) {
    const MeasuredCollective& row = read.collectives[in_place ? 1 : 0];
    CHECK(row.op == "all-reduce");
    CHECK(row.devices == 4);
    CHECK(row.size.value == 1 << 20);
    CHECK(row.in_place == in_place);
    CHECK(row.time.median.value == Approx(in_place ? 40e-6 : 50e-6));
    CHECK(row.time.samples == 20);
  }
}

TEST_CASE("fit finds latency and bandwidth in times of nccl-tests", "[foreign][nccl]") {
  std::string text = kFour;
  for (int power = 10; power <= 24; ++power) { // 20 us + 10 ps a byte
    const double bytes = 1 << power, time = 20 + bytes * 1e-5;
    const std::string part = " " + to_text(time, 2) + " " + to_text(bytes / time / 1e3, 2) + " " +
                             to_text(bytes / time / 1e3 * 1.5, 2) + " 0";
    text += to_text(bytes, 0) + " " + to_text(bytes / 4, 0) + " float sum -1" + part + part + "\n";
  }
  fit::FitInput input;
  fit::add(input, imported(text));
  const KernelFits fits = fit::fit_device(input, *with_device().device, 1, {});
  REQUIRE(fits.collectives.size() == 1);
  CHECK(fits.collectives[0].line.time(3 << 20).value == Approx(20e-6 + (3 << 20) * 1e-11).epsilon(0.01));
  CHECK(fits.collectives[0].line.time(2048).value == Approx(20e-6).epsilon(0.01));
}

TEST_CASE("ranks are those of the first group that are listed, else threads times GPUs", "[foreign][nccl]") {
  const auto rank = [](int index, int group, const char* host) {
    return "#  Rank  " + std::to_string(index) + " Group  " + std::to_string(group) + " Pid   6899 on " + host +
           " device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n";
  };
  const std::string one =
      "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 iters: 20\n# Using devices\n";
  const std::string two = rank(0, 0, "a") + rank(1, 0, "a") + rank(0, 1, "a") + rank(1, 1, "a");
  // Of 2 ranks the bus bandwidth is the algorithm's: 2 * 1 / 2.
  const std::string row = "1048576 262144 float sum -1 50.00 20.97 20.97 0 50.00 20.97 20.97 0\n";
  const Measurements read = imported(one + two + kHeader + row);
  CHECK(read.collectives.front().devices == 2);
  CHECK(read.device.description == "NVIDIA H100 80GB HBM3");
  CHECK(error(one + kHeader + row) ==
        "run.txt:1:1: a collective of 1 rank; allowed: 2 or more, --ranks N where the file "
        "does not list them");
  ForeignOptions options = with_device();
  options.ranks = 2;
  CHECK(imported(one + kHeader + row, options).collectives.front().devices == 2);
  CHECK(error(one + rank(0, 0, "a") + rank(1, 0, "b") + kHeader + row) ==
        "run.txt:1:1: 2 ranks on 2 hosts: a, b; allowed: one host, as a device file holds collectives within a node");
}

// Their product, the ranks of a process, once left the numbers that a count can hold.
TEST_CASE("a process has at most 1024 threads and 1024 devices", "[foreign][nccl]") {
  const auto started = [](const std::string& threads, const std::string& devices) {
    return "# Collective test starting: all_reduce_perf\n# nThread " + threads + " nGpus " + devices + " iters: 20\n" +
           kHeader + kRow;
  };
  const std::string most = "an integer in [1, 1024]";
  CHECK(error(started("1025", "1")).find(most) != std::string::npos);
  CHECK(error(started("1", "1025")).find(most) != std::string::npos);
  CHECK(error(started("1024", "1024")).find("where all-reduce of 1048576 ranks has") != std::string::npos);
}

TEST_CASE("output before 2.17 does not say which collective; its bandwidths check what is told", "[foreign][nccl]") {
  const std::string old =
      "# nThread 1 nGpus 4 minBytes 8 maxBytes 8 step: 2(factor) iters: 20 agg iters: 1\n" + kHeader;
  CHECK(error(old + kRow).find("run.txt:1:1: no line '# Collective test starting'") == 0);
  ForeignOptions options = with_device();
  options.collective = "all-reduce";
  CHECK(imported(old + kRow, options).collectives.size() == 2);
  options.collective = "all-gather"; // whose factor is 3 / 4
  CHECK(error(old + kRow, options)
            .find("run.txt:4:57: a bus bandwidth of 31.46 GB/s, where all-gather of 4 ranks has "
                  "15.73") == 0);
  options.collective = "all-reduce";
  options.ranks = 8;
  CHECK(error(old + kRow, options).find("where all-reduce of 8 ranks has 36.70") != std::string::npos);
}

TEST_CASE("lines that a job prints between the rows are skipped, but not broken rows", "[foreign][nccl]") {
  const std::string noise = "node1:55:71 [0] NCCL INFO Channel 00/16 : 0 1 2 3\n\n";
  CHECK(imported(noise + kFour + noise + kRow + noise).collectives.size() == 2);
  CHECK(error(kFour).find("run.txt:1:1: no results") == 0);
  CHECK(error("").find("run.txt:1:1: no results") == 0);
  CHECK(error(kFour + "1048576 262144 float sum -1 50.00 20.97\n") ==
        "run.txt:7:35: the line ends after 7 values; allowed: the 13 of the header");
  CHECK(error(kFour + "10x576 262144 float sum -1 50.00 20.97 31.46 0 40.00 26.21 39.32 0\n").find("run.txt:7:1: ") ==
        0);
  CHECK(error(kFour + "1048576 262144 float sum -1 50.00 20.97 31.46 3 40.00 26.21 39.32 0\n") ==
        "run.txt:7:29: 3 elements came out wrong; allowed: 0");
  CHECK(error(kFour + "1048576 262144 float sum -1 0.00 0 0 0 40.00 26.21 39.32 0\n") ==
        "run.txt:7:29: a time of 0; allowed: more than 0 us");
  CHECK(error(kRow).find("run.txt:1:6: results before the header") == 0);
  std::string launching = kFour;
  launching.replace(launching.find(" time"), 5, " cputime");
  CHECK(error(launching + kRow).find("times of the processor that launched (-C)") != std::string::npos);
}

TEST_CASE("sizes of 0 B are left out, and said", "[foreign][nccl]") {
  const std::string none = "0 0 float sum -1 4.00 0.00 0.00 0 4.00 0.00 0.00 0\n";
  const ForeignText read = import_nccl_tests(kFour + none + kRow, "run.txt", with_device());
  CHECK(read.remarks == std::vector<std::string>{"2 times of 0 B left out"});
}

TEST_CASE("a collective that device files cannot name is refused", "[foreign][nccl]") {
  std::string other = kFour + kRow;
  other.replace(other.find("all_reduce"), 10, "hypercube");
  CHECK(error(other).find("run.txt:2:29: unknown collective 'hypercube_perf'") == 0);
  CHECK(error(kFour + kRow, {}).find("--device: nccl-tests do not say how much memory the device has") == 0);
}

// As util.cu of nccl-tests writes it: each process lists one device, counts are per process.
std::string json_of(const std::string& results) {
  return R"({"version":2,"start_time":"2026-01-01 00:00:00","args":["/opt/build/all_gather_perf","-g","2"],"env":["A=b"],
"nccl_version":22803,"config":{"nthreads":1,"ngpus":2,"minimum_bytes":1048576,"maximum_bytes":1048576,"step_factor":2,
"warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,"blocking_collectives":"false",
"parallel_init":"false","devices":[
{"rank":0,"group":0,"pid":1,"hostname":"a","device":0,"device_hex":"0000:04:00","device_info":"NVIDIA H200"},
{"rank":2,"group":0,"pid":2,"hostname":"a","device":2,"device_hex":"0000:06:00","device_info":"NVIDIA H200"}]},
"results":[)" +
         results + R"(],"out_of_bounds":{"count":0,"okay":"true"},"errors":[]})";
}

TEST_CASE("JSON of nccl-tests: two processes of two GPUs are four ranks", "[foreign][nccl]") {
  // 1 MiB in 50 us, all-gather of 4: 20.971520 GB/s, times 3 / 4.
  const Measurements read = imported(json_of(
      R"({"size":1048576,"count":65536,"type":"float","redop":"none","root":"    -1","out_of_place":null,
"in_place":{"time":50.0,"alg_bw":20.971520,"bus_bw":15.728640,"nwrong":0.0},"actual_iterations":7,"experiment_name":""})"));
  REQUIRE(read.collectives.size() == 1);
  CHECK(read.collectives[0].op == "all-gather");
  CHECK(read.collectives[0].devices == 4);
  CHECK(read.collectives[0].in_place);
  CHECK(read.collectives[0].time.samples == 7);
  CHECK(read.collectives[0].time.median.value == Approx(50e-6));
  CHECK(read.device.description == "NVIDIA H200");
}

TEST_CASE("where each iteration was timed, their median and quartiles are taken", "[foreign][nccl]") {
  const Measurements read = imported(json_of(
      R"({"size":1048576,"out_of_place":{"time":60.0,"alg_bw":17.476267,"bus_bw":13.107200,"nwrong":null},
"out_of_place_per_iter":{"min_us":40.0,"times_us":[40.0,50.0,51.0,52.0,107.0]}})"));
  REQUIRE(read.collectives.size() == 1);
  const SampledTime& time = read.collectives[0].time;
  CHECK(time.median.value == Approx(51e-6));
  CHECK(time.q1->value == Approx(50e-6));
  CHECK(time.q3->value == Approx(52e-6));
  CHECK(time.least->value == Approx(40e-6));
  CHECK(time.samples == 5);
}

TEST_CASE("broken JSON of nccl-tests is refused with the path of its value", "[foreign][nccl]") {
  CHECK(error(json_of(R"({"size":1048576,"out_of_place":{"time":"x"}})")) ==
        "run.txt:7:51: results[0].out_of_place.time: must be a number of 0 or more, got \"x\"");
  CHECK(error(json_of(R"({"size":8,"in_place":{"time":9,"alg_bw":1,"bus_bw":1,"nwrong":0}})"))
            .find("run.txt:7:33: results[0].in_place: a bus bandwidth of 1.00 GB/s, where all-gather of 4 ranks has "
                  "0.75") == 0);
  CHECK(error("{").find("run.txt:1:") == 0);
}

TEST_CASE("the shipped sample of nccl-tests is read", "[foreign][nccl]") {
  const std::filesystem::path file = test::source_dir() / "../shared/samples/nccl_tests.txt";
  if (!std::filesystem::exists(file)) {
    WARN("no " << file.string());
    return;
  }
  const Measurements read = imported(read_file(file));
  REQUIRE(read.collectives.size() == 6);
  CHECK(read.collectives[5].time.median.value == Approx(97.6e-6));
}

} // namespace
} // namespace stagecraft::foreign
