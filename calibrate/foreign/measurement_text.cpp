// SPDX-License-Identifier: Apache-2.0
#include "calibrate/foreign/measurement_text.hpp"

#include <algorithm>
#include <cctype>

#include "sim/base/statistics.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::foreign {
namespace {

std::string microseconds(Seconds time) { return to_digits(time.value * 1e6, 9) + " us"; }

std::string time_text(const SampledTime& time) {
  std::string text = "median: " + microseconds(time.median);
  text += time.q1 ? ", q1: " + microseconds(*time.q1) : "";
  text += time.q3 ? ", q3: " + microseconds(*time.q3) : "";
  text += time.least ? ", least: " + microseconds(*time.least) : "";
  return text + ", samples: " + std::to_string(time.samples);
}

std::string row_text(const MeasuredRow& row) {
  const KernelOpRow& op = row_of(row.kernel.op);
  std::string shape;
  for (std::size_t i = 0; i < kMostDimensions && !op.dimensions[i].empty(); ++i) {
    shape += (shape.empty() ? "" : ", ") + std::string(op.dimensions[i]) + ": " + to_digits(row.kernel.shape[i], 15);
  }
  return "  - {op: " + std::string(op.name) + ", pass: " + std::string(row_of(row.kernel.pass).name) +
         ", precision: " + std::string(row_of(row.kernel.precision).name) + ", shape: {" + shape + "}, " +
         time_text(row.time) + "}\n";
}

std::string row_text(const MeasuredCollective& row) {
  return "  - {op: " + row.op + ", devices: " + std::to_string(row.devices) +
         ", size: " + to_digits(row.size.value, 15) + " B" + (row.in_place ? ", in_place: true" : "") + ", " +
         time_text(row.time) + "}\n";
}

template <class Row> std::string rows_text(const char* key, const std::vector<Row>& rows) {
  std::string text = std::string(key) + ":" + (rows.empty() ? " []" : "") + "\n";
  for (const Row& row : rows) {
    text += row_text(row);
  }
  return text;
}

std::string free_text(const char* key, const FreeTexts& texts) {
  std::string text;
  for (const auto& [name, value] : texts) {
    text += (text.empty() ? "" : ", ") + name + ": " + in_double_quotes(value);
  }
  return text.empty() ? "" : std::string(key) + ": {" + text + "}\n";
}

} // namespace

MeasuredDevice device_called(const std::string& description, Bytes memory) {
  MeasuredDevice device{.vendor = "nvidia", .description = description, .kind = "gpu", .memory = memory};
  for (const char c : description) {
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (word || (!device.name.empty() && device.name.back() != '-')) {
      device.name += word ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
    }
  }
  return device;
}

SampledTime sampled(std::vector<double> seconds) {
  SampledTime time{.median = Seconds{quantile(seconds, 0.5)}, .samples = static_cast<int>(seconds.size())};
  if (seconds.size() > 1) {
    time.q1 = Seconds{quantile(seconds, 0.25)};
    time.q3 = Seconds{quantile(seconds, 0.75)};
    time.least = Seconds{*std::min_element(seconds.begin(), seconds.end())};
  }
  return time;
}

std::string measurements_text(const Measurements& measurements, const FreeTexts& software, const FreeTexts& method) {
  const MeasuredDevice& device = measurements.device;
  return "schema: stagecraft-measurements/1\ndevice: {name: " + in_double_quotes(device.name) +
         ", vendor: " + in_double_quotes(device.vendor) + ", description: " + in_double_quotes(device.description) +
         ", kind: " + device.kind + ", memory: " + to_digits(device.memory.value, 15) + " B}\n" +
         free_text("software", software) + free_text("method", method) + rows_text("measured", measurements.measured) +
         rows_text("collectives", measurements.collectives) + "complete: true\n";
}

} // namespace stagecraft::foreign
