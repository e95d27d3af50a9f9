// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {
namespace {

std::string shape_text(const Kernel& kernel) {
  const OpRow& row = row_of(kernel.op);
  std::string text;
  for (std::size_t i = 0; i < row.rank(); ++i) {
    text += (i > 0 ? ", " : "") + std::string(row.dimensions[i]) + ": " + std::to_string(kernel.shape[i]);
  }
  return "{" + text + "}";
}

std::string identity_of(const Kernel& kernel) {
  return "op: " + std::string(row_of(kernel.op).name) + ", pass: " + std::string(name_of(kernel.pass)) +
         ", precision: " + std::string(name_of(kernel.precision)) + ", shape: " + shape_text(kernel);
}

std::string identity_of(const KernelPoint& point) {
  std::string text = identity_of(point.kernel);
  return point.regime == Regime::burst ? text : text + ", regime: " + std::string(name_of(point.regime));
}

std::string identity_of(const CopyPoint& point) {
  std::string text = "from: " + std::string(name_of(point.from)) + ", to: " + std::string(name_of(point.to));
  if (point.from == End::host || point.to == End::host) {
    text += point.pinned ? ", memory: pinned" : ", memory: pageable";
  }
  return text + (point.both_ways ? ", both_ways: true" : "") + ", size: " + size_text(point.bytes);
}

std::string identity_of(const CollectivePoint& point) {
  return "op: " + std::string(name_of(point.op)) + ", devices: " + std::to_string(point.devices) +
         ", size: " + size_text(point.bytes);
}

std::string identity_of(const HostPoint& point) {
  std::string text = "op: " + std::string(name_of(point.op));
  switch (point.op) {
  case HostOp::launch:
    return text + ", threads: " + std::to_string(point.threads) + ", streams: " + std::to_string(point.streams);
  case HostOp::graph:
    return text + ", nodes: " + std::to_string(point.nodes);
  default:
    return text;
  }
}

std::string identity_of(const InterferencePoint& point) {
  return identity_of(point.kernel) + ", beside: " + std::string(name_of(point.beside));
}

std::string identity_of(const PowerPoint& point) {
  return point.state == PowerState::idle      ? "state: idle"
         : point.state == PowerState::blocked ? "state: blocked"
                                              : "state: \"" + to_text(point.kernel) + "\"";
}

} // namespace

std::string_view section_of(const Point& point) {
  constexpr std::array<std::string_view, 6> kSections = {"measured",  "copies",       "collectives",
                                                         "launching", "interference", "power"};
  return kSections[point.index()];
}

std::string identity(const Point& point) {
  return std::visit([](const auto& one) { return identity_of(one); }, point);
}

std::string to_text(const Point& point) {
  if (const auto* kernel = std::get_if<KernelPoint>(&point)) {
    const std::string text = to_text(kernel->kernel);
    return kernel->regime == Regime::burst ? text : text + ", " + std::string(name_of(kernel->regime));
  }
  return std::string(section_of(point)) + " " + identity(point);
}

std::string size_text(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {" B", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes > 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

} // namespace stagecraft::gpu
