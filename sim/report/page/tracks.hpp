// A timeline as the page draws it: bars in rows, in a compact form, read from a trace (docs/formats/trace.md).
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

/// Properties that many bars share.
struct BarKind {
  std::string category; ///< decides the colour: forward, transfer, …
  std::string label;    ///< the micro-batch is written as {}: "F{}@1"
  double bytes = 0;     ///< bytes of a transfer
  auto operator<=>(const BarKind&) const = default;
};

struct Track {
  std::string group; ///< devices, links or host cores
  std::string name;
};

/// Memory of one device; each value holds until the next one.
struct MemoryLevel {
  std::string group, name;
  std::vector<double> seconds, bytes;
};

/// Rows of bars. The bars of track t are those from track_begin[t] to track_begin[t + 1], ordered by start.
struct Tracks {
  std::vector<Track> tracks;
  std::vector<BarKind> kinds;
  std::vector<std::uint32_t> track_begin;
  std::vector<double> start, finish;     ///< [bar], seconds
  std::vector<std::uint32_t> kind;       ///< [bar]
  std::vector<std::int32_t> micro_batch; ///< [bar]; -1: none
  std::vector<std::int32_t> iteration;   ///< [bar]
  std::vector<std::uint8_t> critical;    ///< [bar]: 1 on the critical path
  std::vector<MemoryLevel> levels;
  std::map<std::string, std::size_t> left_out; ///< number of events that are not drawn, by kind: "arrows"

  double end() const;
};

/// Takes the events of a trace one by one, in any order. Also reads traces of other programs, whose clocks may begin
/// anywhere and whose bars may consist of a begin and an end event.
class TrackReader {
public:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  /// One object of traceEvents; missing keys have the defaults.
  struct Event {
    char phase = 0;
    std::int64_t process = 0, row = 0;
    double microseconds = kNone, duration = kNone;
    std::string name, category;
    std::string argument_name; ///< args.name in an event of phase M
    double bytes = kNone;      ///< args.bytes
    std::int32_t micro_batch = -1, iteration = 0;
    bool critical = false;
  };
  void take(const Event& event);
  /// A number for a process or row whose id is a text. The text becomes its name if the trace gives no other.
  std::int64_t number_of(const std::string& id);
  /// All tracks in order of their numbers, with times from the first event on. Tracks without bars are left out. Of
  /// bars that overlap in a row, the later ones go to extra rows.
  Tracks finish();

private:
  using Place = std::pair<std::int64_t, std::int64_t>; // process, row
  struct Bar {
    Place place;
    double start, finish; // microseconds
    std::uint32_t kind;
    std::int32_t micro_batch, iteration;
    bool critical;
  };
  struct Edge { // begin or end event of a bar
    double at;  // microseconds
    std::optional<Bar> begun;
  };
  using Level = std::pair<double, double>; // microseconds, bytes
  struct Clock {
    double origin; // microseconds
    double slack;  // microseconds by which bars may overlap and still count as neighbours
  };
  std::uint32_t kind_of(const Event& event);
  Bar bar_of(const Event& event);
  void pair_edges();
  Clock clock() const;
  std::string text_of(std::int64_t id) const;
  void add_place(std::span<const Bar> bars, const Clock& clock, Tracks& tracks);
  void add_levels(const Clock& clock, Tracks& tracks);

  std::map<std::string, std::int64_t> ids_;
  std::map<std::int64_t, std::string> texts_; // text of each number in ids_
  std::map<std::int64_t, std::string> processes_;
  std::map<Place, std::string> rows_;
  std::map<BarKind, std::uint32_t> kinds_;
  std::vector<Bar> bars_;
  std::map<Place, std::vector<Edge>> edges_;
  std::map<std::pair<std::int64_t, std::string>, std::vector<Level>> levels_; // by process and name
  std::map<std::string, std::size_t> left_out_;
};

} // namespace stagecraft
