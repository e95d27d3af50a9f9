// Predicting the time of kernels, copies and collectives from fits: docs/model.md has the formulas.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/fits/kernel_fits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/platform/fits/grid_places.hpp"
#include "sim/platform/fits/kernel_features.hpp"
#include "sim/platform/fits/like_kernels.hpp"

namespace stagecraft {
namespace {

double feature(FeatureId id, const Kernel& kernel, double processors) {
  return kernel_features()[static_cast<std::size_t>(id)].value(kernel, processors);
}

double sum_of(const std::vector<FitTerm>& terms, const Kernel& kernel, double processors) {
  double sum = 0;
  for (const FitTerm& term : terms) {
    sum += term.coefficient * feature(term.feature, kernel, processors);
  }
  return sum;
}

auto key_of(const Kernel& kernel) { return std::tie(kernel.op, kernel.pass, kernel.precision, kernel.shape); }

const MeasuredKernel* find_measured(const KernelFits& fits, const Kernel& kernel) {
  const auto found =
      std::lower_bound(fits.measured.begin(), fits.measured.end(), MeasuredKernel{.kernel = kernel}, measured_before);
  return found != fits.measured.end() && found->kernel == kernel ? &*found : nullptr;
}

// The part of a fitted time that a cast of the first operand takes. The product itself takes its roofline at least.
Seconds cast_of(const KernelFit& fit, const Kernel& kernel, Seconds time) {
  if (fit.cast == 0 || !fit.grid) {
    return Seconds{0};
  }
  const double elements = kernel.shape[0] * kernel.shape[1] * kernel.shape[3];
  return std::clamp(Seconds{fit.cast * elements}, Seconds{0},
                    std::max(Seconds{0}, time - time_of(fit.grid->base, kernel)));
}

std::optional<KernelTime> fitted(const KernelFits& fits, const Kernel& kernel, std::string_view variant) {
  const KernelFit* fit = find_fit(fits, kernel, variant);
  const bool exact_holds = variant.empty() && (!fits.scale || fits.scale->processors == 1);
  if (const MeasuredKernel* measured = exact_holds ? find_measured(fits, kernel) : nullptr) {
    return KernelTime{measured->time, measured->spread, fit != nullptr ? fit->name : "measured", FitSource::exact};
  }
  if (fit == nullptr) {
    return std::nullopt;
  }
  const double processors = processors_of(fits);
  if (fit->grid) {
    const Seconds time = time_of(*fit->grid, kernel, processors);
    return KernelTime{time, fit->grid->error.spread(), fit->name, FitSource::grid, cast_of(*fit, kernel, time)};
  }
  if (fit->family) {
    return KernelTime{time_of(*fit->family, kernel, processors), fit->family->error.spread(), fit->name,
                      FitSource::family};
  }
  if (fit->line) {
    return KernelTime{fit->line->time(bytes_of(kernel).value), fit->line->error.spread(), fit->name, FitSource::family};
  }
  return std::nullopt;
}

// A time borrowed from the same shape in the forward pass or in a format that is as fast. It keeps that kernel's ratio
// to its roofline. The spreads are assumptions.
std::optional<KernelTime> borrowed(const KernelFits& fits, const Kernel& kernel, std::string_view variant) {
  constexpr double kOtherFormat = 0.05;
  const PassRatio ratio = pass_ratio(fits, kernel);
  const std::optional<Precision> other = like_format(kernel.precision);
  const auto from = [&](KernelPass pass, Precision precision, double spread) -> std::optional<KernelTime> {
    Kernel like = kernel;
    like.pass = pass;
    like.precision = precision;
    std::optional<KernelTime> time = fitted(fits, like, variant);
    if (time) {
      const double more = more_work(kernel, like) * (pass == kernel.pass ? 1 : ratio.factor);
      time->time = time->time * more;
      time->cast = time->cast * more;
      time->spread = std::hypot(time->spread, spread);
      time->source = FitSource::borrowed;
    }
    return time;
  };
  std::optional<KernelTime> time;
  if (other) {
    time = from(kernel.pass, *other, kOtherFormat);
  }
  if (!time && kernel.pass != KernelPass::forward) {
    time = from(KernelPass::forward, kernel.precision, ratio.spread);
    if (!time && other) {
      time = from(KernelPass::forward, *other, std::hypot(ratio.spread, kOtherFormat));
    }
  }
  return time;
}

// Scales a time to another device: launch, arithmetic and memory each get a share of it in proportion to their part of
// the roofline, and each share scales by its own rate. Both arithmetic and memory count, even where the roofline takes
// only the larger.
Seconds scaled(const KernelFits& fits, const Kernel& kernel, Seconds time) {
  const FitScale& scale = *fits.scale;
  const Roofline& roofline = fits.rooflines[static_cast<std::size_t>(kernel.precision)];
  const Seconds launch = std::min(roofline.launch, time);
  const double arithmetic = (flops_of(kernel) / roofline.flops).value;
  const double memory = (bytes_of(kernel) / roofline.bandwidth).value;
  const double share = arithmetic + memory > 0 ? arithmetic / (arithmetic + memory) : 0;
  const Seconds rest = time - launch;
  return launch * scale.launch + rest * (share / scale.arithmetic(row_of(kernel.op).kind)) +
         rest * ((1 - share) / scale.memory_bandwidth);
}

double at_least_floor(const KernelFits& fits, double spread) {
  return fits.scale ? std::max(spread, fits.scale->error_floor) : spread;
}

TransferTime transfer(const KernelFits& fits, const PiecewiseLine& line, Bytes bytes, double scale) {
  return {line.time(bytes.value / scale), at_least_floor(fits, line.error.spread())};
}

} // namespace

Seconds time_of(const Roofline& roofline, const Kernel& kernel) {
  return roofline.launch + std::max(flops_of(kernel) / roofline.flops, bytes_of(kernel) / roofline.bandwidth);
}

Seconds time_of(const ResidualGrid& grid, const Kernel& kernel, double processors) {
  GridPlaces places{};
  for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
    const GridAxis& one = grid.axes[axis];
    places[axis] = place_of(one.nodes, std::log(feature(one.feature, kernel, processors)));
  }
  const double residual = interpolate(grid, places) + sum_of(grid.corrections, kernel, processors);
  return time_of(grid.base, kernel) * std::exp(residual);
}

Seconds time_of(const KernelFamily& family, const Kernel& kernel, double processors) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<FitTerm>& way : family.ways) {
    least = std::min(least, sum_of(way, kernel, processors));
  }
  return Seconds{least};
}

Seconds PiecewiseLine::time(double bytes) const {
  for (const LineSegment& segment : segments) {
    if (bytes <= segment.upto || &segment == &segments.back()) {
      return segment.start + Seconds{bytes * segment.seconds_per_byte};
    }
  }
  return Seconds{0};
}

// start / bytes + slope rises or falls all along a segment, so the least is at one of its ends.
double PiecewiseLine::least_per_byte() const {
  double least = std::numeric_limits<double>::infinity();
  double from = 0;
  for (const LineSegment& segment : segments) {
    const auto at = [&](double bytes) { return segment.start.value / bytes + segment.seconds_per_byte; };
    least = std::min(least, at(segment.upto)); // for infinite sizes, the slope
    if (from > 0 || segment.start.value == 0) {
      least = std::min(least, from > 0 ? at(from) : segment.seconds_per_byte);
    }
    from = segment.upto;
  }
  return least;
}

Watts PowerFit::power(FlopsPerSecond flops, BytesPerSecond bytes) const {
  return std::min(cap, base + Watts{per_flops * flops.value + per_bytes * bytes.value});
}

bool measured_before(const MeasuredKernel& a, const MeasuredKernel& b) { return key_of(a.kernel) < key_of(b.kernel); }

std::string_view name_of(FitSource source) {
  constexpr std::array kNames = {"exact", "grid", "family", "borrowed"};
  return kNames[static_cast<std::size_t>(source)];
}

GroupedRatio grouped_ratio(const KernelFits& fits, KernelPass pass, Precision precision) {
  const auto found = std::find_if(fits.grouped.begin(), fits.grouped.end(), [&](const GroupedRatio& one) {
    return one.pass == pass && one.precision == precision;
  });
  return found != fits.grouped.end() ? *found : GroupedRatio{};
}

std::optional<KernelTime> predict(const KernelFits& fits, const Kernel& kernel, std::string_view variant) {
  std::optional<KernelTime> time = fitted(fits, kernel, variant);
  if (!time) {
    time = borrowed(fits, kernel, variant);
  }
  if (const auto other = like_op(kernel.op); !time && other) {
    Kernel like = kernel;
    like.op = *other;
    return predict(fits, like, variant);
  }
  if (time && fits.scale) {
    const Seconds alone = scaled(fits, kernel, time->time - time->cast);
    time->time = scaled(fits, kernel, time->time);
    time->cast = time->time - alone;
    time->spread = at_least_floor(fits, time->spread);
  }
  return time;
}

std::optional<TransferTime> predict_copy(const KernelFits& fits, std::string_view from, std::string_view to,
                                         std::string_view memory, Bytes bytes) {
  for (const CopyFit& fit : fits.copies) {
    if (fit.from == from && fit.to == to && fit.memory == memory && !fit.both_ways) {
      return transfer(fits, fit.line, bytes, fits.scale ? fits.scale->copies : 1);
    }
  }
  return std::nullopt;
}

std::optional<CollectiveTimes> find_collective(const KernelFits& fits, std::string_view op, int devices) {
  const CollectiveFit* fewer = nullptr;
  const CollectiveFit* more = nullptr;
  for (const CollectiveFit& fit : fits.collectives) {
    if (fit.op == op && fit.devices <= devices && (fewer == nullptr || fit.devices > fewer->devices)) {
      fewer = &fit;
    }
    if (fit.op == op && fit.devices >= devices && (more == nullptr || fit.devices < more->devices)) {
      more = &fit;
    }
  }
  if (fewer == nullptr || more == nullptr) {
    return std::nullopt;
  }
  const double share = fewer == more ? 0
                                     : std::log(static_cast<double>(devices) / fewer->devices) /
                                           std::log(static_cast<double>(more->devices) / fewer->devices);
  return CollectiveTimes{&fits, &fewer->line, &more->line, share};
}

TransferTime CollectiveTimes::time(Bytes bytes) const {
  const double scale = fits->scale ? fits->scale->collectives : 1;
  const TransferTime low = transfer(*fits, *fewer, bytes, scale), high = transfer(*fits, *more, bytes, scale);
  return {low.time * (1 - share) + high.time * share, std::max(low.spread, high.spread)};
}

std::optional<TransferTime> predict_collective(const KernelFits& fits, std::string_view op, int devices, Bytes bytes) {
  const std::optional<CollectiveTimes> times = find_collective(fits, op, devices);
  return times ? std::optional(times->time(bytes)) : std::nullopt;
}

} // namespace stagecraft
