// A timeline as the page draws it: bars in rows, flat and small, read from a trace (docs/formats/trace.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
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
  std::map<std::string, std::size_t> left_out; ///< how many events are not drawn, by what they are: "arrows"

  double end() const;
};

/// Takes the events of a trace one by one, in any order. Those of other programs too, whose clocks begin anywhere, and
/// where an event may begin a bar and another end it.
class TrackReader {
public:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  /// One object of traceEvents; what is missing has its default.
  struct Event {
    char phase = 0;
    std::int64_t process = 0, row = 0;
    double microseconds = kNone, duration = kNone;
    std::string name, category;
    std::string argument_name; ///< args.name of a phase M
    double bytes = kNone;      ///< args.bytes
    std::int32_t micro_batch = -1, iteration = 0;
    bool critical = false;
  };
  void take(const Event& event);
  /// The number of a process or a row whose id is a text, which is its name where the trace gives no other.
  std::int64_t number_of(const std::string& id);
  /// All tracks, by their numbers, since the first event; tracks without bars are left out. Of bars that overlap in a
  /// row the later are in a further one.
  Tracks finish();

private:
  using Place = std::pair<std::int64_t, std::int64_t>; // process, row
  struct Bar {
    Place place;
    double start, finish; // us
    std::uint32_t kind;
    std::int32_t micro_batch, iteration;
    bool critical;
  };
  struct Edge { // of a bar that two events make
    double at;  // us
    std::optional<Bar> begun;
  };
  using Level = std::pair<double, double>; // us, bytes
  struct Clock {
    double origin; // us
    double slack;  // us that bars may overlap and yet be neighbours
  };
  std::uint32_t kind_of(const Event& event);
  Bar bar_of(const Event& event);
  void pair_edges();
  Clock clock() const;
  std::string text_of(std::int64_t id) const;
  void add_place(std::span<const Bar> bars, const Clock& clock, Tracks& tracks);
  void add_levels(const Clock& clock, Tracks& tracks);

  std::map<std::string, std::int64_t> ids_;
  std::map<std::int64_t, std::string> texts_; // the same the other way round
  std::map<std::int64_t, std::string> processes_;
  std::map<Place, std::string> rows_;
  std::map<BarKind, std::uint32_t> kinds_;
  std::vector<Bar> bars_;
  std::map<Place, std::vector<Edge>> edges_;
  std::map<std::pair<std::int64_t, std::string>, std::vector<Level>> levels_; // by process and name
  std::map<std::string, std::size_t> left_out_;
};

} // namespace stagecraft
