// Reading the `fits` of a device file: docs/formats/device.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/platform/fits/copy_ends.hpp"
#include "sim/platform/fits/kernel_features.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/fits/read_fits.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostValues = 1'000'000;
constexpr std::size_t kMostSegments = 1000;

constexpr yaml::Range kLogarithm{-50, 50, true, "-50 to 50"};
constexpr yaml::Range kShare{0, 1e6, true, "0 to 1e6"};

FeatureId feature_id(std::string_view name, const Where& where) {
  const auto features = kernel_features();
  return static_cast<FeatureId>(&find_by_name(features, name, "kernel feature", where) - features.data());
}

std::vector<double> numbers(const yaml::Node& node, std::string_view what, const yaml::Range& range) {
  std::vector<double> values;
  for (const yaml::Node& item : node.items) {
    values.push_back(yaml::number(item, what, range));
  }
  if (values.empty()) {
    throw InputError(node.where, "'" + std::string(what) + "' is no list of numbers; allowed: one or more");
  }
  return values;
}

// A mapping from features to numbers.
std::vector<FitTerm> read_terms(const yaml::Node& node, std::string_view what, const yaml::Range& range) {
  const yaml::Map must_be_mapping(node, std::string(what));
  std::vector<FitTerm> terms;
  for (const yaml::Node::Entry& entry : node.entries) {
    terms.push_back({feature_id(entry.key, entry.where), yaml::number(entry.value, entry.key, range)});
  }
  return terms;
}

Roofline read_roofline(yaml::Map& map) {
  return {map.quantity<FlopsPerSecond>("flops", physical::kSpeed),
          map.quantity<BytesPerSecond>("bandwidth", physical::kBandwidth),
          map.quantity<Seconds>("launch", physical::kDuration)};
}

std::vector<GridAxis> read_axes(const yaml::Node& node) {
  const yaml::Map must_be_mapping(node, "axes");
  std::vector<GridAxis> axes;
  for (const yaml::Node::Entry& entry : node.entries) {
    GridAxis axis{feature_id(entry.key, entry.where), numbers(entry.value, entry.key, yaml::kPositive)};
    if (std::adjacent_find(axis.nodes.begin(), axis.nodes.end(), std::greater_equal<>()) != axis.nodes.end()) {
      throw InputError(entry.value.where,
                       "nodes of '" + entry.key + "' do not ascend; allowed: each more than the last");
    }
    for (double& value : axis.nodes) {
      value = std::log(value);
    }
    axes.push_back(std::move(axis));
  }
  if (axes.empty() || axes.size() > kMostGridAxes) {
    throw InputError(node.where, "a grid of " + std::to_string(axes.size()) + " axes; allowed: 1 to " +
                                     std::to_string(kMostGridAxes));
  }
  return axes;
}

ResidualGrid read_grid(const yaml::Node& node) {
  yaml::Map map(node, "grid");
  ResidualGrid grid;
  grid.base = read_roofline(map);
  grid.axes = read_axes(map.node("axes"));
  if (const yaml::Node* corrections = map.find("corrections")) {
    grid.corrections = read_terms(*corrections, "corrections", kLogarithm);
  }
  grid.values = numbers(map.node("values"), "values", kLogarithm);
  std::size_t nodes = 1;
  for (const GridAxis& axis : grid.axes) {
    nodes = std::min(nodes * axis.nodes.size(), kMostValues + 1);
  }
  if (grid.values.size() != nodes || nodes > kMostValues) {
    throw InputError(map.where("values"), std::to_string(grid.values.size()) + " values; allowed: " +
                                              std::to_string(nodes) + ", one per node of the axes");
  }
  grid.error = read_error(map.find("error"));
  map.finish();
  return grid;
}

KernelFamily read_family(const yaml::Node& node) {
  yaml::Map map(node, "family");
  KernelFamily family;
  for (const yaml::Node* way : map.list("ways")) {
    family.ways.push_back(read_terms(*way, "ways", yaml::kNotNegative));
    if (family.ways.back().empty()) {
      throw InputError(way->where, "a way without features; allowed: one or more");
    }
  }
  if (family.ways.empty()) {
    throw InputError(map.where("ways"), "no 'ways'; allowed: one or more");
  }
  family.error = read_error(map.find("error"));
  map.finish();
  return family;
}

PiecewiseLine read_line(yaml::Map& map) {
  PiecewiseLine line;
  const yaml::Node& segments = map.node("segments");
  if (segments.items.size() > kMostSegments) {
    throw InputError(segments.where, std::to_string(segments.items.size()) + " segments; allowed: 1 to " +
                                         std::to_string(kMostSegments));
  }
  for (const yaml::Node* item : map.list("segments")) {
    yaml::Map part(*item, "segment");
    const bool last = item == &segments.items.back();
    LineSegment segment;
    segment.upto =
        last ? std::numeric_limits<double>::infinity() : part.quantity<Bytes>("upto", physical::kCapacity).value;
    segment.start = part.quantity<Seconds>("start", {-3600, 3600, true, "-1 h to 1 h"});
    segment.seconds_per_byte = part.number("seconds_per_byte", {0, 1, true, "0 to 1"});
    part.finish();
    if (!line.segments.empty() && segment.upto <= line.segments.back().upto) {
      throw InputError(item->where, "segments do not ascend; allowed: each 'upto' more than the last");
    }
    line.segments.push_back(segment);
  }
  if (line.segments.empty()) {
    throw InputError(map.where("segments"), "no 'segments'; allowed: one or more");
  }
  line.error = read_error(map.find("error"));
  return line;
}

PiecewiseLine read_line(const yaml::Node& node) {
  yaml::Map map(node, "line");
  PiecewiseLine line = read_line(map);
  map.finish();
  return line;
}

KernelFit read_kernel(const yaml::Node& node) {
  yaml::Map map(node, "fit");
  KernelFit fit;
  const auto& op = map.choice("op", kKernelOps);
  const auto& pass = map.choice("pass", kKernelPasses);
  const auto& precision = map.choice("precision", kNumberFormats);
  fit.op = op.op;
  fit.pass = pass.pass;
  fit.precision = precision.precision;
  fit.variant = map.text("variant", "");
  fit.name = std::string(op.name) + "/" + std::string(pass.name) + "/" + std::string(precision.name) +
             (fit.variant.empty() ? "" : "/" + fit.variant);
  fit.cast = map.quantity<Seconds>("cast", {0, 1e-6, true, "0 to 1 us"}, Seconds{0}).value;
  if (const yaml::Node* grid = map.find("grid")) {
    fit.grid = read_grid(*grid);
  }
  if (const yaml::Node* family = map.find("family")) {
    fit.family = read_family(*family);
  }
  if (const yaml::Node* line = map.find("line")) {
    fit.line = read_line(*line);
  }
  map.finish();
  if (!fit.grid && !fit.family && !fit.line) {
    throw InputError(node.where, "a fit of '" + fit.name + "' without a form; allowed: 'grid', 'family', 'line'");
  }
  if (fit.cast > 0 && (fit.op != KernelOp::gemm || !fit.grid)) {
    throw InputError(map.where("cast"),
                     "a cast timed with '" + fit.name + "'; allowed: with products that have a 'grid'");
  }
  return fit;
}

CopyFit read_copy_fit(const yaml::Node& node) {
  yaml::Map map(node, "copy");
  CopyFit fit;
  fit.from = map.choice("from", kCopyEnds).name;
  fit.to = map.choice("to", kCopyEnds).name;
  fit.memory = map.choice("memory", kCopyMemories, "").name;
  fit.both_ways = map.boolean("both_ways", false);
  fit.line = read_line(map);
  map.finish();
  return fit;
}

// A replay takes these times, so none may be negative. Times never fall within a segment.
void check_never_negative(const PiecewiseLine& line, const yaml::Node& segments) {
  double from = 0;
  for (std::size_t i = 0; i < line.segments.size(); ++i) {
    const LineSegment& segment = line.segments[i];
    const Seconds least = segment.start + Seconds{from * segment.seconds_per_byte};
    if (least.value < 0) {
      throw InputError(segments.items[i].where, "a collective that takes " + to_text(least) + " for " +
                                                    to_text(Bytes{from}) +
                                                    "; allowed: 0 or more wherever a segment begins");
    }
    from = segment.upto;
  }
}

CollectiveFit read_collective_fit(const yaml::Node& node) {
  yaml::Map map(node, "collective");
  CollectiveFit fit;
  fit.op = map.choice("op", kCollectiveOps).name;
  fit.devices = map.integer("devices", 2, 1 << 20);
  fit.line = read_line(map);
  check_never_negative(fit.line, map.node("segments"));
  map.finish();
  return fit;
}

PassRatio read_pass_ratio(const yaml::Node& node) {
  yaml::Map map(node, "pass");
  PassRatio ratio;
  ratio.op = map.choice("op", kKernelOps).op;
  ratio.pass = map.choice("pass", kKernelPasses).pass;
  if (ratio.pass == KernelPass::forward) {
    throw InputError(map.where("pass"), "'forward' is what ratios refer to; allowed: backward-input, backward-weight");
  }
  if (map.has("precision")) {
    ratio.precision = map.choice("precision", kNumberFormats).precision;
  }
  ratio.factor = map.number("factor", physical::kFactor);
  ratio.spread = map.number("spread", kShare);
  ratio.sums = map.number("sums", {0, 1, true, "0 to 1"}, ratio.sums);
  ratio.source = map.text("source");
  map.finish();
  return ratio;
}

GroupedRatio read_grouped_ratio(const yaml::Node& node) {
  constexpr double kMostFactor = 100;
  yaml::Map map(node, "grouped");
  GroupedRatio ratio;
  ratio.pass = map.choice("pass", kKernelPasses).pass;
  ratio.precision = map.choice("precision", kNumberFormats).precision;
  ratio.factor = map.number("factor", {1, kMostFactor, true, "1 to 100"});
  ratio.spread = map.number("spread", kShare);
  ratio.source = map.text("source");
  map.finish();
  return ratio;
}

PowerFit read_power_fit(const yaml::Node& node) {
  yaml::Map map(node, "power");
  PowerFit fit;
  fit.idle = map.quantity<Watts>("idle", physical::kPower);
  fit.base = map.quantity<Watts>("base", physical::kPower);
  fit.cap = map.quantity<Watts>("cap", yaml::kPositive);
  fit.per_flops = map.number("per_flop", yaml::kNotNegative);
  fit.per_bytes = map.number("per_byte", yaml::kNotNegative);
  fit.error = read_error(map.find("error"));
  map.finish();
  return fit;
}

} // namespace

FitError read_error(const yaml::Node* node) {
  FitError error;
  if (node == nullptr) {
    error.scheme = "none";
    return error;
  }
  yaml::Map map(*node, "error");
  error.mean = map.number("mean", kShare);
  error.median = map.number("median", kShare);
  error.p90 = map.number("p90", kShare);
  error.bias = map.number("bias", {-1e6, 1e6, true, "-1e6 to 1e6"});
  error.points = map.integer("points", 1, 1 << 30);
  error.scheme = map.text("scheme");
  map.finish();
  return error;
}

KernelFits read_kernel_fits(const yaml::Node& node) {
  yaml::Map map(node, "fits");
  KernelFits fits;
  for (const yaml::Node* item : map.list("provenance")) { // only for people
    yaml::scalar(*item, "provenance");
  }
  fits.processors = map.integer("processors", 1, 1 << 20, 1);
  for (const yaml::Node* item : map.list("kernels")) {
    fits.kernels.push_back(read_kernel(*item));
    const std::string& name = fits.kernels.back().name;
    if (std::count_if(fits.kernels.begin(), fits.kernels.end(), [&](auto& other) { return other.name == name; }) > 1) {
      throw InputError(item->where, "a second fit of '" + name + "'; allowed: each once");
    }
  }
  for (const yaml::Node* item : map.list("copies")) {
    fits.copies.push_back(read_copy_fit(*item));
  }
  for (const yaml::Node* item : map.list("collectives")) {
    const CollectiveFit fit = read_collective_fit(*item);
    if (std::any_of(fits.collectives.begin(), fits.collectives.end(),
                    [&](const CollectiveFit& other) { return other.op == fit.op && other.devices == fit.devices; })) {
      throw InputError(item->where, "a second fit of " + fit.op + " among " + std::to_string(fit.devices) +
                                        " devices; allowed: each once");
    }
    fits.collectives.push_back(fit);
  }
  for (const yaml::Node* item : map.list("passes")) {
    const PassRatio ratio = read_pass_ratio(*item);
    if (std::any_of(fits.passes.begin(), fits.passes.end(), [&](const PassRatio& other) {
          return other.op == ratio.op && other.pass == ratio.pass && other.precision == ratio.precision;
        })) {
      throw InputError(item->where, "a second ratio of " + std::string(row_of(ratio.op).name) + ", " +
                                        std::string(row_of(ratio.pass).name) + "; allowed: each once");
    }
    fits.passes.push_back(ratio);
  }
  for (const yaml::Node* item : map.list("grouped")) {
    const GroupedRatio ratio = read_grouped_ratio(*item);
    if (std::any_of(fits.grouped.begin(), fits.grouped.end(), [&](const GroupedRatio& other) {
          return other.pass == ratio.pass && other.precision == ratio.precision;
        })) {
      throw InputError(item->where, "a second ratio of grouped products, " + std::string(row_of(ratio.pass).name) +
                                        "; allowed: each once for a precision");
    }
    fits.grouped.push_back(ratio);
  }
  if (const yaml::Node* dispatches = map.find("dispatches")) {
    fits.dispatches = read_dispatch_fits(*dispatches);
  }
  if (const yaml::Node* power = map.find("power")) {
    fits.power = read_power_fit(*power);
  }
  map.finish();
  return fits;
}

} // namespace stagecraft
