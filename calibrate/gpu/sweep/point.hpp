// A point: what one line of a file of measurements measures, with its name there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// The conditions under which a kernel runs.
enum class Regime : std::uint8_t {
  burst,     ///< cool device, operands not in the cache
  sustained, ///< after seconds of the same kernel, limited by power
  warm,      ///< repeatedly on the same operands
  graph,     ///< launched by a graph
  event,     ///< after an event of another stream
  contended, ///< while the rest of the device moves memory
};

inline constexpr std::array<std::string_view, 6> kRegimes = {"burst", "sustained", "warm",
                                                             "graph", "event",     "contended"};
constexpr std::string_view name_of(Regime regime) { return kRegimes[static_cast<std::size_t>(regime)]; }

struct KernelPoint {
  Kernel kernel;
  Regime regime = Regime::burst;
};

/// An end of a copy.
enum class End : std::uint8_t { host, device, peer };

inline constexpr std::array<std::string_view, 3> kEnds = {"host", "device", "peer"};
constexpr std::string_view name_of(End end) { return kEnds[static_cast<std::size_t>(end)]; }

struct CopyPoint {
  End from = End::host, to = End::device;
  bool pinned = true;     ///< whether host memory is pinned, if an end is on the host
  bool both_ways = false; ///< the other direction runs at the same time
  std::int64_t bytes = 0;
};

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send };

inline constexpr std::array<std::string_view, 6> kCollectives = {"all-reduce", "all-gather", "reduce-scatter",
                                                                 "all-to-all", "broadcast",  "send"};
constexpr std::string_view name_of(Collective op) { return kCollectives[static_cast<std::size_t>(op)]; }

struct CollectivePoint {
  Collective op = Collective::all_reduce;
  int devices = 2;
  std::int64_t bytes = 0; ///< counted as nccl-tests does
};

/// What the host does for the device.
enum class HostOp : std::uint8_t {
  launch, ///< of empty kernels
  event,  ///< recorded on one stream, awaited by another
  graph,  ///< of empty kernels, launched whole
};

inline constexpr std::array<std::string_view, 3> kHostOps = {"launch", "event", "graph"};
constexpr std::string_view name_of(HostOp op) { return kHostOps[static_cast<std::size_t>(op)]; }

struct HostPoint {
  HostOp op = HostOp::launch;
  int threads = 1, streams = 1; ///< all streams together, used in turn
  int nodes = 0;                ///< of a graph
};

/// What copies memory without a pause beside a kernel: the copy engines, or blocks of a kernel, as networks have them.
enum class Beside : std::uint8_t {
  host_to_device,
  device_to_host,
  both_ways,
  device_to_device,
  blocks_8,
  blocks_16,
  blocks_16_paced, ///< at the rate of a network
};

inline constexpr std::array<std::string_view, 7> kBesides = {
    "host-to-device", "device-to-host", "both-ways", "device-to-device", "8-blocks", "16-blocks", "16-blocks-paced"};
constexpr std::string_view name_of(Beside beside) { return kBesides[static_cast<std::size_t>(beside)]; }

struct InterferencePoint {
  Kernel kernel;
  Beside beside = Beside::host_to_device;
};

/// What a device does while its power is read.
enum class PowerState : std::uint8_t {
  idle,
  blocked, ///< kernels wait for the host, as those of collectives do
  busy,    ///< repeats a kernel
};

struct PowerPoint {
  PowerState state = PowerState::idle;
  Kernel kernel; ///< if busy
};

using Point = std::variant<KernelPoint, CopyPoint, CollectivePoint, HostPoint, InterferencePoint, PowerPoint>;

/// The section of the file for the point: "measured", "copies", "collectives", "launching", "interference", "power".
std::string_view section_of(const Point& point);

/// The beginning of its line: the keys that say what was measured. Unique among the points of a sweep.
std::string identity(const Point& point);

/// The point in words: a kernel as in a shape list, or "copy host to device, pinned, 1 MiB".
std::string to_text(const Point& point);

/// A size such as "64 KiB"; in bytes if no larger unit divides it.
std::string size_text(std::int64_t bytes);

} // namespace stagecraft::gpu
