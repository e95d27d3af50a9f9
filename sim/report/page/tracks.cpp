// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/tracks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace stagecraft {
namespace {

constexpr double kMicrosecond = 1e-6;

// "F12@1" of micro-batch 12 as "F{}@1".
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

} // namespace

double Tracks::end() const {
  double end = finish.empty() ? 0 : *std::max_element(finish.begin(), finish.end());
  for (const MemoryLevel& level : levels) {
    end = std::max(end, level.seconds.empty() ? 0 : level.seconds.back());
  }
  return end;
}

std::uint32_t TrackReader::kind_of(const Event& event) {
  BarKind kind{event.category, label_of(event.name, event.micro_batch), event.bytes};
  return kinds_.try_emplace(std::move(kind), static_cast<std::uint32_t>(kinds_.size())).first->second;
}

void TrackReader::take(const Event& event) {
  const Place place{event.process, event.row};
  if (event.phase == 'M' && event.name == "process_name") {
    processes_[event.process] = event.argument_name;
  } else if (event.phase == 'M' && event.name == "thread_name") {
    rows_[place] = event.argument_name;
  } else if (event.phase == 'X' && std::isfinite(event.microseconds) && std::isfinite(event.duration)) {
    const double start = event.microseconds * kMicrosecond;
    bars_.push_back({place, start, start + std::max(0.0, event.duration) * kMicrosecond, kind_of(event),
                     event.micro_batch, event.iteration, event.critical});
  } else if (event.phase == 'C') {
    MemoryLevel& level = levels_[{event.process, event.name}];
    level.seconds.push_back(event.microseconds * kMicrosecond);
    level.bytes.push_back(event.bytes);
  }
}

Tracks TrackReader::finish() {
  std::sort(bars_.begin(), bars_.end(), [](const Bar& a, const Bar& b) {
    return std::tie(a.place, a.start, a.finish) < std::tie(b.place, b.start, b.finish);
  });
  Tracks tracks;
  for (std::size_t at = 0; at < bars_.size(); ++at) {
    const Bar& bar = bars_[at];
    if (at == 0 || bars_[at - 1].place != bar.place) {
      const auto group = processes_.find(bar.place.first);
      const auto name = rows_.find(bar.place);
      tracks.tracks.push_back({group == processes_.end() ? "" : group->second,
                               name == rows_.end() ? std::to_string(bar.place.second) : name->second});
      tracks.track_begin.push_back(static_cast<std::uint32_t>(at));
    }
    tracks.start.push_back(bar.start);
    tracks.finish.push_back(bar.finish);
    tracks.kind.push_back(bar.kind);
    tracks.micro_batch.push_back(bar.micro_batch);
    tracks.iteration.push_back(bar.iteration);
    tracks.critical.push_back(bar.critical ? 1 : 0);
  }
  tracks.track_begin.push_back(static_cast<std::uint32_t>(bars_.size()));
  tracks.kinds.resize(kinds_.size());
  for (const auto& [kind, number] : kinds_) {
    tracks.kinds[number] = kind;
  }
  for (auto& [place, level] : levels_) {
    const auto group = processes_.find(place.first);
    level.group = group == processes_.end() ? "" : group->second;
    level.name = place.second;
    tracks.levels.push_back(std::move(level));
  }
  return tracks;
}

} // namespace stagecraft
