// What was fitted to measurements of a device, and the time of a kernel, copy or collective that follows from it. Plain
// values, read from a device file (docs/formats/device.md); docs/model.md has the formulas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/base/kernel/kernel.hpp"

namespace stagecraft {

/// How far off a fit is: (predicted - measured) / measured at shapes that it was not fitted to.
struct FitError {
  double mean = 0, median = 0, p90 = 0; ///< of the absolute errors
  double bias = 0;                      ///< mean of the signed errors
  int points = 0;
  std::string scheme; ///< how the unseen shapes were chosen; "none" where nothing was held back

  /// Standard deviation of a normally distributed error whose mean absolute value is `mean`.
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

/// A feature with its coefficient.
struct FitTerm {
  FeatureId feature = 0;
  double coefficient = 0;

  bool operator==(const FitTerm&) const = default;
};

/// One axis of a grid: nodes along ln of a feature, ascending.
struct GridAxis {
  FeatureId feature = 0;
  std::vector<double> nodes; ///< natural logarithms

  bool operator==(const GridAxis&) const = default;
};

/// ln(time / roofline) = corrections + a value interpolated multilinearly in the logarithms of the axes' features,
/// constant beyond their ends.
struct ResidualGrid {
  Roofline base;
  std::vector<GridAxis> axes;
  std::vector<FitTerm> corrections; ///< added to the logarithm
  std::vector<double> values;       ///< one per node; the last axis varies fastest
  FitError error;

  bool operator==(const ResidualGrid&) const = default;
};

/// Time = the least, over several ways to compute it, of sum(coefficient x feature). No coefficient is negative.
struct KernelFamily {
  std::vector<std::vector<FitTerm>> ways;
  FitError error;

  bool operator==(const KernelFamily&) const = default;
};

/// Time = start + bytes * seconds_per_byte, up to `upto` bytes. The last segment has no upper end.
struct LineSegment {
  double upto = 0;
  Seconds start;
  double seconds_per_byte = 0;

  bool operator==(const LineSegment&) const = default;
};

/// Time as a function of bytes, for copies, collectives, and operators bound by memory.
struct PiecewiseLine {
  std::vector<LineSegment> segments;
  FitError error;

  Seconds time(double bytes) const;
  /// The least of time / bytes over all sizes.
  double least_per_byte() const;
  bool operator==(const PiecewiseLine&) const = default;
};

/// All fits of one kind of kernel.
struct KernelFit {
  std::string name; ///< "gemm/forward/bf16"; fits of one name err together
  KernelOp op = KernelOp::gemm;
  KernelPass pass = KernelPass::forward;
  Precision precision = Precision::fp32;
  std::string variant; ///< another implementation that a caller must ask for, such as "fp8-cache"
  std::optional<ResidualGrid> grid;
  std::optional<KernelFamily> family;
  std::optional<PiecewiseLine> line; ///< by the bytes that bytes_of() gives
  /// Seconds that the times take more for each element of a product's first operand, m k, since a kernel that casts it
  /// to the format was timed with the product; 0: the product was timed alone.
  double cast = 0;

  bool operator==(const KernelFit&) const = default;
};

/// How the time of a kernel in another pass follows from that of the same product in the forward pass.
struct PassRatio {
  KernelOp op = KernelOp::gemm;
  KernelPass pass = KernelPass::backward_input;
  std::optional<Precision> precision; ///< nothing: all that have no ratio of their own
  double factor = 1;                  ///< time / (time of as much work forward)
  double spread = 0;                  ///< relative standard deviation of what was measured around it
  /// Of a gradient of weights that the product adds to a sum: the part of the time that memory takes for the sum which
  /// the product does not hide. Where it was not measured, the middle of what an A100 and a B200 showed, 0.35 and 0.75.
  double sums = 0.55;
  std::string source; ///< for people

  bool operator==(const PassRatio&) const = default;
};

/// How the time of a grouped product, of one kernel or several streams, follows from that of as many products side by
/// side, each with its own tiles, as fits of products have it.
struct GroupedRatio {
  KernelPass pass = KernelPass::forward;
  Precision precision = Precision::bf16; ///< of the products; in others they are not known to be slower
  double factor = 1;                     ///< time / (time of as many products); 1 and above
  double spread = 0;                     ///< relative standard deviation of what was measured around it
  std::string source;                    ///< for people

  bool operator==(const GroupedRatio&) const = default;
};

/// A shape that was measured, with its time.
struct MeasuredKernel {
  Kernel kernel;
  Seconds time;
  double spread = 0; ///< relative: interquartile range / 1.349 / median

  bool operator==(const MeasuredKernel&) const = default;
};

/// Copies between `from` and `to`: "host", "device", "peer".
struct CopyFit {
  std::string from, to, memory; ///< memory of the host's end: "pinned" or "pageable"; else empty
  bool both_ways = false;       ///< a copy in the other direction runs at the same time
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

/// Bandwidths of a port inside a node and of a NIC between nodes.
struct DispatchLinks {
  BytesPerSecond inside, between;

  bool operator==(const DispatchLinks&) const = default;
};

/// What a kernel takes that sends tokens to the ranks of their experts (`dispatch`) or brings back what these made of
/// them (`combine`): start + tokens * per_token + bytes of a rank's tokens, each once, * own + bytes that it sends
/// inside its node * inside + bytes that it sends to other nodes * between.
struct DispatchLine {
  Seconds start, per_token;
  double own = 0, inside = 0, between = 0; ///< seconds per byte
  DispatchLinks links{};                   ///< through which it was measured

  bool operator==(const DispatchLine&) const = default;
};
struct DispatchFit {
  std::string op; ///< "dispatch" or "combine"
  int nodes = 1;
  int processors = 1;             ///< multiprocessors that the kernel takes
  std::string kernels = "deepep"; ///< whose it is, or "hybridep"
  DispatchLine line;
  FitError error;

  bool operator==(const DispatchFit&) const = default;
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

/// Scales the fits of another device to this one: its roofline splits each predicted time into launch, arithmetic and
/// memory.
struct FitScale {
  double flops = 1, memory_bandwidth = 1, launch = 1, processors = 1, copies = 1, collectives = 1;
  std::optional<double> attention; ///< in place of `flops`, of attention
  double error_floor = 0;          ///< least spread of a scaled prediction

  /// The factor of the arithmetic of such kernels.
  double arithmetic(KernelKind kind) const { return kind == KernelKind::attention ? attention.value_or(flops) : flops; }

  bool operator==(const FitScale&) const = default;
};

/// Everything fitted for one device.
struct KernelFits {
  double processors = 1; ///< multiprocessors, which share the tiles of a kernel
  /// One per precision. They split times for `scale`; their rates are 0 where nothing scales.
  std::array<Roofline, kNumberFormats.size()> rooflines;
  std::vector<MeasuredKernel> measured; ///< sorted by measured_before()
  std::vector<KernelFit> kernels;
  std::vector<CopyFit> copies;
  std::vector<CollectiveFit> collectives;
  std::vector<DispatchFit> dispatches;
  std::optional<PowerFit> power;
  std::optional<FitScale> scale;
  std::vector<PassRatio> passes;
  std::vector<GroupedRatio> grouped; ///< at most one for each pass and precision

  bool operator==(const KernelFits&) const = default;
};

Seconds time_of(const Roofline& roofline, const Kernel& kernel);
Seconds time_of(const ResidualGrid& grid, const Kernel& kernel, double processors);
Seconds time_of(const KernelFamily& family, const Kernel& kernel, double processors);

/// The sort order of KernelFits::measured.
bool measured_before(const MeasuredKernel& a, const MeasuredKernel& b);

/// Where a predicted time comes from, best first.
enum class FitSource {
  exact,    ///< this shape was measured
  grid,     ///< residuals on top of a roofline
  family,   ///< non-negative least squares, or a line in bytes
  borrowed, ///< another pass or a similar precision, by the ratio of their rooflines
};
/// "exact", "grid", …
std::string_view name_of(FitSource source);

struct KernelTime {
  Seconds time;
  double spread = 0;       ///< relative standard deviation of measured / predicted
  std::string_view family; ///< KernelFit::name, valid while the fits live; predictions of one family err together
  FitSource source = FitSource::exact;
  Seconds cast; ///< of `time`, a cast of a product's first operand (KernelFit::cast)
};

/// How long a kernel takes alone on the device, its launch included. Nothing where no fit applies; the caller then
/// falls back to the roofline. `variant` asks for another implementation, and only that one.
std::optional<KernelTime> predict(const KernelFits& fits, const Kernel& kernel, std::string_view variant = {});

/// The ratio of grouped products in a pass; of a factor of 1 where none was measured.
GroupedRatio grouped_ratio(const KernelFits& fits, KernelPass pass, Precision precision);

struct TransferTime {
  Seconds time;
  double spread = 0; ///< relative standard deviation
};
/// The time of a copy, named as in CopyFit; nothing where none was measured.
std::optional<TransferTime> predict_copy(const KernelFits& fits, std::string_view from, std::string_view to,
                                         std::string_view memory, Bytes bytes);
/// The measured times of a collective among some number of devices of one node: those among `fewer` and `more` devices,
/// of which `share` is the part of `more`. Valid while the fits live.
struct CollectiveTimes {
  const KernelFits* fits = nullptr;
  const PiecewiseLine* fewer = nullptr;
  const PiecewiseLine* more = nullptr;
  double share = 0;

  TransferTime time(Bytes bytes) const;
};
/// Between measured numbers of devices times are interpolated over ln(devices); beyond them there is nothing.
std::optional<CollectiveTimes> find_collective(const KernelFits& fits, std::string_view op, int devices);
/// The time of a collective among `devices` of one node; nothing where find_collective() has nothing.
std::optional<TransferTime> predict_collective(const KernelFits& fits, std::string_view op, int devices, Bytes bytes);

/// What a dispatch or a combine takes among ranks of so many nodes, by kernels that take so many multiprocessors.
/// Between measured numbers of nodes coefficients are interpolated over ln(nodes), between numbers of processors over
/// their inverse; beyond them the nearest holds, but what was measured in one node says nothing of several, nor the
/// other way round. Where those of these `kernels` were not measured there, others stand for them; nothing where none
/// was.
std::optional<DispatchLine> find_dispatch(const KernelFits& fits, std::string_view op, int nodes, int processors,
                                          std::string_view kernels = "deepep");

/// Reads the `fits` of a device file. Throws InputError.
KernelFits read_kernel_fits(const yaml::Node& node);

} // namespace stagecraft
