// How well the forms predict public measurements at shapes held back in blocks. Skipped without the data.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/format/csv.hpp"
#include "sim/base/system/file.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/forms/fit_cast.hpp"
#include "calibrate/fit/forms/fit_line.hpp"
#include "calibrate/fit/library_changes.hpp"

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
Errors errors_of(const KernelTable& table, const std::string& device, double processors) {
  const DeviceTypeSource types = device_types_in(test::source_dir() / "platforms" / "devices");
  const DeviceType type = load_device_type(types(device, {}));
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

Errors errors_of(TableKind kind, const char* file, const std::string& device, double processors,
                 const std::string& select = "") {
  return errors_of(read_kernel_table(kind, kData / file, device, select), device, processors);
}

// A table of products whose file's name alone says their number format, as it calls it.
KernelTable products(const std::string& board, const std::string& format, const std::string& device) {
  const fs::path file = kData / (board + "_gemm_" + format + ".csv");
  std::string text = read_file(file);
  text.insert(0, "dtype,");
  for (std::size_t line = text.find('\n'); line + 1 < text.size(); line = text.find('\n', line + 1)) {
    text.insert(line + 1, format + ",");
  }
  return read_kernel_table(TableKind::gemm, text, file.string(), device, "");
}

TEST_CASE("bf16 products of H100, H200 and A100 are met at shapes held back", "[fit][data]") {
  if (absent("h100_sxm_gemm_bf16.csv")) {
    return;
  }
  const Errors h100 = errors_of(TableKind::gemm, "h100_sxm_gemm_bf16.csv", "h100-sxm-80gb", 132);
  CHECK(h100.training.mean <= 0.052);
  CHECK(h100.all.mean <= 0.05);
  const Errors h200 = errors_of(TableKind::gemm, "h200_sxm_gemm_bf16.csv", "h200-sxm", 132);
  CHECK(h200.training.mean <= 0.05);
  CHECK(h200.all.mean <= 0.05);
  const Errors a100 = errors_of(TableKind::gemm, "a100_sxm_gemm_bf16.csv", "a100-sxm-80gb", 108);
  CHECK(a100.training.mean <= 0.05);
  CHECK(a100.all.mean <= 0.052); // 0.049 by the draws that its file states
}

TEST_CASE("attention is met at shapes held back", "[fit][data]") {
  if (absent("h200_sxm_attention_forward.csv")) {
    return;
  }
  CHECK(errors_of(TableKind::attention, "h100_sxm_attention_forward.csv", "h100-sxm-80gb", 132).all.mean <= 0.06);
  CHECK(errors_of(TableKind::attention, "h200_sxm_attention_forward.csv", "h200-sxm", 132).all.mean <= 0.05);
  CHECK(errors_of(TableKind::attention, "a100_sxm_attention_forward.csv", "a100-sxm-80gb", 108).all.mean <= 0.052);
}

TEST_CASE("latent attention is met at shapes held back", "[fit][data]") {
  if (absent("gb200_mla_forward.csv")) {
    return;
  }
  struct Latent {
    const char *file, *device;
    double processors, most;
  };
  for (const Latent& one : {Latent{"h100_sxm_mla_forward.csv", "h100-sxm-80gb", 132, 0.05},
                            {"h200_sxm_mla_forward.csv", "h200-sxm", 132, 0.05},
                            {"b200_sxm_mla_forward.csv", "b200-sxm", 148, 0.06},
                            {"gb200_mla_forward.csv", "gb200", 148, 0.07}}) {
    CAPTURE(one.file);
    const Errors errors = errors_of(TableKind::attention, one.file, one.device, one.processors);
    CHECK(errors.all.mean <= one.most);
  }
}

struct Board {
  std::string device, board;
  double worst; // of the mean errors that the device's file may state
};

// The mean error of a device's fit over a table that it was made from.
double shipped_error(const DeviceType& type, const KernelTable& table, Precision precision) {
  std::vector<double> errors;
  for (const KernelSample& sample : table.kernels) {
    if (sample.kernel.precision == precision && sample.variant.empty()) {
      errors.push_back(predict(*type.fits, sample.kernel)->time / sample.time - 1);
    }
  }
  REQUIRE(errors.size() > 2000);
  return error_of(errors, "all").mean;
}

TEST_CASE("the shipped fits of later boards meet their tables as their files say", "[fit][data]") {
  if (absent("b200_sxm_gemm_nvfp4.csv")) {
    return;
  }
  const std::vector<std::pair<std::string, Precision>> formats = {{"bfloat16", Precision::bf16},
                                                                  {"fp8", Precision::fp8},
                                                                  {"fp8_block", Precision::fp8_block},
                                                                  {"nvfp4", Precision::nvfp4}};
  const DeviceTypeSource types = device_types_in(test::source_dir() / "platforms" / "devices");
  for (const Board& one :
       {Board{"b200-sxm", "b200_sxm", 0.06}, Board{"gb200", "gb200", 0.06}, Board{"b300-sxm", "b300_sxm", 0.06},
        Board{"gb300", "gb300", 0.06}, Board{"l40s-48gb", "l40s", 0.066}}) {
    const DeviceType type = load_device_type(types(one.device, {}));
    const auto check = [&](KernelOp op, Precision precision, const KernelTable& table) {
      const auto fit = std::find_if(type.fits->kernels.begin(), type.fits->kernels.end(), [&](const KernelFit& some) {
        return some.op == op && some.precision == precision && some.pass == KernelPass::forward;
      });
      REQUIRE(fit != type.fits->kernels.end());
      CAPTURE(one.device, fit->name);
      REQUIRE(fit->grid);
      const double stated = fit->grid->error.mean; // at values held back, so more than over all
      CHECK(stated <= one.worst);
      const double met = shipped_error(type, table, precision);
      CHECK(met <= stated);
      CHECK(met >= 0.5 * stated); // values that the grid was fitted to are closer, but not by half
      CHECK(fit->cast == Approx(op == KernelOp::gemm ? fit_cast(table.kernels) : 0).epsilon(0.01));
    };
    for (const auto& [name, precision] : formats) {
      if (precision != Precision::nvfp4 || one.device != "l40s-48gb") { // which has none
        check(KernelOp::gemm, precision, products(one.board, name, one.device));
      }
    }
    check(KernelOp::attention, Precision::bf16,
          read_kernel_table(TableKind::attention, kData / (one.board + "_attention_forward.csv"), one.device, ""));
  }
}

TEST_CASE("products of B200 and GB200 are met at shapes held back", "[fit][data]") {
  if (absent("b200_sxm_gemm_nvfp4.csv")) {
    return;
  }
  CHECK(errors_of(products("b200_sxm", "bfloat16", "b200-sxm"), "b200-sxm", 148).all.mean <= 0.06);
  CHECK(errors_of(products("gb200", "fp8_block", "gb200"), "gb200", 148).all.mean <= 0.06);
}

TEST_CASE("fp32 linear layers are met at shapes held back", "[fit][data]") {
  if (absent("fp32_linear_forward.csv")) {
    return;
  }
  CHECK(errors_of(TableKind::linear, "fp32_linear_forward.csv", "v100-pcie-16gb", 80).all.mean <= 0.08);
  CHECK(errors_of(TableKind::linear, "fp32_linear_forward.csv", "a100-pcie-80gb", 108).all.mean <= 0.08);
}

// How far the two times of a size lie apart in the mean.
double difference_of_two(std::vector<LinePoint> points) {
  std::sort(points.begin(), points.end(),
            [](auto& a, auto& b) { return std::tie(a.bytes, a.time) < std::tie(b.bytes, b.time); });
  std::vector<double> differences;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    if (points[i].bytes == points[i + 1].bytes) {
      differences.push_back(points[i + 1].time / points[i].time - 1);
    }
  }
  return error_of(differences, "").mean;
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
  int tables = 0, above = 0;
  for (const auto& [device, file] : shipped) {
    const DeviceType type = load_device_type(types(device, {}));
    REQUIRE(type.fits);
    const std::vector<MeasuredCollective> rows =
        read_kernel_table(TableKind::nccl, kData / file, device, "").collectives;
    std::map<std::pair<std::string, int>, std::vector<LinePoint>> groups;
    for (const MeasuredCollective& row : rows) {
      groups[{row.op, row.devices}].push_back({row.size.value, row.time.median});
    }
    CHECK(groups.size() == type.fits->collectives.size());
    double held_back = 0;
    for (auto& [group, points] : groups) {
      const auto& [op, devices] = group;
      CAPTURE(device, op, devices);
      const PiecewiseLine line = fit_collective(points, library_changes(type, port_bandwidth(rows), op, devices));
      held_back += line.error.mean;
      // All-to-alls whose two measurements of the same bytes, as numbers of 8 and of 16 bits, differ by more.
      const bool is_noisy = op == "all-to-all" && difference_of_two(points) > 0.09;
      CHECK(line.error.mean <= (is_noisy ? 0.075 : 0.06));
      above += line.error.mean > 0.06 ? 1 : 0;
      ++tables;
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
    CHECK(held_back / static_cast<double>(groups.size()) <= 0.04);
  }
  CHECK(tables == 56);
  CHECK(above <= 2);
}

// Mean errors of closed forms below a platform's switch against a table, of buffers below 64 KiB, 1 MiB, 16 MiB, and
// from there on.
std::array<double, 4> errors_without_table(Platform platform, const std::vector<MeasuredCollective>& rows,
                                           bool by_nccl) {
  for (Vertex& vertex : platform.vertices) {
    vertex.measured_at = {};
  }
  for (Link& link : platform.links) {
    link.nccl = by_nccl ? link.nccl : NcclLink{};
  }
  constexpr std::array kOps = {"all-reduce", "reduce-scatter", "all-gather", "all-to-all"};
  constexpr std::array kBelow = {0x1p16, 0x1p20, 0x1p24, kInfinity};
  Router router(platform);
  std::array<std::vector<double>, 4> errors;
  for (const MeasuredCollective& row : rows) {
    const auto kind = static_cast<CollectiveKind>(std::find(kOps.begin(), kOps.end(), row.op) - kOps.begin());
    std::vector<DeviceId> devices(row.devices);
    std::iota(devices.begin(), devices.end(), 0);
    const Seconds time = seconds_of(fastest_of(ways_of(kind, devices, router, "auto"), row.size).flows, row.size);
    const auto size = std::upper_bound(kBelow.begin(), kBelow.end(), row.size.value) - kBelow.begin();
    errors[size].push_back(time / row.time.median - 1);
  }
  std::array<double, 4> means{};
  std::transform(errors.begin(), errors.end(), means.begin(), [](const auto& some) { return error_of(some, "").mean; });
  return means;
}

TEST_CASE("where nothing is measured, NCCL's published protocols are nearer than latencies of links", "[fit][data]") {
  if (absent("h100_sxm_nccl_2.29.2.csv")) {
    return;
  }
  struct Withheld {
    std::string platform, device, file;
  };
  const fs::path folder = test::source_dir() / "platforms";
  for (const auto& [name, device, file] : {Withheld{"dgx-a100", "a100-sxm-80gb", "a100_sxm_nccl_2.27.3.csv"},
                                           Withheld{"dgx-h100", "h100-sxm-80gb", "h100_sxm_nccl_2.29.2.csv"},
                                           Withheld{"dgx-h200", "h200-sxm", "h200_sxm_nccl_2.29.2.csv"},
                                           Withheld{"dgx-b200", "b200-sxm", "b200_sxm_nccl_2.29.2.csv"},
                                           Withheld{"gb200-nvl72", "gb200", "gb200_nccl_2.29.2.csv"}}) {
    CAPTURE(name);
    const Platform platform = load_platform(yaml::load(folder / (name + ".yaml")), device_types_in(folder / "devices"));
    const auto rows = read_kernel_table(TableKind::nccl, kData / file, device, "").collectives;
    const auto by_links = errors_without_table(platform, rows, false);
    const auto by_nccl = errors_without_table(platform, rows, true);
    for (const std::size_t size : {0, 1, 2}) {
      CAPTURE(size, by_links[size], by_nccl[size]);
      CHECK(by_nccl[size] <= 0.4);
      CHECK(by_nccl[size] < (size < 2 ? 0.65 : 0.9) * by_links[size]);
    }
    CHECK(by_nccl[3] <= by_links[3] + 0.065); // where bandwidth decides
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
