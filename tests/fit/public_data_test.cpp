// How well the forms predict public measurements at shapes held back in blocks. Skipped without the data.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/fit_line.hpp"

namespace stagecraft::fit {
namespace {

namespace fs = std::filesystem;

const fs::path kData = test::source_dir() / ".." / "shared" / "data" / "kernels";

bool absent(const char* file) {
  if (fs::exists(kData / file)) {
    return false;
  }
  std::cout << "skipped: no " << (kData / file).lexically_normal().string() << "\n";
  return true;
}

struct Errors {
  FitError all, training;
};

// Holds 20 % back, fits the rest as the program does, and predicts what was held back.
Errors errors_of(TableKind kind, const char* file, const std::string& device, double processors,
                 const std::string& select = "") {
  const DeviceTypeSource types = device_types_in(test::source_dir() / "platforms" / "devices");
  const DeviceType type = load_device_type(types(device, {}));
  const KernelTable table = read_kernel_table(kind, kData / file, device, select);
  std::vector<double> all, training;
  for (const std::uint64_t seed : {101, 102}) {
    const auto held = hold_back(block_keys(table.kernels), 0.2, seed);
    FitInput input;
    input.kernels = choose(table.kernels, held, false);
    FitOptions options;
    options.validation.rounds = 1;
    const KernelFits fits = fit_device(input, type, processors, options);
    for (const KernelSample& sample : choose(table.kernels, held, true)) {
      const auto time = predict(fits, sample.kernel, sample.variant);
      REQUIRE(time);
      all.push_back(time->time / sample.time - 1);
      const KernelShape& shape = sample.kernel.shape;
      if (shape[1] >= 256 && shape[2] >= 512 && shape[3] >= 512) {
        training.push_back(all.back());
      }
    }
  }
  return {error_of(all, "held"), error_of(training, "held")};
}

TEST_CASE("bf16 products of H100, H200 and A100 are met at shapes held back", "[fit][data]") {
  if (absent("h100_sxm_gemm_bf16.csv")) {
    return;
  }
  const Errors h100 = errors_of(TableKind::gemm, "h100_sxm_gemm_bf16.csv", "h100-sxm-80gb", 132);
  CHECK(h100.training.mean <= 0.055);
  CHECK(h100.all.mean <= 0.09);
  const Errors h200 = errors_of(TableKind::gemm, "h200_sxm_gemm_bf16.csv", "h200-sxm", 132);
  CHECK(h200.training.mean <= 0.055);
  CHECK(h200.all.mean <= 0.09);
  const Errors a100 = errors_of(TableKind::gemm, "a100_sxm_gemm_bf16.csv", "a100-sxm-80gb", 108);
  CHECK(a100.training.mean <= 0.08);
  CHECK(a100.all.mean <= 0.09);
}

TEST_CASE("attention is met at shapes held back", "[fit][data]") {
  if (absent("h200_sxm_attention_forward.csv")) {
    return;
  }
  CHECK(errors_of(TableKind::attention, "h200_sxm_attention_forward.csv", "h200-sxm", 132).all.mean <= 0.08);
}

TEST_CASE("fp32 linear layers are met at shapes held back", "[fit][data]") {
  if (absent("fp32_linear_forward.csv")) {
    return;
  }
  CHECK(errors_of(TableKind::linear, "fp32_linear_forward.csv", "v100-pcie-16gb", 80).all.mean <= 0.08);
  CHECK(errors_of(TableKind::linear, "fp32_linear_forward.csv", "a100-pcie-80gb", 108).all.mean <= 0.08);
}

TEST_CASE("collectives within a node are met at sizes held back, and the shipped times at all", "[fit][data]") {
  if (absent("h100_sxm_nccl_2.29.2.csv")) {
    return;
  }
  const std::vector<std::pair<std::string, std::string>> shipped = {{"a100-sxm-80gb", "a100_sxm_nccl_2.27.3.csv"},
                                                                    {"h100-sxm-80gb", "h100_sxm_nccl_2.29.2.csv"},
                                                                    {"h200-sxm", "h200_sxm_nccl_2.29.2.csv"},
                                                                    {"b200-sxm", "b200_sxm_nccl_2.29.2.csv"},
                                                                    {"gb200", "gb200_nccl_2.29.2.csv"}};
  const DeviceTypeSource types = device_types_in(test::source_dir() / "platforms" / "devices");
  for (const auto& [device, file] : shipped) {
    const DeviceType type = load_device_type(types(device, {}));
    REQUIRE(type.fits);
    std::map<std::pair<std::string, int>, std::vector<LinePoint>> groups;
    for (const MeasuredCollective& row : read_kernel_table(TableKind::nccl, kData / file, device, "").collectives) {
      groups[{row.op, row.devices}].push_back({row.size.value, row.time.median});
    }
    CHECK(groups.size() == type.fits->collectives.size());
    double held_back = 0;
    for (auto& [group, points] : groups) {
      const auto& [op, devices] = group;
      CAPTURE(device, op, devices);
      const PiecewiseLine line = fit_collective(points);
      held_back += line.error.mean;
      CHECK(line.error.mean <= 0.075);
      CHECK(line.error.median <= 0.06);
      // The largest sizes first: what takes longer than a larger size was disturbed while it was measured.
      std::sort(points.begin(), points.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; });
      Seconds least = points.front().time;
      for (std::size_t i = 0; i < points.size(); ++i) {
        least = std::min(least, points[i].time);
        const Seconds time = predict_collective(*type.fits, op, devices, Bytes{points[i].bytes})->time;
        CHECK(time.value == Approx(line.time(points[i].bytes).value).epsilon(1e-4));
        if (i + 1 == points.size() || points[i + 1].bytes < points[i].bytes) {
          CHECK(time / least == Approx(1).epsilon(0.0201));
        }
      }
    }
    CHECK(held_back / static_cast<double>(groups.size()) <= 0.045);
  }
}

TEST_CASE("all-reduces of A100 on another cluster, among numbers of devices that were not fitted, too", "[fit][data]") {
  const fs::path file = test::source_dir() / ".." / "shared" / "data" / "truth" / "vtrain_allreduce_a100.csv";
  if (!fs::exists(file)) {
    std::cout << "skipped: no " << file.lexically_normal().string() << "\n";
    return;
  }
  const DeviceType type =
      load_device_type(device_types_in(test::source_dir() / "platforms" / "devices")("a100-sxm-80gb", {}));
  const CsvTable table(read_file(file), file.string(), {"gpu", "num_gpus", "size_bytes", "outofplace_time_us"});
  std::map<std::pair<int, bool>, std::vector<double>> errors; // by devices, and whether the buffer is large
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (table.at(i, "gpu").text == "a100") {
      const int devices = table.at(i, "num_gpus").integer(2, 8);
      const Bytes bytes{table.at(i, "size_bytes").number(1, 1e12)};
      const Seconds measured{table.at(i, "outofplace_time_us").number(1, 1e9) * 1e-6};
      errors[{devices, bytes.value >= 64 << 20}].push_back(
          predict_collective(*type.fits, "all-reduce", devices, bytes)->time / measured - 1);
    }
  }
  CHECK(errors.size() == 2 * 7);
  for (const auto& [group, off] : errors) {
    CAPTURE(group.first, group.second, off.size());
    CHECK(error_of(off, "never fitted").mean <= (group.second ? 0.04 : 0.065));
  }
}

} // namespace
} // namespace stagecraft::fit
