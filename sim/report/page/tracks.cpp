// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/tracks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <tuple>

namespace stagecraft {
namespace {

constexpr double kMicrosecond = 1e-6;

// The label of a bar with its micro-batch replaced by {}: "F12@1" of micro-batch 12 as "F{}@1".
std::string label_of(const std::string& name, std::int32_t micro_batch) {
  if (micro_batch < 0) {
    return name;
  }
  const std::string number = std::to_string(micro_batch);
  const std::size_t at = name.find_first_of("0123456789");
  if (at == std::string::npos || name.compare(at, number.size(), number) != 0) {
    return name;
  }
  return name.substr(0, at) + "{}" + name.substr(at + number.size());
}

template <class Key>
std::string named_or(const std::map<Key, std::string>& names, const Key& key, std::string otherwise) {
  const auto found = names.find(key);
  return found == names.end() ? std::move(otherwise) : found->second;
}

// The name under which events of a phase that is not drawn are counted.
std::string name_of_phase(char phase) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kNames = {{{"stf", "arrows"},
                                                                               {"iIR", "instants"},
                                                                               {"bneSTFp", "asynchronous events"},
                                                                               {"C", "counters without bytes"},
                                                                               {"NOD", "objects"},
                                                                               {"XBE", "bars without a moment"}}};
  for (const auto& [phases, name] : kNames) {
    if (phases.find(phase) != std::string_view::npos) {
      return name;
    }
  }
  return "others";
}

} // namespace

double Tracks::end() const {
  double end = finish.empty() ? 0 : *std::max_element(finish.begin(), finish.end());
  for (const MemoryLevel& level : levels) {
    end = std::max(end, level.seconds.empty() ? 0 : level.seconds.back());
  }
  return end;
}

std::uint32_t TrackReader::kind_of(const Event& event) {
  BarKind kind{event.category, label_of(event.name, event.micro_batch), std::isfinite(event.bytes) ? event.bytes : 0};
  return kinds_.try_emplace(std::move(kind), static_cast<std::uint32_t>(kinds_.size())).first->second;
}

TrackReader::Bar TrackReader::bar_of(const Event& event) {
  const double duration = std::isfinite(event.duration) ? std::max(0.0, event.duration) : 0;
  return {{event.process, event.row},
          event.microseconds,
          event.microseconds + duration,
          kind_of(event),
          event.micro_batch,
          event.iteration,
          event.critical};
}

void TrackReader::take(const Event& event) {
  const Place place{event.process, event.row};
  const bool timed = std::isfinite(event.microseconds) &&
                     !std::isinf(event.microseconds + event.duration); // an event may lack a duration
  if (event.phase == 'M') {
    if (event.name == "process_name") {
      processes_[event.process] = event.argument_name;
    } else if (event.name == "thread_name") {
      rows_[place] = event.argument_name;
    }
  } else if (event.phase == 'X' && timed) {
    bars_.push_back(bar_of(event));
  } else if (event.phase == 'B' && timed) {
    edges_[place].push_back({event.microseconds, bar_of(event)});
  } else if (event.phase == 'E' && timed) {
    edges_[place].push_back({event.microseconds, {}});
  } else if (event.phase == 'C' && timed && std::isfinite(event.bytes)) {
    levels_[{event.process, event.name}].emplace_back(event.microseconds, event.bytes);
  } else {
    ++left_out_[name_of_phase(event.phase)];
  }
}

std::int64_t TrackReader::number_of(const std::string& id) {
  constexpr std::int64_t kTexts = std::int64_t{1} << 62; // beyond all ids that are numbers
  const std::int64_t number = ids_.try_emplace(id, kTexts + static_cast<std::int64_t>(ids_.size())).first->second;
  texts_.try_emplace(number, id);
  return number;
}

// An end event ends the bar that began last in its row.
void TrackReader::pair_edges() {
  for (auto& [place, edges] : edges_) {
    std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
    std::vector<Bar> open;
    for (Edge& edge : edges) {
      if (edge.begun) {
        open.push_back(*edge.begun);
      } else if (open.empty()) {
        ++left_out_["ends without a begin"];
      } else {
        open.back().finish = edge.at;
        bars_.push_back(open.back());
        open.pop_back();
      }
    }
    if (!open.empty()) {
      left_out_["begins without an end"] += open.size();
    }
  }
}

// The slack must allow for rounding: a clock that counts microseconds since 1970 resolves a quarter of one in a double.
// Our own runs begin at 0 and are exact to nanoseconds.
TrackReader::Clock TrackReader::clock() const {
  double first = std::numeric_limits<double>::infinity(), last = -first;
  const auto see = [&](double at) {
    first = std::min(first, at);
    last = std::max(last, at);
  };
  for (const Bar& bar : bars_) {
    see(bar.start);
    see(bar.finish);
  }
  for (const auto& [place, levels] : levels_) {
    for (const Level& level : levels) {
      see(level.first);
    }
  }
  constexpr double kHalfNanosecond = 0.5e-3, kRoundings = 4;
  const double farthest = std::max(std::abs(first), std::abs(last));
  return {first, kHalfNanosecond + kRoundings * std::numeric_limits<double>::epsilon() * farthest};
}

// The text behind an id; "" if the id was a number.
std::string TrackReader::text_of(std::int64_t id) const {
  const auto found = texts_.find(id);
  return found == texts_.end() ? "" : found->second;
}

// Puts each bar into the first row that is free; for nested bars that is the row of their depth.
void TrackReader::add_place(std::span<const Bar> bars, const Clock& clock, Tracks& tracks) {
  constexpr std::size_t kMostRows = 64; // rows of one place at most
  std::vector<std::vector<const Bar*>> rows;
  std::vector<double> busy; // [row]: until when, in microseconds
  for (const Bar& bar : bars) {
    const auto free =
        std::find_if(busy.begin(), busy.end(), [&](double until) { return until <= bar.start + clock.slack; });
    const std::size_t row = free - busy.begin();
    if (row == kMostRows) {
      ++left_out_["bars beside others at one time"];
      continue;
    }
    if (free == busy.end()) {
      rows.emplace_back();
      busy.push_back(bar.finish);
    }
    rows[row].push_back(&bar);
    busy[row] = std::max(busy[row], bar.finish);
  }
  const Place place = bars.front().place;
  const std::string group = named_or(processes_, place.first, text_of(place.first));
  const std::string text = text_of(place.second);
  const std::string name = named_or(rows_, place, text.empty() ? std::to_string(place.second) : text);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    tracks.tracks.push_back({group, row == 0 ? name : name + " #" + std::to_string(row + 1)});
    tracks.track_begin.push_back(static_cast<std::uint32_t>(tracks.start.size()));
    for (const Bar* bar : rows[row]) {
      tracks.start.push_back((bar->start - clock.origin) * kMicrosecond);
      tracks.finish.push_back((bar->finish - clock.origin) * kMicrosecond);
      tracks.kind.push_back(bar->kind);
      tracks.micro_batch.push_back(bar->micro_batch);
      tracks.iteration.push_back(bar->iteration);
      tracks.critical.push_back(bar->critical ? 1 : 0);
    }
  }
}

void TrackReader::add_levels(const Clock& clock, Tracks& tracks) {
  for (auto& [place, levels] : levels_) {
    std::stable_sort(levels.begin(), levels.end(), [](const Level& a, const Level& b) { return a.first < b.first; });
    MemoryLevel& memory = tracks.levels.emplace_back(
        MemoryLevel{named_or(processes_, place.first, text_of(place.first)), place.second, {}, {}});
    for (const auto& [at, bytes] : levels) {
      memory.seconds.push_back((at - clock.origin) * kMicrosecond);
      memory.bytes.push_back(bytes);
    }
  }
}

Tracks TrackReader::finish() {
  pair_edges();
  const Clock now = clock();
  std::sort(bars_.begin(), bars_.end(),
            [](const Bar& a, const Bar& b) { // among equal starts, first the bars without length, then the longest
              const bool a_takes = a.finish > a.start, b_takes = b.finish > b.start;
              return std::tie(a.place, a.start, a_takes, b.finish) < std::tie(b.place, b.start, b_takes, a.finish);
            });
  Tracks tracks;
  for (auto first = bars_.begin(); first != bars_.end();) {
    const auto last = std::find_if(first, bars_.end(), [&](const Bar& bar) { return bar.place != first->place; });
    add_place({first, last}, now, tracks);
    first = last;
  }
  tracks.track_begin.push_back(static_cast<std::uint32_t>(tracks.start.size()));
  tracks.kinds.resize(kinds_.size());
  for (const auto& [kind, number] : kinds_) {
    tracks.kinds[number] = kind;
  }
  add_levels(now, tracks);
  tracks.left_out = std::move(left_out_);
  return tracks;
}

} // namespace stagecraft
