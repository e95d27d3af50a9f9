// Times of kernels that send tokens to experts: reading them, and between what was measured.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/platform/fits/copy_ends.hpp"
#include "sim/platform/fits/read_fits.hpp"

namespace stagecraft {
namespace {

DispatchFit read_fit(const yaml::Node& node, const DispatchLinks& links) {
  constexpr int kMost = 1 << 20;
  yaml::Map map(node, "dispatch");
  DispatchFit fit;
  fit.op = map.choice("op", kDispatchOps).name;
  fit.nodes = map.integer("nodes", 1, kMost);
  fit.processors = map.integer("processors", 1, kMost);
  fit.kernels = map.choice("kernels", kDispatchKernels, kDispatchKernels.front().name).name;
  fit.line.start = map.quantity<Seconds>("start", yaml::kNotNegative);
  fit.line.per_token = map.quantity<Seconds>("per_token", yaml::kNotNegative, Seconds{0});
  fit.line.own = map.number("own", yaml::kNotNegative, 0);
  fit.line.inside = map.number("inside", yaml::kNotNegative, 0);
  fit.line.between = map.number("between", yaml::kNotNegative, 0);
  fit.line.links = links;
  fit.error = read_error(map.find("error"));
  map.finish();
  return fit;
}

// From one line to another, `share` of the way.
DispatchLine mixed(const DispatchLine& one, const DispatchLine& other, double share) {
  const auto between = [share](auto a, auto b) { return a * (1 - share) + b * share; };
  return {between(one.start, other.start),   between(one.per_token, other.per_token), between(one.own, other.own),
          between(one.inside, other.inside), between(one.between, other.between),     one.links};
}

// The line at a place among lines at other places, which ascend.
DispatchLine at(const std::vector<std::pair<double, DispatchLine>>& lines, double place) {
  const auto above = std::find_if(lines.begin(), lines.end(), [&](const auto& one) { return one.first >= place; });
  if (above == lines.end()) {
    return lines.back().second;
  }
  if (above == lines.begin() || above->first == place) {
    return above->second;
  }
  const auto below = above - 1;
  return mixed(below->second, above->second, (place - below->first) / (above->first - below->first));
}

} // namespace

std::vector<DispatchFit> read_dispatch_fits(const yaml::Node& node) {
  yaml::Map map(node, "dispatches");
  map.text("source", ""); // only for people
  yaml::Map ports(map.node("links"), "links");
  const DispatchLinks links{ports.quantity<BytesPerSecond>("inside", yaml::kPositive),
                            ports.quantity<BytesPerSecond>("between", yaml::kPositive)};
  ports.finish();
  std::vector<DispatchFit> fits;
  for (const yaml::Node* item : map.list("times")) {
    const DispatchFit fit = read_fit(*item, links);
    if (std::any_of(fits.begin(), fits.end(), [&](const DispatchFit& other) {
          return other.op == fit.op && other.nodes == fit.nodes && other.processors == fit.processors &&
                 other.kernels == fit.kernels;
        })) {
      throw InputError(item->where, "a second fit of a " + fit.op + " among " + std::to_string(fit.nodes) +
                                        " nodes by " + std::to_string(fit.processors) + " multiprocessors of " +
                                        fit.kernels + "; allowed: each once");
    }
    fits.push_back(fit);
  }
  map.finish();
  return fits;
}

std::optional<DispatchLine> find_dispatch(const KernelFits& fits, std::string_view op, int nodes, int processors,
                                          std::string_view kernels) {
  const auto fits_there = [&](const DispatchFit& fit) { return fit.op == op && (fit.nodes > 1) == (nodes > 1); };
  const bool any = std::any_of(fits.dispatches.begin(), fits.dispatches.end(),
                               [&](const DispatchFit& fit) { return fits_there(fit) && fit.kernels == kernels; });
  // Those of the kernels, or all others where there are none.
  const auto counts = [&](const DispatchFit& fit) { return fits_there(fit) && (fit.kernels == kernels) == any; };
  std::vector<std::pair<double, DispatchLine>> of_nodes; // ln(nodes)
  for (const DispatchFit& fit : fits.dispatches) {
    const double place = std::log(fit.nodes);
    if (!counts(fit) || std::any_of(of_nodes.begin(), of_nodes.end(), [&](auto& one) { return one.first == place; })) {
      continue;
    }
    std::vector<std::pair<double, DispatchLine>> of_processors; // their inverse
    for (const DispatchFit& other : fits.dispatches) {
      if (counts(other) && other.nodes == fit.nodes) {
        of_processors.emplace_back(1.0 / other.processors, other.line);
      }
    }
    const auto by_place = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::sort(of_processors.begin(), of_processors.end(), by_place);
    of_nodes.emplace_back(place, at(of_processors, 1.0 / processors));
  }
  if (of_nodes.empty()) {
    return std::nullopt;
  }
  std::sort(of_nodes.begin(), of_nodes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  DispatchLine line = at(of_nodes, std::log(nodes));
  if (fits.scale) {
    const double slower = 1 / fits.scale->collectives;
    line = {line.start,           line.per_token * slower, line.own * slower,
            line.inside * slower, line.between * slower,   line.links};
  }
  return line;
}

} // namespace stagecraft
