// What one line of a file of measurements measures, and its name there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// Under which circumstances a kernel runs.
enum class Regime : std::uint8_t {
  burst,     ///< on a cool device, operands out of the cache
  sustained, ///< after seconds of the same, power-capped
  warm,      ///< again and again on the same operands
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

/// One end of a copy.
enum class End : std::uint8_t { host, device, peer };

inline constexpr std::array<std::string_view, 3> kEnds = {"host", "device", "peer"};
constexpr std::string_view name_of(End end) { return kEnds[static_cast<std::size_t>(end)]; }

struct CopyPoint {
  End from = End::host, to = End::device;
  bool pinned = true;     ///< of host memory, where an end is there
  bool both_ways = false; ///< while the other direction runs
  std::int64_t bytes = 0;
};

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send };

inline constexpr std::array<std::string_view, 6> kCollectives = {"all-reduce", "all-gather", "reduce-scatter",
                                                                 "all-to-all", "broadcast",  "send"};
constexpr std::string_view name_of(Collective op) { return kCollectives[static_cast<std::size_t>(op)]; }

struct CollectivePoint {
  Collective op = Collective::all_reduce;
  int devices = 2;
  std::int64_t bytes = 0; ///< as nccl-tests counts them
};

/// The power that a device draws while it does nothing, or one kernel over and over.
struct PowerPoint {
  bool idle = true;
  Kernel kernel; ///< where not idle
};

using Point = std::variant<KernelPoint, CopyPoint, CollectivePoint, PowerPoint>;

/// The section of the file that the point belongs to: "measured", "copies", "collectives" or "power".
std::string_view section_of(const Point& point);

/// How its line begins: the keys that say what was measured. No two points of a sweep have the same.
std::string identity(const Point& point);

/// For people: a kernel as in a shape list, "copy host to device, pinned, 1 MiB".
std::string to_text(const Point& point);

/// "64 KiB", or plain bytes where no larger unit fits evenly.
std::string size_text(std::int64_t bytes);

} // namespace stagecraft::gpu
