// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_device.hpp"

#include <map>
#include <tuple>

#include "calibrate/fit/forms/fit_line.hpp"
#include "calibrate/fit/forms/fit_power.hpp"
#include "calibrate/fit/forms/kernel_forms.hpp"
#include "calibrate/fit/library_changes.hpp"

namespace stagecraft::fit {
namespace {

using KernelGroup = std::tuple<KernelOp, KernelPass, Precision, std::string>;
using CopyGroup = std::tuple<std::string, std::string, std::string, bool>;
using CollectiveGroup = std::tuple<std::string, int>;

std::map<KernelGroup, KernelSamples> kernel_groups(const KernelSamples& samples) {
  std::map<KernelGroup, KernelSamples> groups;
  for (const KernelSample& sample : samples) {
    const Kernel& kernel = sample.kernel;
    groups[{kernel.op, kernel.pass, kernel.precision, sample.variant}].push_back(sample);
  }
  return groups;
}

// Roofline of the data sheet: the peak of the precision for matrix kernels, else the rate of the vector units.
Roofline roofline_of(const DeviceType& type, const Kernel& kernel) {
  const auto precision = static_cast<std::size_t>(kernel.precision);
  const auto vector = type.rates[static_cast<std::size_t>(KernelKind::elementwise)][precision];
  const bool matrix = row_of(row_of(kernel.op).kind).matrix;
  const FlopsPerSecond rate =
      matrix && type.peak[precision] ? *type.peak[precision] : vector.value_or(FlopsPerSecond{1});
  return {rate, type.memory_bandwidth, type.launch_overhead};
}

// Refuses times that must have a wrong unit or come from another device. Memory traffic is not checked, since operands
// may stay in caches.
void check_speed(const KernelSample& sample, const Roofline& roofline, const std::string& device) {
  constexpr double kBeyondBelief = 10;
  const FlopsPerSecond rate = flops_of(sample.kernel) / sample.time;
  if (row_of(row_of(sample.kernel.op).kind).matrix && rate > roofline.flops * kBeyondBelief) {
    throw InputError({to_text(sample.kernel), 0, 0}, "it ran at " + to_text(rate) + ", the peak of " + device + " is " +
                                                         to_text(roofline.flops) + "; allowed: up to 10 times that");
  }
}

// Fits the samples that are not held out, and takes the error at the others.
KernelFit fit_group(const KernelSamples& samples, const Roofline& base, double processors, const FitOptions& options) {
  const auto held = hold_back(block_keys(samples), options.hold_out, options.validation.seed);
  const KernelSamples known = choose(samples, held, false), unknown = choose(samples, held, true);
  if (options.hold_out <= 0 || known.empty() || unknown.empty()) {
    return fit_kernel(samples, base, processors, options.validation);
  }
  KernelFit fit = fit_kernel(known, base, processors, options.validation);
  std::vector<double> errors;
  for (const KernelSample& sample : unknown) {
    errors.push_back(time_by(fit, sample.kernel, processors) / sample.time - 1);
  }
  (fit.grid     ? fit.grid->error
   : fit.family ? fit.family->error
                : fit.line->error) =
      error_of(errors, "whole values of dimensions held out, " + percent(options.hold_out, 0));
  return fit;
}

template <class Group, class Row>
std::map<Group, std::vector<LinePoint>> line_groups(const std::vector<Row>& rows, Group (*group_of)(const Row&)) {
  std::map<Group, std::vector<LinePoint>> groups;
  for (const Row& row : rows) {
    groups[group_of(row)].push_back({row.size.value, row.time.median});
  }
  return groups;
}

// Fits the points that are not held out, and takes the error at the others.
template <class Fit>
PiecewiseLine fit_points(const std::vector<LinePoint>& points, const FitOptions& options, const Fit& fit) {
  std::vector<std::vector<double>> keys;
  for (const LinePoint& point : points) {
    keys.push_back({point.bytes});
  }
  const auto held = hold_back(keys, options.hold_out, options.validation.seed);
  std::vector<LinePoint> known, unknown;
  for (std::size_t i = 0; i < points.size(); ++i) {
    (options.hold_out > 0 && held[i] ? unknown : known).push_back(points[i]);
  }
  PiecewiseLine line = fit(known.empty() ? points : known);
  if (!known.empty() && !unknown.empty()) {
    std::vector<double> errors;
    for (const LinePoint& point : unknown) {
      errors.push_back(line.time(point.bytes) / point.time - 1);
    }
    line.error = error_of(errors, "whole sizes held out, " + percent(options.hold_out, 0));
  }
  return line;
}

} // namespace

void add(FitInput& input, const Measurements& measurements) {
  for (const MeasuredRow& row : measurements.measured) {
    if (row.regime == Regime::burst) {
      input.kernels.push_back({row.kernel, kernel_time(measurements, row), ""});
    }
  }
  input.copies.insert(input.copies.end(), measurements.copies.begin(), measurements.copies.end());
  input.collectives.insert(input.collectives.end(), measurements.collectives.begin(), measurements.collectives.end());
  input.power.insert(input.power.end(), measurements.power.begin(), measurements.power.end());
}

void add(FitInput& input, const KernelTable& table) {
  input.kernels.insert(input.kernels.end(), table.kernels.begin(), table.kernels.end());
  input.collectives.insert(input.collectives.end(), table.collectives.begin(), table.collectives.end());
}

KernelFits fit_device(const FitInput& input, const DeviceType& type, double processors, const FitOptions& options) {
  const auto kernels = kernel_groups(input.kernels);
  const auto copies = line_groups<CopyGroup, MeasuredCopy>(input.copies, [](const MeasuredCopy& copy) {
    return CopyGroup{copy.from, copy.to, copy.memory, copy.both_ways};
  });
  const auto collectives =
      line_groups<CollectiveGroup, MeasuredCollective>(input.collectives, [](const MeasuredCollective& row) {
        return CollectiveGroup{row.op, row.devices};
      });
  const std::size_t all = kernels.size() + copies.size() + collectives.size();
  std::size_t done = 0;
  const auto tell = [&] { options.progress ? options.progress(done++, all) : void(); };
  KernelFits fits;
  fits.processors = processors;
  for (const auto& [group, samples] : kernels) {
    tell();
    const Roofline base = roofline_of(type, samples.front().kernel);
    for (const KernelSample& sample : samples) {
      check_speed(sample, base, type.name);
    }
    fits.kernels.push_back(fit_group(samples, base, processors, options));
  }
  for (const auto& [group, points] : copies) {
    tell();
    const auto& [from, to, memory, both_ways] = group;
    fits.copies.push_back(
        {from, to, memory, both_ways, fit_points(points, options, [&](const std::vector<LinePoint>& some) {
           return fit_line_validated(some, options.validation.seed);
         })});
  }
  const BytesPerSecond port = port_bandwidth(input.collectives);
  for (const auto& [group, points] : collectives) {
    tell();
    const auto& [op, devices] = group;
    const std::vector<double> changes = library_changes(type, port, op, devices);
    const auto fit = [&](const std::vector<LinePoint>& some) { return fit_collective(some, changes); };
    fits.collectives.push_back({op, devices, fit_points(points, options, fit)});
  }
  fits.power = fit_power(input.power);
  return fits;
}

} // namespace stagecraft::fit
