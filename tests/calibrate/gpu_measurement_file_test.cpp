// The file that the harness for GPUs writes: what docs/formats/measurements.md says, at any moment of a run.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sim/base/format/yaml.hpp"
#include "sim/base/kernel/kernel.hpp"
#include "sim/base/system/file.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "tests/calibrate/fresh_file.hpp"
#include "tests/catch.hpp"

#include "calibrate/gpu/output/measurement_file.hpp"

namespace stagecraft::gpu {
namespace {

namespace fs = std::filesystem;

// The header of a file that does not exist yet.
Header header() {
  return {{{"name", "h200"},
           {"vendor", "nvidia"},
           {"description", "NVIDIA H200"},
           {"kind", "gpu"},
           {"memory", "139.8 GiB"},
           {"processors", "132"}},
          {{"description", "Linux 6.1"}, {"cores", "16"}},
          {{"cuda", "13.0"}, {"driver", "580.159.03"}},
          {{"timer", "event"}, {"started", "2026-11-21T05:11:00Z"}}};
}

const Point kGemm = KernelPoint{parse_kernel("gemm forward bf16 batch=1 m=128 n=256 k=64"), Regime::burst};
const Point kWarm = KernelPoint{parse_kernel("relu backward-input fp32 rows=3 columns=5"), Regime::warm};
const Point kCopy = CopyPoint{End::host, End::device, false, true, 1 << 20};
const Point kReduce = CollectivePoint{Collective::all_reduce, 8, 1000};
const Point kBusy = PowerPoint{PowerState::busy, parse_kernel("gemm forward bf16 batch=1 m=8 n=8 k=8")};

Timing timing() {
  Timing timing;
  timing.seconds = {180e-6, 179e-6, 182e-6, 178.25e-6, 27};
  timing.dropped = 2;
  timing.clock = 1.755e9;
  timing.variant = "tile 20, stages 36";
  return timing;
}

TEST_CASE("every section is written as its document says", "[gpu][measurements]") {
  const std::string path = test::fresh_file("sections.yaml");
  {
    MeasurementFile file(path, header());
    file.add(kGemm, timing());
    file.add(kWarm, timing());
    file.add(kCopy, timing());
    file.add(kReduce, timing());
    Timing launch = timing();
    launch.call = 2e-6;
    file.add(HostPoint{HostOp::launch, 2, 4, 0}, launch);
    file.add(HostPoint{HostOp::graph, 1, 1, 10}, launch);
    file.add(InterferencePoint{std::get<KernelPoint>(kGemm).kernel, Beside::blocks_16},
             Interference{timing(), 170e-6, 400e9, 500e9});
    file.add(PowerPoint{PowerState::idle, {}}, PowerReading{76.4, 8.01, 0, 0, 0.345e9});
    file.add(kBusy, PowerReading{695, 8, 690e12, 0, 1.5e9});
    file.add_sentinel("start", std::get<KernelPoint>(kGemm).kernel, 181e-6);
    file.leave_out("attention: 3 points: \"no\" engine");
    file.finish(402);
  }
  const yaml::Node document = yaml::load(path);
  yaml::Map map(document, "measurements");
  CHECK(map.text("schema") == "stagecraft-measurements/1");
  CHECK(map.boolean("complete", false));
  CHECK(map.quantity<Seconds>("duration", yaml::kPositive).value == 402);
  yaml::Map device(map.node("device"), "device");
  CHECK(device.text("name") == "h200");
  CHECK(device.quantity<Bytes>("memory", yaml::kPositive).value == Approx(139.8 * 1024 * 1024 * 1024));
  CHECK(device.integer("processors", 1, 1000) == 132);
  CHECK(yaml::Map(map.node("software"), "software").text("cuda") == "13.0");
  CHECK(yaml::Map(map.node("method"), "method").text("left_out_1") == "attention: 3 points: \"no\" engine");

  REQUIRE(map.list("measured").size() == 2);
  yaml::Map gemm(*map.list("measured")[0], "measurement");
  CHECK(gemm.choice("op", kKernelOps).name == "gemm");
  CHECK(gemm.choice("pass", kKernelPasses).name == "forward");
  CHECK(gemm.choice("precision", stagecraft::kPrecisions).name == "bf16");
  yaml::Map shape(gemm.node("shape"), "shape");
  CHECK((shape.integer("batch", 1, 9) == 1 && shape.integer("m", 1, 999) == 128 && shape.integer("k", 1, 99) == 64));
  CHECK(gemm.quantity<Seconds>("median", yaml::kPositive).value == Approx(180e-6));
  CHECK(gemm.quantity<Seconds>("least", yaml::kPositive).value == Approx(178.25e-6));
  CHECK(gemm.integer("samples", 1, 99) == 27);
  CHECK(gemm.integer("dropped", 0, 99) == 2);
  CHECK(gemm.text("clock") == "1755 MHz");
  CHECK(gemm.text("variant") == "tile 20, stages 36");
  CHECK_FALSE(gemm.has("regime"));
  CHECK(yaml::Map(*map.list("measured")[1], "measurement").text("regime") == "warm");

  yaml::Map copy(*map.list("copies")[0], "copy");
  CHECK((copy.text("from") == "host" && copy.text("to") == "device" && copy.text("memory") == "pageable"));
  CHECK(copy.boolean("both_ways", false));
  CHECK(copy.quantity<Bytes>("size", yaml::kPositive).value == 1 << 20);
  yaml::Map reduce(*map.list("collectives")[0], "collective");
  CHECK((reduce.text("op") == "all-reduce" && reduce.integer("devices", 2, 8) == 8));
  CHECK(reduce.quantity<Bytes>("size", yaml::kPositive).value == 1000);
  yaml::Map launch(*map.list("launching")[0], "launching");
  CHECK(
      (launch.text("op") == "launch" && launch.integer("threads", 1, 9) == 2 && launch.integer("streams", 1, 9) == 4));
  CHECK(launch.quantity<Seconds>("call", yaml::kPositive).value == Approx(2e-6));
  CHECK(yaml::Map(*map.list("launching")[1], "launching").integer("nodes", 1, 99) == 10);
  yaml::Map beside(*map.list("interference")[0], "interference");
  CHECK((beside.text("op") == "gemm" && beside.text("beside") == "16-blocks"));
  CHECK(beside.quantity<Seconds>("alone", yaml::kPositive).value == Approx(170e-6));
  CHECK(beside.quantity<BytesPerSecond>("beside_rate", yaml::kPositive).value == Approx(400e9));
  CHECK(beside.quantity<BytesPerSecond>("rate_alone", yaml::kPositive).value == Approx(500e9));
  yaml::Map idle(*map.list("power")[0], "power");
  CHECK(idle.text("state") == "idle");
  CHECK(idle.quantity<Watts>("power", yaml::kPositive).value == Approx(76.4));
  yaml::Map busy(*map.list("power")[1], "power");
  CHECK(busy.text("state") == "gemm forward bf16 batch=1 m=8 n=8 k=8");
  CHECK(busy.quantity<FlopsPerSecond>("rate", yaml::kPositive).value == Approx(690e12));
  yaml::Map sentinel(*map.list("sentinels")[0], "sentinel");
  CHECK(sentinel.text("kernel") == "gemm forward bf16 batch=1 m=128 n=256 k=64");
}

TEST_CASE("the simulator reads what the harness writes, in every regime", "[gpu][measurements]") {
  const std::string path = test::fresh_file("read.yaml");
  {
    MeasurementFile file(path, header());
    for (std::size_t regime = 0; regime < kRegimes.size(); ++regime) {
      KernelPoint point = std::get<KernelPoint>(kGemm);
      point.regime = static_cast<Regime>(regime);
      file.add(point, timing());
    }
    file.add(kCopy, timing());
    file.add(CopyPoint{End::device, End::peer, true, false, 4096}, timing());
    for (std::size_t op = 0; op < kCollectives.size(); ++op) {
      file.add(CollectivePoint{static_cast<Collective>(op), 2, 1 << 20}, timing());
    }
    for (std::size_t op = 0; op < kHostOps.size(); ++op) {
      file.add(HostPoint{static_cast<HostOp>(op), 1, 1, 10}, timing());
    }
    for (std::size_t beside = 0; beside < kBesides.size(); ++beside) {
      file.add(InterferencePoint{std::get<KernelPoint>(kGemm).kernel, static_cast<Beside>(beside)},
               Interference{timing(), 170e-6, 400e9, 500e9});
    }
    file.add(PowerPoint{PowerState::idle, {}}, PowerReading{76.4, 8.01, 0, 0, 0});
    file.add(kBusy, PowerReading{695, 8, 690e12, 0, 1.5e9});
    file.add(PowerPoint{PowerState::busy, parse_kernel("copy forward fp32 rows=8 columns=8")},
             PowerReading{500, 8, 0, 4e12, 0});
    file.add_sentinel("start", std::get<KernelPoint>(kGemm).kernel, 181e-6);
    file.finish(402);
  }
  const Measurements read = read_measurements(yaml::load(path));
  REQUIRE(read.measured.size() == kRegimes.size());
  for (std::size_t regime = 0; regime < kRegimes.size(); ++regime) {
    CHECK(static_cast<std::size_t>(read.measured[regime].regime) == regime);
    CHECK(stagecraft::to_text(read.measured[regime].kernel) == "gemm forward bf16 batch=1 m=128 n=256 k=64");
    CHECK(read.measured[regime].time.median.value == Approx(180e-6));
  }
  CHECK((read.copies.size() == 2 && read.copies[0].both_ways && read.copies[1].to == "peer"));
  CHECK(read.collectives.size() == kCollectives.size());
  CHECK(read.host.size() == kHostOps.size());
  REQUIRE(read.interference.size() == kBesides.size());
  CHECK(read.interference.back().beside == "16-blocks-paced");
  CHECK(read.interference.back().alone.value == Approx(170e-6));
  REQUIRE(read.power.size() == 3);
  CHECK(read.power[1].flops.value == Approx(690e12));
  CHECK(read.power[2].bandwidth.value == Approx(4e12));
  CHECK(read.sentinels.size() == 1);
  CHECK(read.device.processors == 132);
}

TEST_CASE("the file is whole after each line, and says only at its end that it is complete", "[gpu][measurements]") {
  const std::string path = test::fresh_file("whole.yaml");
  MeasurementFile file(path, header());
  file.add(kGemm, timing());
  CHECK(yaml::load(path).find("complete") == nullptr);
  CHECK(yaml::load(path).find("measured")->items.size() == 1);
  file.add(kWarm, timing());
  CHECK(yaml::load(path).find("measured")->items.size() == 2);
  file.add(kWarm, timing()); // adding twice is adding once
  CHECK(yaml::load(path).find("measured")->items.size() == 2);
}

TEST_CASE("a run that was cut off goes on, without a line that was cut", "[gpu][measurements]") {
  const std::string path = test::fresh_file("resumed.yaml");
  {
    MeasurementFile file(path, header());
    file.add(kGemm, timing());
    file.add(kWarm, timing());
    file.add(kBusy, PowerReading{695, 8, 690e12, 0, 0});
  }
  const std::string text = read_file(path);
  std::ofstream(path) << text.substr(0, text.size() - 10); // within the line of power
  MeasurementFile file(path, header());
  CHECK(file.size() == 2);
  CHECK((file.has(kGemm) && file.has(kWarm) && !file.has(kBusy) && !file.has(kCopy)));
  Point burst = kWarm;
  std::get<KernelPoint>(burst).regime = Regime::burst;
  CHECK_FALSE(file.has(burst)); // another regime is another point
  file.add(kBusy, PowerReading{695, 8, 690e12, 0, 0});
  file.finish(10);
  CHECK(yaml::load(path).find("measured")->items.size() == 2);
  CHECK(yaml::load(path).find("power")->items.size() == 1);
}

TEST_CASE("a file of another kind, version or device does not go on", "[gpu][measurements]") {
  const std::string path = test::fresh_file("other.yaml");
  std::ofstream(path) << "schema: stagecraft-measurements/2\n";
  CHECK_THROWS_WITH(MeasurementFile(path, header()),
                    path + ":1: no file of measurements of this version; allowed: 'schema: stagecraft-measurements/1'");
  std::ofstream(path) << "schema: stagecraft-measurements/1\ndevice: {name: h100, vendor: nvidia}\n";
  CHECK_THROWS_WITH(MeasurementFile(path, header()), Catch::Contains(":2: measured on another device"));
  CHECK(read_file(path).find("h100") != std::string::npos); // the file is unchanged
}

TEST_CASE("a link that waits under the name of an unfinished file is not followed", "[gpu][measurements]") {
  const std::string path = test::fresh_file("followed.yaml"), victim = test::fresh_file("victim");
  fs::remove(path + ".new");
  fs::create_symlink(victim, path + ".new");
  MeasurementFile(path, header()).finish(1);
  CHECK(fs::exists(path));
  CHECK(!fs::exists(victim));
  CHECK(fs::is_symlink(path + ".new"));
  fs::remove(path + ".new");
}

TEST_CASE("times and texts are written so that YAML reads them back", "[gpu][measurements]") {
  CHECK(time_text(2.1e-6) == "2.1 us");
  CHECK(time_text(1.5e-3) == "1.5 ms");
  CHECK(time_text(12) == "12 s");
  CHECK(quoted("NVIDIA H200") == "NVIDIA H200");
  CHECK(quoted("139.8 GiB") == "139.8 GiB");
  CHECK(quoted("132") == "132");
  CHECK(quoted("13.0") == "\"13.0\"");
  CHECK(quoted("a: \"b\"\\\n") == "\"a: \\\"b\\\"\\\\ \"");
  CHECK(quoted("") == "\"\"");
  for (const std::string text : {"x, y", "{a}", "- a", "#", "a: b", "tile 20", "1e5", "2026-11-21T05:11:00Z"}) {
    const yaml::Node read = yaml::parse("{k: " + quoted(text) + "}", "text");
    CHECK(read.find("k")->text == text);
  }
}

TEST_CASE("sizes are named in the largest unit that is whole", "[gpu][measurements]") {
  CHECK(size_text(1024) == "1 KiB");
  CHECK(size_text(3 << 20) == "3 MiB");
  CHECK(size_text(1000) == "1000 B");
  CHECK(size_text(1536) == "1536 B");
  CHECK(size_text(std::int64_t{1} << 40) == "1024 GiB");
}

} // namespace
} // namespace stagecraft::gpu
