// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/library_changes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "sim/base/improves.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/platform/load_platform.hpp"

namespace stagecraft::fit {
namespace {

// Those of which the tuning has times, and the part of a buffer that crosses a port.
struct TunedOp {
  std::string_view name;
  CollectiveKind kind;
};
constexpr std::array kTuned = {TunedOp{"all-reduce", CollectiveKind::all_reduce},
                               TunedOp{"reduce-scatter", CollectiveKind::reduce_scatter},
                               TunedOp{"all-gather", CollectiveKind::all_gather}};

// The devices round a switch whose ports NCCL uses: NVLink, or PCIe up to what its fifth generation carries.
Platform switch_of(const DeviceType& type, BytesPerSecond port, int devices) {
  constexpr BytesPerSecond kMostPcie{64e9};
  Platform platform = make_star_platform(type, devices, port, Seconds{0});
  for (Link& link : platform.links) {
    link.nccl = {port <= kMostPcie ? NcclLink::Wire::pci : NcclLink::Wire::nvlink, Seconds{0}};
  }
  platform.vertices.back().reduces = generation_of(type) >= NcclGeneration::hopper;
  return platform;
}

// Ascending in `start`, of all ways in which the devices can carry out the collective.
std::vector<LineSegment> lines_of(const Platform& platform, CollectiveKind kind) {
  std::vector<DeviceId> all(platform.devices.size());
  std::iota(all.begin(), all.end(), 0);
  Router router(platform);
  std::vector<LineSegment> lines;
  for (const Way& way : ways_of(kind, all, router, "auto")) {
    for (const CoupledFlow& flow : way.flows) {
      if (flow.measured) {
        lines.insert(lines.end(), flow.measured->lines.begin(), flow.measured->lines.end());
      }
    }
  }
  std::sort(lines.begin(), lines.end(), [](const LineSegment& a, const LineSegment& b) {
    return std::tie(a.start, a.seconds_per_byte) < std::tie(b.start, b.seconds_per_byte);
  });
  return lines;
}

} // namespace

BytesPerSecond port_bandwidth(const std::vector<MeasuredCollective>& collectives) {
  std::map<std::pair<std::string, int>, std::map<double, Seconds>> tables; // the least time of each size
  for (const MeasuredCollective& row : collectives) {
    if (row.op == "reduce-scatter" || row.op == "all-gather") {
      const auto [least, is_new] = tables[{row.op, row.devices}].try_emplace(row.size.value, row.time.median);
      least->second = std::min(least->second, row.time.median);
    }
  }
  BytesPerSecond most{0};
  for (const auto& [group, times] : tables) {
    if (times.size() > 1) {
      const auto last = std::prev(times.end()), before = std::prev(last);
      const double share = (group.second - 1.0) / group.second;
      const Seconds longer = last->second - before->second;
      most = longer.value > 0 ? std::max(most, Bytes{share * (last->first - before->first)} / longer) : most;
    }
  }
  return most;
}

std::vector<double> library_changes(const DeviceType& type, BytesPerSecond port, std::string_view op, int devices) {
  const auto tuned = std::find_if(kTuned.begin(), kTuned.end(), [&](const TunedOp& one) { return one.name == op; });
  if (type.vendor != kNcclVendor || port.value <= 0 || devices < 2 || tuned == kTuned.end()) {
    return {};
  }
  const std::vector<LineSegment> lines = lines_of(switch_of(type, port, devices), tuned->kind);
  std::vector<double> changes;
  for (const LineSegment* at = lines.empty() ? nullptr : lines.data(); at != nullptr;) {
    double nearest = kInfinity; // where a faster line crosses this one
    const LineSegment* next = nullptr;
    for (const LineSegment& line : lines) {
      const double gain = at->seconds_per_byte - line.seconds_per_byte;
      if (const double crossing = (line.start - at->start).value / gain; gain > 0 && crossing < nearest) {
        nearest = crossing;
        next = &line;
      }
    }
    if (next != nullptr) {
      changes.push_back(nearest);
    }
    at = next;
  }
  return changes;
}

} // namespace stagecraft::fit
