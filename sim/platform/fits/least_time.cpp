// Bounds of what fits predict, for planners that need one over a range: docs/model.md has the proof.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/fits/least_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "sim/platform/fits/grid_places.hpp"
#include "sim/platform/fits/like_kernels.hpp"

namespace stagecraft {
namespace {

// A range of kernels with the sizes of its ends.
struct SizedRange {
  KernelRange kernels;
  double low_size = 0, high_size = 1;
  bool is_kernel = false; ///< both ends are the same
};

FeatureRange range_of(FeatureId id, const SizedRange& range, double processors) {
  const KernelFeature& one = kernel_features()[static_cast<std::size_t>(id)];
  if (range.is_kernel) {
    const double value = one.value(range.kernels.high, processors);
    return {value, value};
  }
  return stagecraft::range_of(one, range.kernels, processors);
}

// The places on each axis of a grid at which its interpolation may be least, one axis after the other.
struct PlacesOfAxes {
  std::vector<GridPlace> all;
  std::array<std::size_t, kMostGridAxes> end{}; ///< [axis]: behind its last one
};

// The least value of the grid's interpolation between two logarithms on each axis: a function that is linear along each
// axis between its nodes takes it at a node or at an end.
double least_interpolated(const ResidualGrid& grid, const PlacesOfAxes& looked_at, GridPlaces& places,
                          std::size_t axis = 0) {
  if (axis == grid.axes.size()) {
    return interpolate(grid, places);
  }
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t at = axis > 0 ? looked_at.end[axis - 1] : 0; at < looked_at.end[axis]; ++at) {
    places[axis] = looked_at.all[at];
    least = std::min(least, least_interpolated(grid, looked_at, places, axis + 1));
  }
  return least;
}

// Adds those of one axis: both ends and the nodes between them.
void add_places(const std::vector<double>& nodes, const FeatureRange& values, std::vector<GridPlace>& places) {
  const double low = std::log(values.low);
  places.push_back(place_of(nodes, low));
  if (values.high <= values.low) {
    return;
  }
  const double high = std::log(values.high);
  if (high > low) {
    places.push_back(place_of(nodes, high));
  }
  for (auto node = std::upper_bound(nodes.begin(), nodes.end(), low); node != nodes.end() && *node < high; ++node) {
    places.push_back(place_of(nodes, *node));
  }
}

double least_interpolated(const ResidualGrid& grid, const SizedRange& range, double processors) {
  GridPlaces places{};
  if (range.is_kernel) {
    for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
      const FeatureRange values = range_of(grid.axes[axis].feature, range, processors);
      places[axis] = place_of(grid.axes[axis].nodes, std::log(values.low));
    }
    return interpolate(grid, places);
  }
  PlacesOfAxes looked_at;
  std::size_t most = 0;
  for (const GridAxis& axis : grid.axes) {
    most += axis.nodes.size() + 2;
  }
  looked_at.all.reserve(most);
  for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
    add_places(grid.axes[axis].nodes, range_of(grid.axes[axis].feature, range, processors), looked_at.all);
    looked_at.end[axis] = looked_at.all.size();
  }
  return least_interpolated(grid, looked_at, places);
}

// The roofline per size is least at the high end; the residual may be least anywhere.
double least_of(const ResidualGrid& grid, const SizedRange& range, double processors) {
  double residual = least_interpolated(grid, range, processors);
  for (const FitTerm& term : grid.corrections) {
    const FeatureRange values = range_of(term.feature, range, processors);
    residual += term.coefficient * (term.coefficient > 0 ? values.low : values.high);
  }
  return time_of(grid.base, range.kernels.high).value / range.high_size * std::exp(residual);
}

// A product's part of the least time with a cast. The cast takes as long per size for any samples, and longest at one
// of the degrees at the ends.
double least_without_cast(const KernelFit& fit, const SizedRange& range, double with_cast) {
  const auto cast_at = [&](const Kernel& kernel, double size) {
    return size > 0 ? fit.cast * kernel.shape[0] * kernel.shape[1] * kernel.shape[3] / size
                    : std::numeric_limits<double>::infinity();
  };
  const double most =
      std::max(cast_at(range.kernels.low, range.low_size), cast_at(range.kernels.high, range.high_size));
  return std::max(with_cast - most,
                  std::min(with_cast, time_of(fit.grid->base, range.kernels.high).value / range.high_size));
}

double least_of(const KernelFamily& family, const SizedRange& range, double processors) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<FitTerm>& way : family.ways) {
    double sum = 0;
    for (const FitTerm& term : way) {
      sum += term.coefficient * range_of(term.feature, range, processors).low;
    }
    least = std::min(least, sum);
  }
  return least / range.high_size;
}

// On each segment, start / size + seconds per byte * bytes / size: the second term is least at the high end, the first
// one too unless it is negative.
double least_of(const PiecewiseLine& line, const SizedRange& range) {
  const double least_bytes = bytes_of(range.kernels.low).value;
  const double most_bytes = bytes_of(range.kernels.high).value;
  double least = std::numeric_limits<double>::infinity();
  double from = 0;
  for (const LineSegment& segment : line.segments) {
    const bool last = &segment == &line.segments.back();
    if ((last || segment.upto >= least_bytes) && from <= most_bytes) {
      const double at_low =
          (segment.start.value + segment.seconds_per_byte * std::max(from, least_bytes)) / range.high_size;
      const double start = segment.start.value / (segment.start.value < 0 ? range.low_size : range.high_size);
      const double apart = start + segment.seconds_per_byte * most_bytes / range.high_size;
      least = std::min(least, std::max(at_low, apart));
    }
    from = segment.upto;
  }
  return std::max(0.0, least);
}

bool lies_in(const KernelRange& kernels, const Kernel& kernel) {
  for (std::size_t i = 0; i < kMostDimensions; ++i) {
    if (kernel.shape[i] < kernels.low.shape[i] || kernel.shape[i] > kernels.high.shape[i]) {
      return false;
    }
  }
  return true;
}

// The same for fitted().
std::optional<LeastKernelTime> least_fitted(const KernelFits& fits, const SizedRange& range) {
  const Kernel& like = range.kernels.low;
  LeastKernelTime least{std::numeric_limits<double>::infinity(), false};
  if (!fits.scale || fits.scale->processors == 1) {
    const auto first = std::lower_bound(fits.measured.begin(), fits.measured.end(),
                                        MeasuredKernel{.kernel = range.kernels.low}, measured_before);
    const auto end =
        std::upper_bound(first, fits.measured.end(), MeasuredKernel{.kernel = range.kernels.high}, measured_before);
    for (auto measured = first; measured != end; ++measured) { // not all between the two lie in the range
      if (lies_in(range.kernels, measured->kernel)) {
        least.per_size = std::min(least.per_size, measured->time.value / range.high_size);
      }
    }
  }
  const double processors = processors_of(fits);
  if (const KernelFit* fit = find_fit(fits, like, "")) {
    double fitted = fit->grid     ? least_of(*fit->grid, range, processors)
                    : fit->family ? least_of(*fit->family, range, processors)
                                  : least_of(*fit->line, range);
    if (fit->cast > 0 && fit->grid) {
      fitted = least_without_cast(*fit, range, fitted);
    }
    return LeastKernelTime{std::min(least.per_size, fitted), true};
  }
  return std::isfinite(least.per_size) ? std::optional(least) : std::nullopt;
}

// The same for borrowed(), and for fitted() before it: the first source that has a time for every kernel is the last
// one that counts.
std::optional<LeastKernelTime> least_of_sources(const KernelFits& fits, const SizedRange& range) {
  const Kernel& kernel = range.kernels.high;
  const std::optional<Precision> other = like_format(kernel.precision);
  const std::array<std::pair<KernelPass, Precision>, 4> sources = {
      {{kernel.pass, kernel.precision},
       {kernel.pass, other.value_or(kernel.precision)},
       {KernelPass::forward, kernel.precision},
       {KernelPass::forward, other.value_or(kernel.precision)}}};
  std::optional<LeastKernelTime> least;
  for (auto source = sources.begin(); source != sources.end(); ++source) {
    if (std::find(sources.begin(), source, *source) != source) {
      continue; // asked before
    }
    const auto [pass, precision] = *source;
    SizedRange like = range;
    like.kernels.low.pass = like.kernels.high.pass = pass;
    like.kernels.low.precision = like.kernels.high.precision = precision;
    if (const auto one = least_fitted(fits, like)) {
      const double more = pass == kernel.pass ? 1 : pass_ratio(fits, kernel).factor;
      const double per_size = one->per_size * more_work(kernel, like.kernels.high) * more;
      least = LeastKernelTime{least ? std::min(least->per_size, per_size) : per_size, one->everywhere};
      if (one->everywhere) {
        break;
      }
    }
  }
  return least;
}

// The same for scaled(). With t >= q n for a size n, a launch of at most L in it, s the factor of the launch and k the
// least one of the rest, t' = s min(L, t) + k (t - min(L, t)) rises with t.
double least_scaled(const KernelFits& fits, const SizedRange& range, double per_size) {
  const FitScale& scale = *fits.scale;
  const Roofline& roofline = fits.rooflines[static_cast<std::size_t>(range.kernels.low.precision)];
  const auto share_of = [&](const Kernel& arithmetic, const Kernel& memory, double otherwise) {
    const double first = (flops_of(arithmetic) / roofline.flops).value;
    const double second = (bytes_of(memory) / roofline.bandwidth).value;
    return first + second > 0 && std::isfinite(first + second) ? first / (first + second) : otherwise;
  };
  const double arithmetic = scale.arithmetic(row_of(range.kernels.low.op).kind);
  const auto factor = [&](double share) { return share / arithmetic + (1 - share) / scale.memory_bandwidth; };
  const double rest = std::min(factor(share_of(range.kernels.low, range.kernels.high, 0)),
                               factor(share_of(range.kernels.high, range.kernels.low, 1)));
  const double launch = roofline.launch.value;
  if (scale.launch > rest) {
    return rest * per_size + (scale.launch - rest) * std::min(launch / range.high_size, per_size);
  }
  const double beyond = range.low_size > 0 ? rest * per_size - (rest - scale.launch) * launch / range.low_size : 0;
  return std::max(scale.launch * per_size, beyond);
}

} // namespace

std::optional<LeastKernelTime> least_time(const KernelFits& fits, const KernelRange& kernels, double low_size,
                                          double high_size) {
  const SizedRange range{kernels, low_size, high_size, kernels.low.shape == kernels.high.shape};
  std::optional<LeastKernelTime> least = least_of_sources(fits, range);
  if (least && fits.scale) {
    least->per_size = least_scaled(fits, range, least->per_size);
  }
  const auto other = like_op(kernels.low.op);
  if (!other || (least && least->everywhere)) {
    return least;
  }
  KernelRange like = kernels; // stands for the kernels that have no time of their own
  like.low.op = like.high.op = *other;
  auto least_like = least_time(fits, like, low_size, high_size);
  if (least && least_like) {
    least_like->per_size = std::min(least->per_size, least_like->per_size);
  }
  return least_like ? least_like : least;
}

} // namespace stagecraft
