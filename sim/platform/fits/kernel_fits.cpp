// Predicting the time of kernels, copies and collectives from fits: docs/model.md has the formulas.
// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/fits/kernel_fits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/platform/fits/kernel_features.hpp"

namespace stagecraft {
namespace {

double feature(FeatureId id, const Kernel& kernel, double processors) {
  return kernel_features()[static_cast<std::size_t>(id)].value(kernel, processors);
}

// The position of a value between two grid nodes; values beyond the ends count as the end node.
struct Place {
  std::size_t below;
  double above_share;
};

// A place on each axis of a grid.
using Places = std::array<Place, kMostGridAxes>;

Place place_of(const std::vector<double>& nodes, double value) {
  if (nodes.size() == 1 || value <= nodes.front()) {
    return {0, 0};
  }
  if (value >= nodes.back()) {
    return {nodes.size() - 2, 1};
  }
  const auto above = std::upper_bound(nodes.begin(), nodes.end(), value);
  const auto below = above - 1;
  return {static_cast<std::size_t>(below - nodes.begin()), (value - *below) / (*above - *below)};
}

// Multilinear interpolation at places on the axes, one axis after the other. `offset` is the number of the node chosen
// by the axes before.
double interpolate(const ResidualGrid& grid, const Places& places, std::size_t axis = 0, std::size_t offset = 0) {
  if (axis == grid.axes.size()) {
    return grid.values[offset];
  }
  const Place place = places[axis];
  const std::size_t first = offset * grid.axes[axis].nodes.size() + place.below;
  const double below = place.above_share < 1 ? interpolate(grid, places, axis + 1, first) : 0;
  const double above = place.above_share > 0 ? interpolate(grid, places, axis + 1, first + 1) : 0;
  return below * (1 - place.above_share) + above * place.above_share;
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

const KernelFit* find_fit(const KernelFits& fits, const Kernel& kernel, std::string_view variant) {
  const auto found = std::find_if(fits.kernels.begin(), fits.kernels.end(), [&](const KernelFit& fit) {
    return fit.op == kernel.op && fit.pass == kernel.pass && fit.precision == kernel.precision &&
           fit.variant == variant;
  });
  return found != fits.kernels.end() ? &*found : nullptr;
}

double processors_of(const KernelFits& fits) {
  return std::max(1.0, fits.processors * (fits.scale ? fits.scale->processors : 1));
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

// How many times as much `kernel` does as one that it resembles: in FLOPs, or in bytes where memory binds it.
double more_work(const Kernel& kernel, const Kernel& like) {
  const double arithmetic = flops_of(like).value > 0 ? flops_of(kernel) / flops_of(like) : 1;
  const double data = bytes_of(like).value > 0 ? bytes_of(kernel) / bytes_of(like) : 1;
  return kernel.op == KernelOp::launch ? 1 : row_of(row_of(kernel.op).kind).matrix ? arithmetic : data;
}

// The format in which a device multiplies as fast: the other one of 16 bits, and of formats with 8 bits and scales of
// blocks that with a scale for each tensor.
std::optional<Precision> like_format(Precision precision) {
  switch (precision) {
  case Precision::fp16:
    return Precision::bf16;
  case Precision::bf16:
    return Precision::fp16;
  case Precision::mxfp8:
  case Precision::fp8_block:
    return Precision::fp8;
  default:
    return std::nullopt;
  }
}

// The op that moves the same data, whose times stand for one that was not measured.
std::optional<KernelOp> like_op(KernelOp op) {
  switch (op) {
  case KernelOp::rms_norm:
    return KernelOp::layer_norm;
  case KernelOp::cross_entropy:
    return KernelOp::softmax;
  case KernelOp::rotary:
    return KernelOp::copy;
  default:
    return std::nullopt;
  }
}

// How a pass without fits compares with the forward one: as measured for this precision, or for any.
PassRatio pass_ratio(const KernelFits& fits, const Kernel& kernel) {
  constexpr double kOtherPass = 0.2; // an assumption
  PassRatio ratio;
  ratio.spread = kOtherPass;
  for (const PassRatio& one : fits.passes) {
    const bool own = one.precision == kernel.precision, general = !one.precision && !ratio.precision;
    if (one.op == kernel.op && one.pass == kernel.pass && (own || general)) {
      ratio = one;
    }
  }
  return ratio;
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
  return launch * scale.launch + rest * (share / scale.arithmetic(kernel.op)) +
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
  Places places{};
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
  std::vector<Place> all;
  std::array<std::size_t, kMostGridAxes> end{}; ///< [axis]: behind its last one
};

// The least value of the grid's interpolation between two logarithms on each axis: a function that is linear along each
// axis between its nodes takes it at a node or at an end.
double least_interpolated(const ResidualGrid& grid, const PlacesOfAxes& looked_at, Places& places,
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
void add_places(const std::vector<double>& nodes, const FeatureRange& values, std::vector<Place>& places) {
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
  Places places{};
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
  const double arithmetic = scale.arithmetic(range.kernels.low.op);
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
