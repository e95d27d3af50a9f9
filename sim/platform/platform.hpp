// The cluster as plain values: device types, devices, hosts, and the network between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/kernel/kernel_kind.hpp"
#include "sim/base/units.hpp"
#include "sim/platform/clocks.hpp"
#include "sim/platform/price.hpp"

namespace stagecraft {

struct KernelFits; // sim/platform/fits/kernel_fits.hpp

using DeviceId = int; ///< index into Platform::devices
using LinkId = int;   ///< index into Platform::links

/// Where a device type's numbers come from.
enum class Origin { measured, catalogue, made_up };

/// Where the power of a blocked device lies between idle and busy, unless its type says it. Measured on pipelines of
/// Chung et al. (2024): 0.31 on A40, 0.36 and 0.40 on A100 (docs/validation/clocks.md).
inline constexpr double kWaitingShare = 0.35;
/// The lowest and highest of these.
inline constexpr double kLeastWaitingShare = 0.31, kMostWaitingShare = 0.4;

/// How many times as long computing takes on a device while kernels beside it exchange data with other devices; 1: as
/// long as alone. docs/model.md, "Beside exchanges".
struct BesideExchange {
  double matrix = 1;    ///< of passes, most of whose time is in matrix products
  double other = 1;     ///< of kernels that memory bounds, as an optimiser step's
  bool by_rule = false; ///< in place of both, from the multiprocessors and the memory traffic that each exchange takes

  bool operator==(const BesideExchange&) const = default;
};

/// What one accelerator can do. Rates are effective, as kernels reach them; peaks are the vendor's, for planners that
/// split by nominal power (Wang 2020).
struct DeviceType {
  std::string name;   ///< model family first, in lower case: a100-sxm-80gb
  std::string vendor; ///< devices of two vendors exchange data through host memory
  Origin origin = Origin::catalogue;
  /// rates[kind][precision]; nothing where the device lacks the kernel or the number format.
  std::array<std::array<std::optional<FlopsPerSecond>, kNumberFormats.size()>, kKernelKinds.size()> rates;
  std::array<std::optional<FlopsPerSecond>, kNumberFormats.size()> peak; ///< nominal matrix peak
  Bytes memory;
  BytesPerSecond memory_bandwidth; ///< effective
  Seconds launch_overhead;         ///< per kernel
  double host_speed = 1;           ///< how fast its host issues kernels, relative to a DGX H100's (docs/model.md)
  int processors = 0; ///< multiprocessors of a GPU or of a part of one, cores of other devices; 0: not given
  Watts idle, busy;
  std::optional<Watts> waiting; ///< in a job but blocked, as by a kernel that spins for data; see waiting_power()
  std::optional<Clocks> clocks; ///< what it draws at lower clocks, where its file states it; usual_clocks() otherwise
  std::vector<std::string> calibrated_on;       ///< models to whose measured runs `host_speed` was fitted
  std::vector<std::string> power_calibrated_on; ///< models to whose measured runs `idle` and `clocks` were fitted
  Price price;
  BesideExchange beside_exchange;
  /// What was fitted to measurements, if anything. Copies of a type share it, and compare equal only then.
  std::shared_ptr<const KernelFits> fits;

  /// What large products draw: `busy`, or what the highest clock draws where the board's limit is never reached.
  Watts busy_power() const { return clocks ? std::min(busy, std::max(idle, clocks->full)) : busy; }
  /// What a blocked device draws: as given, or by the rule idle + kWaitingShare (busy_power() - idle).
  Watts waiting_power() const { return waiting.value_or(idle + kWaitingShare * (busy_power() - idle)); }

  std::optional<FlopsPerSecond> rate(KernelKind kind, Precision precision) const {
    return rates[static_cast<std::size_t>(kind)][static_cast<std::size_t>(precision)];
  }

  bool operator==(const DeviceType&) const = default;
};

/// The processor side of a node.
struct Host {
  int cores = 1;
  FlopsPerSecond core_speed;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  BytesPerSecond disk_bandwidth;
  Watts idle;      ///< whole host, nothing running
  Watts core_busy; ///< added per computing core
  Watts core_spin; ///< added per core that waits by spinning
  Price price;

  bool operator==(const Host&) const = default;
};

struct Node {
  std::string name;
  Host host;
  LinkId disk = -1;   ///< from the node's disk to its host; -1: no limit
  LinkId memory = -1; ///< the host's memory: data crosses it once when written and once when read; -1: no limit

  bool operator==(const Node&) const = default;
};

struct Device {
  std::string name; ///< "node-0/v100-sxm2-16gb-2"
  int type = 0;     ///< index into Platform::types
  int node = 0;     ///< index into Platform::nodes

  bool operator==(const Device&) const = default;
};

/// A vertex of the network. Data may pass through switches and the hosts of the two ends' nodes, never through a third
/// device or node.
struct Vertex {
  enum class Kind { device, host, internal_switch, fabric_switch, disk };
  Kind kind = Kind::device;
  std::string name;
  int index = -1;       ///< the DeviceId of a device, the node index of a host or disk, -1 otherwise
  bool reduces = false; ///< a switch that adds up what its ports bring, and sends one input to all ports
  /// Of a switch: collectives among its devices take the times that the fits of their type have, which were measured at
  /// ports of this bandwidth; 0: they do not. All of its devices are then of one type, with fits of collectives.
  BytesPerSecond measured_at{};

  bool operator==(const Vertex&) const = default;
};

inline constexpr const char* kNcclVendor = "nvidia"; ///< of the devices that NCCL is for

/// Where a link says so, NCCL carries collectives over it: a hop takes the library's own latencies (sim/collective/
/// protocol.hpp), which hold where the link's latency is `at`.
struct NcclLink {
  enum class Wire { none, nvlink, pci, network };
  Wire wire = Wire::none;
  Seconds at;

  bool operator==(const NcclLink&) const = default;
};

/// One direction of a wire, or the memory of a host, whose two ends are that host. Concurrent transfers share its
/// bandwidth; the latencies along a route add up.
struct Link {
  std::string name;     ///< "from>to"
  int from = 0, to = 0; ///< vertices
  BytesPerSecond bandwidth;
  Seconds latency;
  Watts idle{}, busy{}; ///< of this direction's half of both ends: nothing flowing, full
  double spread = 0;    ///< relative standard deviation of true / stated times; 0: the stated times are exact
  NcclLink nccl{};

  bool operator==(const Link&) const = default;
};

/// Devices that are joined along the axes of a grid, each to the next one and the one before, as the chips of a TPU
/// slice are. What is under way between two of them passes through those in between, along the last axis that they
/// differ in first.
struct Torus {
  struct Axis {
    int size = 1;
    bool wraps = false; ///< its last device is joined to its first

    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;        ///< outermost first
  std::vector<DeviceId> devices; ///< neighbours along the last axis stand beside each other
  std::vector<LinkId> links;     ///< [(place in `devices` x axes + axis) x 2 + direction]: up the axis, down; -1: none

  LinkId link(int place, std::size_t axis, bool up) const {
    return links[(static_cast<std::size_t>(place) * axes.size() + axis) * 2 + (up ? 0 : 1)];
  }

  bool operator==(const Torus&) const = default;
};

/// A platform is right by construction: loaders check it, others trust it.
struct Platform {
  std::string name, description;
  std::vector<DeviceType> types;
  std::vector<Node> nodes;
  std::vector<Device> devices;  ///< in the order of the file; planners that keep an order keep this one
  std::vector<Vertex> vertices; ///< the device of DeviceId d is vertex d
  std::vector<Link> links;
  std::vector<Torus> tori; ///< a device is in one at most

  const DeviceType& type_of(DeviceId device) const {
    return types[static_cast<std::size_t>(devices[static_cast<std::size_t>(device)].type)];
  }

  bool operator==(const Platform&) const = default;
};

} // namespace stagecraft
