// What was fitted to measurements of a device, and how long a kernel, a copy or a collective takes by it. Plain values,
// read from a device file (docs/formats/device.md); the formulas stand in docs/model.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/kernel/kernel.hpp"
#include "sim/base/yaml.hpp"

namespace stagecraft {

/// How far off a fit is: errors of (predicted - measured) / measured at shapes that it had not seen.
struct FitError {
  double mean = 0, median = 0, p90 = 0; ///< of the absolute errors
  double bias = 0;                      ///< mean of the signed errors
  int points = 0;
  std::string scheme; ///< how the unseen shapes were chosen; "none" where nothing was held back

  /// Standard deviation of a normal error of this mean.
  double spread() const { return 1.2533 * mean; }
  bool operator==(const FitError&) const = default;
};

/// Time = launch + max(flops / rate, bytes / bandwidth).
struct Roofline {
  FlopsPerSecond flops;
  BytesPerSecond bandwidth;
  Seconds launch;

  bool operator==(const Roofline&) const = default;
};

/// An index into kernel_features().
using FeatureId = int;

/// A coefficient of a feature.
struct FitTerm {
  FeatureId feature = 0;
  double coefficient = 0;

  bool operator==(const FitTerm&) const = default;
};

/// Nodes along ln of a feature, ascending.
struct GridAxis {
  FeatureId feature = 0;
  std::vector<double> nodes; ///< natural logarithms

  bool operator==(const GridAxis&) const = default;
};

/// ln(time / roofline) = multilinear in the logarithms of the axes' features, constant outside their ends, +
/// corrections.
struct ResidualGrid {
  Roofline base;
  std::vector<GridAxis> axes;
  std::vector<FitTerm> corrections; ///< added to the logarithm
  std::vector<double> values;       ///< of every node, the last axis running fastest
  FitError error;

  bool operator==(const ResidualGrid&) const = default;
};

/// Time = the least, over ways of computing, of sum(coefficient x feature), coefficients not negative.
struct KernelFamily {
  std::vector<std::vector<FitTerm>> ways;
  FitError error;

  bool operator==(const KernelFamily&) const = default;
};

/// Up to `upto` bytes: time = start + bytes * seconds_per_byte. The last segment has no end.
struct LineSegment {
  double upto = 0;
  Seconds start;
  double seconds_per_byte = 0;

  bool operator==(const LineSegment&) const = default;
};

/// Time by bytes: of copies, collectives, and operators that the memory bounds.
struct PiecewiseLine {
  std::vector<LineSegment> segments;
  FitError error;

  Seconds time(double bytes) const;
  bool operator==(const PiecewiseLine&) const = default;
};

/// All that is known of one kind of kernel.
struct KernelFit {
  std::string name; ///< "gemm/forward/bf16", errors of one name go together
  KernelOp op = KernelOp::gemm;
  KernelPass pass = KernelPass::forward;
  Precision precision = Precision::fp32;
  std::string variant; ///< another way to run it that a caller must ask for, as "fp8-cache"
  std::optional<ResidualGrid> grid;
  std::optional<KernelFamily> family;
  std::optional<PiecewiseLine> line; ///< by bytes_of

  bool operator==(const KernelFit&) const = default;
};

/// One shape that was measured itself.
struct MeasuredKernel {
  Kernel kernel;
  Seconds time;
  double spread = 0; ///< relative: interquartile range / 1.349 / median

  bool operator==(const MeasuredKernel&) const = default;
};

/// Copies between `from` and `to`: "host", "device", "peer".
struct CopyFit {
  std::string from, to, memory; ///< memory: "pinned" or "pageable", of the host's end; else empty
  bool both_ways = false;       ///< the other direction runs at once
  PiecewiseLine line;

  bool operator==(const CopyFit&) const = default;
};

/// Collectives among the devices of one node; bytes as docs/formats/measurements.md counts them.
struct CollectiveFit {
  std::string op;
  int devices = 2;
  PiecewiseLine line;

  bool operator==(const CollectiveFit&) const = default;
};

/// Power = min(cap, base + per_flops * FLOP/s + per_bytes * B/s).
struct PowerFit {
  Watts idle, base, cap;
  double per_flops = 0; ///< J per FLOP
  double per_bytes = 0; ///< J per byte
  FitError error;

  Watts power(FlopsPerSecond flops, BytesPerSecond bytes) const;
  bool operator==(const PowerFit&) const = default;
};

/// The device is another one, scaled: each predicted time is split into launch, arithmetic and memory by its roofline.
struct FitScale {
  double flops = 1, memory_bandwidth = 1, launch = 1, processors = 1, copies = 1, collectives = 1;
  double error_floor = 0; ///< a prediction's spread is at least this

  bool operator==(const FitScale&) const = default;
};

/// Everything fitted of a device.
struct KernelFits {
  double processors = 1; ///< multiprocessors, that tiles are shared out to
  /// By precision, split times for `scale`; rates of 0 where nothing scales.
  std::array<Roofline, kPrecisions.size()> rooflines;
  std::vector<MeasuredKernel> measured; ///< sorted by measured_before()
  std::vector<KernelFit> kernels;
  std::vector<CopyFit> copies;
  std::vector<CollectiveFit> collectives;
  std::optional<PowerFit> power;
  std::optional<FitScale> scale;

  bool operator==(const KernelFits&) const = default;
};

Seconds time_of(const Roofline& roofline, const Kernel& kernel);
Seconds time_of(const ResidualGrid& grid, const Kernel& kernel, double processors);
Seconds time_of(const KernelFamily& family, const Kernel& kernel, double processors);

/// The order of KernelFits::measured.
bool measured_before(const MeasuredKernel& a, const MeasuredKernel& b);

/// Where a predicted time comes from, best first.
enum class FitSource {
  exact,    ///< this shape was measured
  grid,     ///< residuals over a roofline
  family,   ///< non-negative least squares, or a line by bytes
  borrowed, ///< another pass or a like precision, by the ratio of their rooflines
};
/// "exact", "grid", …
std::string_view name_of(FitSource source);

struct KernelTime {
  Seconds time;
  double spread = 0;       ///< relative standard deviation of measured / predicted
  std::string_view family; ///< KernelFit::name, valid while the fits live: errors within one go together
  FitSource source = FitSource::exact;
};

/// How long a kernel takes alone on the device, its launch included; nothing where the fits say nothing of it, and the
/// caller falls back to its roofline. `variant` asks for another way to run it, and only that one.
std::optional<KernelTime> predict(const KernelFits& fits, const Kernel& kernel, std::string_view variant = {});

struct TransferTime {
  Seconds time;
  double spread = 0; ///< relative
};
/// A copy as CopyFit names it; nothing where none was measured.
std::optional<TransferTime> predict_copy(const KernelFits& fits, std::string_view from, std::string_view to,
                                         std::string_view memory, Bytes bytes);
/// A collective among `devices` of one node; numbers of devices between measured ones are interpolated in time over
/// ln(devices), others are unknown.
std::optional<TransferTime> predict_collective(const KernelFits& fits, std::string_view op, int devices, Bytes bytes);

/// Reads the `fits` of a device file. Throws InputError.
KernelFits read_kernel_fits(const yaml::Node& node);

} // namespace stagecraft
