// A timeline as the page draws it: bars in rows, flat and small, read from a trace (docs/formats/trace.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// What many bars have in common.
struct BarKind {
  std::string category; ///< that gives the colour: forward, transfer, …
  std::string label;    ///< with {} for the micro-batch: "F{}@1"
  double bytes = 0;     ///< of a transfer
  auto operator<=>(const BarKind&) const = default;
};

struct Track {
  std::string group; ///< devices, links, host cores
  std::string name;
};

/// Memory of one device: each amount holds until the next.
struct MemoryLevel {
  std::string group, name;
  std::vector<double> seconds, bytes;
};

/// Bars of track t are those from track_begin[t] to track_begin[t + 1], in order of their starts.
struct Tracks {
  std::vector<Track> tracks;
  std::vector<BarKind> kinds;
  std::vector<std::uint32_t> track_begin;
  std::vector<double> start, finish;     ///< [bar], s
  std::vector<std::uint32_t> kind;       ///< [bar]
  std::vector<std::int32_t> micro_batch; ///< [bar]; -1: of none
  std::vector<std::int32_t> iteration;   ///< [bar]
  std::vector<std::uint8_t> critical;    ///< [bar]: on the critical path
  std::vector<MemoryLevel> levels;

  double end() const;
};

/// Takes the events of a trace one by one, in any order.
class TrackReader {
public:
  /// One object of traceEvents; what is missing has its default.
  struct Event {
    char phase = 0;
    std::int64_t process = 0, row = 0;
    double microseconds = 0, duration = 0;
    std::string name, category;
    std::string argument_name; ///< args.name of a phase M
    double bytes = 0;          ///< args.bytes
    std::int32_t micro_batch = -1, iteration = 0;
    bool critical = false;
  };
  void take(const Event& event);
  /// All tracks, by the order that the trace asks for, else by their numbers; tracks without bars are left out.
  Tracks finish();

private:
  using Place = std::pair<std::int64_t, std::int64_t>; // process, row
  struct Bar {
    Place place;
    double start, finish;
    std::uint32_t kind;
    std::int32_t micro_batch, iteration;
    bool critical;
  };
  std::uint32_t kind_of(const Event& event);

  std::map<std::int64_t, std::string> processes_;
  std::map<Place, std::string> rows_;
  std::map<BarKind, std::uint32_t> kinds_;
  std::vector<Bar> bars_;
  std::map<std::pair<std::int64_t, std::string>, MemoryLevel> levels_; // by process and name
};

} // namespace stagecraft
