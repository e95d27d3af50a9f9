// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/beside_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "sim/platform/without_processors.hpp"
#include "sim/replay/clock_start.hpp"
#include "sim/replay/speeds.hpp"
#include "sim/replay/steps_beside.hpp"

namespace stagecraft {
namespace {

bool slows(const DeviceType& type) {
  const BesideExchange& beside = type.beside_exchange;
  return beside.by_rule || beside.matrix > 1 || beside.other > 1;
}

// Bytes that a rank's memory reads and writes for each that it sends: what arrives is written, read and, where it is
// added up, read beside a number of its own.
double traffic_of(TaskKind kind) { return kind == TaskKind::all_reduce || kind == TaskKind::reduce_scatter ? 3 : 2; }

// What an exchange of these bytes takes of a device: the part of its multiprocessors leaves products the rest, the part
// of its memory's bandwidth other kernels.
BesideExchange by_rule(const DeviceType& type, const Work& exchange) {
  const Seconds sending = exchange.seconds - exchange.latency;
  const double rate = sending.value > 0 ? exchange.bytes / sending.value : 0;
  const double memory =
      type.memory_bandwidth.value > 0 ? traffic_of(exchange.kind) * rate / type.memory_bandwidth.value : 0;
  return {slower_without_processors(type, exchange.processors), slower_without(memory)};
}

BesideExchange beside_of(const DeviceType& type, const Work& exchange) {
  if (!exchange.slows) {
    return {};
  }
  return type.beside_exchange.by_rule ? by_rule(type, exchange) : type.beside_exchange;
}

// Of a computation whose steps are not known: what it exchanges itself, in which it computes nothing, takes no longer.
double factor_of(const BesideExchange& beside, const Work& work) {
  return 1 + (factor_of(beside, work.kind) - 1) * (1 - std::min(1.0, work.exchanging));
}

// Data of two vendors' devices goes through a host, which copies, and so do loaders and what is left to hosts.
bool runs_kernels(const TaskGraph& graph, const Platform& platform, const Work& work) {
  if (!work.transfers() || !work.slows || is_offload(work.kind) || work.kind == TaskKind::read ||
      work.kind == TaskKind::copy) {
    return false;
  }
  const auto vendor_of = [&](std::int32_t device) -> const std::string& {
    return platform.type_of(graph.devices[device]).vendor;
  };
  return work.members < 0 ||
         std::all_of(graph.members[work.members].begin(), graph.members[work.members].end(),
                     [&](std::int32_t member) { return vendor_of(member) == vendor_of(work.device); });
}

// A request whose durations follow from its own timeline.
class Beside {
public:
  explicit Beside(const ReplayRequest& request)
      : request_(&request), speeds_(request.graph, request.speeds), exchanges_(request.graph.devices.size()) {
    const TaskGraph& graph = request.graph;
    for (const Work& work : graph.works) {
      std::vector<std::int32_t>& slowed = slowed_.emplace_back();
      if (!runs_kernels(graph, request.platform, work)) {
        continue;
      }
      const std::span<const std::int32_t> members =
          work.members < 0 ? std::span(&work.device, 1) : std::span(graph.members[work.members]);
      std::copy_if(members.begin(), members.end(), std::back_inserter(slowed),
                   [&](std::int32_t device) { return slows(request.platform.type_of(graph.devices[device])); });
    }
    for (std::size_t executed = 0, tasks = graph.work.size(); executed < tasks * request.iterations; ++executed) {
      alone_.push_back(request.computing.empty() ? work_of(executed).seconds.value : request.computing[executed]);
    }
    seconds_ = alone_;
  }

  /// The request with the durations that were found last.
  ReplayRequest request() const {
    ReplayRequest slowed = *request_;
    slowed.computing = seconds_;
    return slowed;
  }

  /// Finds the durations of computations that start as in `timeline`, beside its exchanges; whether any has changed.
  bool follow(const Timeline& timeline) {
    ends_.push_back(timeline.end());
    constexpr double kSame = 1e-11, kRounding = 1e-13;                    // of all time
    constexpr double kClock = 8 * std::numeric_limits<double>::epsilon(); // of what an engine's clock may show
    rounding_ = std::max(kRounding * timeline.end(), kClock * clock_start(*request_));
    const double same = std::max(kSame * timeline.end(), rounding_);
    list_exchanges(timeline);
    const std::vector<double> before = seconds_;
    bool changed = false;
    for (std::size_t device = 0; device < exchanges_.size(); ++device) {
      if (!exchanges_[device].empty() || !request_->graph.steps.empty()) {
        slow_down(timeline, device);
      }
    }
    for (std::size_t executed = 0; executed < before.size(); ++executed) {
      changed = changed || std::abs(seconds_[executed] - before[executed]) > same;
    }
    return changed;
  }

  /// Whether it goes round: durations never agree, as where two passes push each other's exchanges to and fro, but when
  /// all ends hardly differs from one replay to the next.
  bool goes_round() const {
    const auto executed = static_cast<double>(ends_.size()) * static_cast<double>(seconds_.size());
    if (ends_.size() < kAlikeReplays || executed < kMostExecuted) {
      return false;
    }
    const auto [least, most] = std::minmax_element(ends_.end() - kAlikeReplays, ends_.end());
    return *most - *least <= kAlikeEnds * *most;
  }

private:
  using Stretch = SlowedTime;

  const Work& work_of(std::size_t executed) const {
    return request_->graph.works[request_->graph.work[executed % request_->graph.work.size()]];
  }

  // The time in which a device takes part in any exchange, as stretches that ascend and do not touch.
  void list_exchanges(const Timeline& timeline) {
    for (std::vector<Stretch>& stretches : exchanges_) {
      stretches.clear();
    }
    for (std::size_t executed = 0; executed < timeline.start.size(); ++executed) {
      for (const std::int32_t device : slowed_[request_->graph.work[executed % request_->graph.work.size()]]) {
        if (timeline.finish[executed] > timeline.start[executed]) {
          exchanges_[device].push_back(
              {timeline.start[executed], timeline.finish[executed], beside_of(type_of(device), work_of(executed))});
        }
      }
    }
    for (std::vector<Stretch>& stretches : exchanges_) {
      join(stretches);
    }
  }

  // Makes stretches that ascend and do not overlap, in each the most that any of those takes which it is a part of;
  // those that touch and take the same become one. O(n log n): what others cut waits in a heap.
  static void join(std::vector<Stretch>& stretches) {
    const auto later = [](const Stretch& one, const Stretch& other) { return one.begin > other.begin; };
    std::sort(stretches.begin(), stretches.end(),
              [](const Stretch& one, const Stretch& other) { return one.begin < other.begin; });
    std::vector<Stretch> joined, cut; // cut: a heap, the earliest first
    for (std::size_t at = 0; at < stretches.size() || !cut.empty();) {
      const bool is_cut = !cut.empty() && (at == stretches.size() || cut.front().begin < stretches[at].begin);
      if (is_cut) {
        std::pop_heap(cut.begin(), cut.end(), later);
      }
      const Stretch next = is_cut ? cut.back() : stretches[at++];
      if (is_cut) {
        cut.pop_back();
      }
      const bool same = !joined.empty() && next.beside == joined.back().beside;
      if (joined.empty() || next.begin > joined.back().end || (next.begin == joined.back().end && !same)) {
        joined.push_back(next);
        continue;
      }
      Stretch& last = joined.back();
      if (same) {
        last.end = std::max(last.end, next.end);
        continue;
      }
      const BesideExchange most{std::max(last.beside.matrix, next.beside.matrix),
                                std::max(last.beside.other, next.beside.other)};
      const double both = std::min(last.end, next.end), end = std::max(last.end, next.end);
      const BesideExchange& rest = last.end > next.end ? last.beside : next.beside;
      const Stretch behind{both, end, rest};
      last.end = next.begin;
      if (last.end <= last.begin) {
        joined.pop_back();
      }
      for (const Stretch& part : {Stretch{next.begin, both, most}, behind}) {
        if (part.end > part.begin) {
          cut.push_back(part);
          std::push_heap(cut.begin(), cut.end(), later);
        }
      }
    }
    stretches = std::move(joined);
  }

  // Starts ascend along a device's program, from iteration to iteration.
  void slow_down(const Timeline& timeline, std::size_t device) {
    const TaskGraph& graph = request_->graph;
    std::size_t next = 0;
    for (int iteration = 0; iteration < request_->iterations; ++iteration) {
      const std::size_t base = static_cast<std::size_t>(iteration) * graph.work.size();
      for (const TaskId task : graph.program_of(device)) {
        const std::size_t executed = base + task;
        const Work& work = work_of(executed);
        const double start = timeline.start[executed], alone = alone_[executed];
        seconds_[executed] = work.steps >= 0 && speeds_.constant() ? of_steps(device, start, alone, work, next)
                                                                   : alone + lost(device, start, alone, work, next);
      }
    }
  }

  const DeviceType& type_of(std::size_t device) const {
    return request_->platform.type_of(request_->graph.devices[device]);
  }

  // What a pass takes whose steps are known, beside its own exchanges and those of the device. `next` as below.
  double of_steps(std::size_t device, double start, double alone, const Work& work, std::size_t& next) {
    const std::vector<Stretch>& exchanges = exchanges_[device];
    while (next < exchanges.size() && exchanges[next].end <= start) {
      ++next;
    }
    const DeviceType& type = type_of(device);
    const auto [known, is_new] = steps_.try_emplace({work.steps, &type, work.kind}, nullptr);
    if (is_new) {
      known->second = std::make_unique<StepsBeside>(request_->graph.steps[work.steps], work.kind,
                                                    [&](const Work& flow) { return beside_of(type, flow); });
    }
    const double scale = known->second->plain() > 0 ? alone / known->second->plain() : 1;
    return known->second->seconds(start, scale, std::span(exchanges).subspan(next), rounding_);
  }

  // What a computation needs more, in seconds at the device's own speed, which may change. It ends when the integral of
  // its speed equals its work. `next`: the device's first exchange that may not be over at `start`.
  double lost(std::size_t device, double start, double work, const Work& computation, std::size_t& next) const {
    const std::vector<Stretch>& exchanges = exchanges_[device];
    while (next < exchanges.size() && exchanges[next].end <= start) {
      ++next;
    }
    double now = start, left = work, more = 0;
    for (std::size_t at = next; at < exchanges.size(); ++at) {
      const double alone = done_between(device, now, std::max(now, exchanges[at].begin));
      if (left <= alone + rounding_) { // what it makes may be sent at its very end
        break;
      }
      left -= alone;
      now = std::max(now, exchanges[at].end);
      const double factor = factor_of(exchanges[at].beside, computation);
      const double slowed = done_between(device, std::max(start, exchanges[at].begin), now) / factor;
      more += std::min(left, slowed) * (factor - 1);
      if (left <= slowed) {
        break;
      }
      left -= slowed;
    }
    return more;
  }

  // The integral of the device's own speed.
  double done_between(std::size_t device, double from, double to) const {
    return speeds_.constant() ? to - from : speeds_.done(device, from, to);
  }

  const ReplayRequest* request_;
  Speeds speeds_;
  std::vector<std::vector<std::int32_t>> slowed_; // [work]: devices, of graph.devices, that it slows down
  std::vector<std::vector<Stretch>> exchanges_;   // [device]
  std::vector<double> alone_, seconds_;           // [iteration * tasks + task]
  double rounding_ = 0;                           // times closer than this are equal
  std::vector<double> ends_;                      // of the timelines that were followed
  std::map<std::tuple<std::int32_t, const DeviceType*, TaskKind>, std::unique_ptr<StepsBeside>> steps_;
};

} // namespace

bool exchanges_slow(const Platform& platform) {
  return std::any_of(platform.types.begin(), platform.types.end(), slows);
}

std::vector<Timeline> replay_beside_exchanges(ReplayFunction engine, std::span<const ReplayRequest> requests) {
  std::vector<ReplayRequest> whole(requests.begin(), requests.end());
  for (ReplayRequest& request : whole) { // all of a timeline is looked at
    request.most_iterations = exchanges_slow(request.platform) ? 0 : request.most_iterations;
  }
  std::vector<Timeline> timelines = engine(whole);
  std::vector<std::pair<std::size_t, Beside>> open; // those whose durations may not agree yet, by place
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (exchanges_slow(requests[i].platform)) {
      open.emplace_back(i, Beside(requests[i]));
    }
  }
  for (int replays = 1; !open.empty() && replays < kMostReplays; ++replays) {
    std::erase_if(open, [&](auto& one) { return !one.second.follow(timelines[one.first]) || one.second.goes_round(); });
    std::vector<ReplayRequest> again;
    for (const auto& [place, one] : open) {
      again.push_back(one.request());
    }
    std::vector<Timeline> made = again.empty() ? std::vector<Timeline>{} : engine(again);
    for (std::size_t i = 0; i < open.size(); ++i) {
      timelines[open[i].first] = std::move(made[i]);
    }
  }
  return timelines;
}

} // namespace stagecraft
