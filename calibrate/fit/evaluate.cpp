// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/evaluate.hpp"

#include <algorithm>
#include <optional>

namespace stagecraft::fit {
namespace {

std::optional<Seconds> by_rates(const DeviceType& type, const Kernel& kernel) {
  const auto rate = type.rate(row_of(kernel.op).kind, kernel.precision);
  if (!rate) {
    return std::nullopt;
  }
  return time_of(Roofline{*rate, type.memory_bandwidth, type.launch_overhead}, kernel);
}

std::optional<PredictedRow> evaluate(const DeviceType& type, const KernelSample& sample) {
  PredictedRow row{.kernel = to_text(sample.kernel) + (sample.variant.empty() ? "" : " " + sample.variant),
                   .source = "roofline",
                   .measured = sample.time};
  if (const auto time = type.fits ? predict(*type.fits, sample.kernel, sample.variant) : std::nullopt) {
    row.source = name_of(time->source);
    row.predicted = time->time;
    return row;
  }
  const std::optional<Seconds> time = by_rates(type, sample.kernel);
  row.predicted = time.value_or(Seconds{0});
  return time ? std::optional(row) : std::nullopt;
}

std::optional<PredictedRow> evaluate(const DeviceType& type, const MeasuredCollective& collective) {
  const auto time =
      type.fits ? predict_collective(*type.fits, collective.op, collective.devices, collective.size) : std::nullopt;
  if (!time) {
    return std::nullopt;
  }
  return PredictedRow{collective.op + " " + std::to_string(collective.devices) + " devices " + to_text(collective.size),
                      "line", collective.time.median, time->time};
}

} // namespace

std::vector<PredictedRow> evaluate(const DeviceType& type, const KernelTable& table) {
  std::vector<PredictedRow> rows;
  const auto add = [&](const auto& measured) {
    if (auto row = evaluate(type, measured)) {
      rows.push_back(std::move(*row));
    }
  };
  std::for_each(table.kernels.begin(), table.kernels.end(), add);
  std::for_each(table.collectives.begin(), table.collectives.end(), add);
  return rows;
}

std::vector<PredictedRow> evaluate_measured(const DeviceType& type) {
  std::vector<PredictedRow> rows;
  if (!type.fits) {
    return rows;
  }
  KernelFits unaware = *type.fits;
  unaware.measured.clear();
  for (const MeasuredKernel& measured : type.fits->measured) {
    if (const auto time = predict(unaware, measured.kernel)) {
      rows.push_back({to_text(measured.kernel), std::string(name_of(time->source)), measured.time, time->time});
    }
  }
  return rows;
}

} // namespace stagecraft::fit
