// A whole device: measured, fitted, written, read, predicted.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"

#include "calibrate/fit/evaluate.hpp"
#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/write_device.hpp"

namespace stagecraft::fit {
namespace {

std::string measurement(double m, double n, double k) {
  const double seconds = 5e-6 + 2 * m * n * k / 50e12 + 2 * (m * n + m * k + n * k) / 1e12;
  const auto text = [](double value) { return std::to_string(static_cast<int>(value)); };
  return "  - {op: gemm, precision: bf16, shape: {batch: 1, m: " + text(m) + ", n: " + text(n) + ", k: " + text(k) +
         "}, median: " + std::to_string(seconds * 1e6) + " us}\n";
}

std::string raw() {
  std::string text =
      "schema: stagecraft-measurements/1\ndevice: {name: card, vendor: maker, description: \"A card: one\", "
      "kind: gpu, memory: 16 GiB, processors: 20}\nmethod: {timer: event}\nmeasured:\n";
  for (const double m : {64, 256, 1024, 4096}) {
    for (const double n : {64, 256, 1024, 4096}) {
      for (const double k : {64, 256, 1024, 4096}) {
        text += measurement(m, n, k);
      }
    }
  }
  for (const double rows : {1, 16, 256, 4096, 65536}) {
    text += "  - {op: add, precision: fp32, shape: {rows: " + std::to_string(static_cast<int>(rows)) +
            ", columns: 1024}, median: " + std::to_string(4 + rows * 12 * 1024 / 1e6) + " us}\n";
  }
  text += "  - {op: launch, precision: fp32, shape: {}, median: 4 us}\ncopies:\n";
  for (const char* size : {"1 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB"}) {
    const double bytes = parse_quantity<Bytes>(size, {}).value;
    text += "  - {from: host, to: device, memory: pinned, size: " + std::string(size) +
            ", median: " + std::to_string(8 + bytes / 25e3) + " us}\n";
  }
  return text + "power:\n  - {state: idle, power: 50 W}\n  - {state: blocked, power: 90 W}\n  - {state: matmul, power: "
                "250 W, rate: 40 TFLOP/s}\n"
                "complete: true\n";
}

FitInput input_of(const Measurements& measurements) {
  FitInput input;
  add(input, measurements);
  return input;
}

TEST_CASE("measurements become a device file that predicts what they did not show", "[fit]") {
  const yaml::Node document = yaml::parse(raw(), "raw.yaml");
  const Measurements measurements = read_measurements(document);
  const std::string sheet = device_text(measurements);
  const DeviceType base = load_device_type(yaml::parse(sheet, "sheet"));
  CHECK(base.memory.value == Catch::Detail::Approx(16.0 * (1 << 30)));
  CHECK(base.launch_overhead.value == Catch::Detail::Approx(4e-6));
  CHECK(base.idle.value == Catch::Detail::Approx(50));
  CHECK(base.busy.value == Catch::Detail::Approx(250));
  CHECK(base.waiting.value().value == Catch::Detail::Approx(90));
  const KernelFits fits = fit_device(input_of(measurements), base, 20, {});
  const std::string text = with_sections(
      sheet, "card", measurements_text({document}) + fits_text(fits, {"raw.yaml, \"of the test\""}), true);
  const DeviceType type = load_device_type(yaml::parse(text, "card.yaml"));
  CHECK(type.origin == Origin::measured);
  REQUIRE(type.fits);
  CHECK(type.fits->measured.size() == 64 + 5 + 1);
  const auto time = [&](double m, double n, double k) {
    return predict(*type.fits, {KernelOp::gemm, KernelPass::forward, Precision::bf16, {1, m, n, k}});
  };
  CHECK(time(256, 256, 256)->source == FitSource::exact);
  const double truth = 5e-6 + 2 * 700. * 2000 * 900 / 50e12 + 2 * (700. * 2000 + 700 * 900 + 2000 * 900) / 1e12;
  CHECK(time(700, 2000, 900)->source != FitSource::exact);
  CHECK(time(700, 2000, 900)->time.value == Catch::Detail::Approx(truth).epsilon(0.05));
  const auto add_time = predict(*type.fits, {KernelOp::add, KernelPass::forward, Precision::fp32, {1000, 1024}});
  CHECK(add_time->time.value == Catch::Detail::Approx(4e-6 + 1000 * 12 * 1024 / 1e12).epsilon(0.05));
  CHECK(predict_copy(*type.fits, "host", "device", "pinned", Bytes{4e6})->time.value ==
        Catch::Detail::Approx(8e-6 + 4e6 / 25e9).epsilon(0.03));
  CHECK(type.fits->power->cap.value == Catch::Detail::Approx(250));
  for (const PredictedRow& row : evaluate_measured(type)) {
    INFO(row.kernel);
    CHECK(std::abs(row.error()) < 0.08);
  }
}

TEST_CASE("a device file reads back the same, up to the digits kept", "[fit]") {
  const Measurements measurements = read_measurements(yaml::parse(raw(), "raw.yaml"));
  const DeviceType base = load_device_type(yaml::parse(device_text(measurements), "sheet"));
  const KernelFits fits = fit_device(input_of(measurements), base, 20, {});
  const std::string text = fits_text(fits, {});
  const KernelFits again = read_kernel_fits(*yaml::parse(text, "fits.yaml").find("fits"));
  CHECK(fits_text(again, {}) == text);
  REQUIRE(again.kernels.size() == fits.kernels.size());
  for (const KernelSample& sample : input_of(measurements).kernels) {
    INFO(to_text(sample.kernel));
    CHECK(predict(again, sample.kernel)->time.value ==
          Catch::Detail::Approx(predict(fits, sample.kernel)->time.value).epsilon(2e-3));
  }
}

TEST_CASE("a device file reads back whatever the device is called", "[fit]") {
  const yaml::Node document = yaml::parse(raw(), "raw.yaml");
  Measurements measurements = read_measurements(document);
  for (const std::string name : {"two\nlines", " a: b #c", "'", "\"\\", "[x]", "{", "null", "- item", "na\xc3\xafve",
                                 "\x01\x7f", "\xe2\x80\xae", "\xc2\x85"}) {
    CAPTURE(name);
    measurements.device.name = measurements.device.vendor = measurements.device.description = name;
    const DeviceType sheet = load_device_type(yaml::parse(device_text(measurements), "sheet"));
    CHECK(sheet.name == name);
    const KernelFits fits = fit_device(input_of(measurements), sheet, 20, {});
    const std::string text = with_sections(device_text(measurements), name + "2", fits_text(fits, {name}), true);
    CHECK(load_device_type(yaml::parse(text, "device.yaml")).name == name + "2");
  }
}

TEST_CASE("a data sheet keeps its lines, and old fits go", "[fit]") {
  const std::string sheet =
      "# A card.\nname: card\norigin: catalogue\npeak: {fp32: 1 TFLOP/s}\nfits:\n  processors: 3\n"
      "  kernels: []\nsources:\n  peak: \"book\"\n";
  CHECK(with_sections(sheet, "other", "fits:\n  processors: 4\n", true) ==
        "# A card.\nname: other\norigin: measured\npeak: {fp32: 1 TFLOP/s}\nsources:\n  peak: \"book\"\nfits:\n"
        "  processors: 4\n");
}

TEST_CASE("measurements held out are not fitted, and give the error", "[fit]") {
  const Measurements measurements = read_measurements(yaml::parse(raw(), "raw.yaml"));
  const DeviceType base = load_device_type(yaml::parse(device_text(measurements), "sheet"));
  FitInput input = input_of(measurements);
  const KernelFits fits = fit_device(input, base, 20, {.hold_out = 0.3});
  const KernelFit& gemm = fits.kernels.front();
  const FitError& error = gemm.grid ? gemm.grid->error : gemm.family->error;
  CHECK(error.scheme == "whole values of dimensions held out, 30 %");
  CHECK(error.points > 5);
  CHECK(error.points < 64);
  // Samples that were held out may say anything: the fit is the same.
  const auto held = hold_back(block_keys(KernelSamples(input.kernels.begin(), input.kernels.begin() + 64)), 0.3, 1);
  for (std::size_t i = 0; i < 64; ++i) {
    input.kernels[i].time = input.kernels[i].time * (held[i] ? 2 : 1);
  }
  const KernelFit again = fit_device(input, base, 20, {.hold_out = 0.3}).kernels.front();
  CHECK((again.grid ? again.grid->values == gemm.grid->values : again.family->ways == gemm.family->ways));
}

TEST_CASE("a kernel ten times faster than the peak is refused", "[fit]") {
  const DeviceType base = load_device_type(yaml::parse(
      "name: card\nvendor: v\norigin: catalogue\nmemory: 1 GiB\nmemory_bandwidth: 1 TB/s\nlaunch_overhead: 3 us\n"
      "power: {idle: 1 W, busy: 2 W}\npeak: {fp32: 1 TFLOP/s}\nvector: 1 TFLOP/s\n",
      "card.yaml"));
  FitInput input;
  const auto sample = [](double rate) {
    return KernelSample{
        {KernelOp::gemm, KernelPass::forward, Precision::fp32, {1, 1000, 1000, 1000}}, Seconds{2e9 / rate}, ""};
  };
  input.kernels = {sample(9.9e12)};
  CHECK_NOTHROW(fit_device(input, base, 1, {}));
  input.kernels = {sample(10.1e12)};
  CHECK_THROWS_WITH(
      fit_device(input, base, 1, {}),
      Catch::Contains("it ran at 10.10 TFLOP/s, the peak of card is 1.000 TFLOP/s; allowed: up to 10 times"));
}

} // namespace
} // namespace stagecraft::fit
