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

/// The power of an idle device, or of one that repeats a kernel.
struct PowerPoint {
  bool idle = true;
  Kernel kernel; ///< unless idle
};

using Point = std::variant<KernelPoint, CopyPoint, CollectivePoint, PowerPoint>;

/// The section of the file for the point: "measured", "copies", "collectives" or "power".
std::string_view section_of(const Point& point);

/// The beginning of its line: the keys that say what was measured. Unique among the points of a sweep.
std::string identity(const Point& point);

/// The point in words: a kernel as in a shape list, or "copy host to device, pinned, 1 MiB".
std::string to_text(const Point& point);

/// A size such as "64 KiB"; in bytes if no larger unit divides it.
std::string size_text(std::int64_t bytes);

} // namespace stagecraft::gpu
