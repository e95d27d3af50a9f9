// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/shared_flows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/replay/binding_links.hpp"

namespace stagecraft {

namespace {

// Whether a leg alone wants more of a link than it carries, since it stands for several that meet there.
bool overfills(const Leg& leg, const Platform& platform) {
  constexpr double kRounding = 1e-12;
  for (std::size_t first = 0, end = 0; first < leg.links.size(); first = end) { // equal ones follow one another
    while (end < leg.links.size() && leg.links[end] == leg.links[first]) {
      ++end;
    }
    const double wanted = static_cast<double>(end - first) * leg.bandwidth.value;
    if (wanted > platform.links[static_cast<std::size_t>(leg.links[first])].bandwidth.value * (1 + kRounding)) {
      return true;
    }
  }
  return false;
}

} // namespace

SharedFlows::SharedFlows(const TaskGraph& graph, const Platform& platform) : graph_(graph) {
  channels_.resize(graph.channels);
  find_contended(graph, platform);
  mark_unordered(graph);
}

double SharedFlows::seconds_alone(const Work& work) const {
  return work.bytes < 1 ? 0 : work.bytes / graph_.legs[work.leg].bandwidth.value;
}

// Numbers the binding links that several channels cross, and lists for each leg those on its way. Where a link in the
// shadow of another is full, so is that one, which as many channels cross.
void SharedFlows::find_contended(const TaskGraph& graph, const Platform& platform) {
  constexpr std::int32_t kNobody = -1, kSeveral = -2;
  std::vector<std::int32_t> crossed_by(platform.links.size(), kNobody); // a channel, or kSeveral
  for (const Work& one : graph.works) {
    if (one.transfers() && one.bytes >= 1) {
      const std::int32_t sender = one.channel >= 0 ? one.channel : kSeveral; // those of no channel may meet each other
      const Leg& leg = graph.legs[one.leg];
      const bool stands_for_several = !graph.folded.devices.empty() && overfills(leg, platform);
      for (const LinkId link : leg.links) {
        std::int32_t& by = crossed_by[link];
        by = (by == kNobody || by == sender) && !stands_for_several ? sender : kSeveral;
      }
    }
  }
  std::vector<std::int32_t> number_of(platform.links.size(), kNobody);
  use_begin_.push_back(0);
  const std::vector<std::vector<LinkId>> binding = binding_links(graph, platform);
  for (std::size_t leg = 0; leg < graph.legs.size(); ++leg) {
    for (const LinkId link : binding[leg]) {
      if (crossed_by[link] != kSeveral) {
        continue;
      }
      if (number_of[link] == kNobody) {
        number_of[link] = static_cast<std::int32_t>(bandwidth_.size());
        bandwidth_.push_back(platform.links[link].bandwidth.value);
      }
      const auto known = std::find_if(uses_.begin() + use_begin_.back(), uses_.end(),
                                      [&](const Use& use) { return use.link == number_of[link]; });
      if (known != uses_.end()) {
        ++known->times;
        known->wanted += graph.legs[leg].bandwidth.value;
      } else {
        uses_.push_back({number_of[link], 1, graph.legs[leg].bandwidth.value});
      }
    }
    use_begin_.push_back(static_cast<std::int32_t>(uses_.size()));
  }
  live_.resize(bandwidth_.size());
  for (const Work& work : graph.works) {
    may_share_.push_back(work.transfers() && !uses_of(work).empty() ? 1 : 0);
  }
}

// Transfers that only computations of their sender feed become ready in the order of its program, however far ahead
// that is run. Others have to be put in order here, as if they shared.
void SharedFlows::mark_unordered(const TaskGraph& graph) {
  std::vector<char> unordered(graph.channels, 0);
  bool any = false;
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    const Work& maker = graph.works[graph.work[task]];
    for (const TaskId next : graph.successors_of(task)) {
      const Work& work = graph.works[graph.work[next]];
      if (work.channel >= 0 && (!maker.computes() || maker.device != work.device)) {
        unordered[work.channel] = 1;
        any = true;
      }
    }
  }
  for (std::size_t work = 0; any && work < graph.works.size(); ++work) {
    const std::int32_t channel = graph.works[work].channel;
    if (channel >= 0 && unordered[channel] != 0) {
      may_share_[work] = 1;
    }
  }
}

void SharedFlows::push(double time, std::int32_t number, std::uint32_t serial, What what) {
  events_.push_back({time, serial, Event::rank_of(what, number)});
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void SharedFlows::ready(std::size_t executed, std::int32_t work, double time) {
  const Work& one = graph_.works[work];
  if (one.channel < 0) {
    const std::int32_t number = new_flow({executed, work, time});
    push(time + one.latency.value, number, flows_[number].serial, What::begin);
    return;
  }
  Channel& channel = channels_[one.channel];
  std::size_t at = channel.sent.size();
  const std::size_t waiting = channel.first + (channel.flows ? 1 : 0);
  while (at > waiting && channel.sent[at - 1].start > time) {
    --at;
  }
  channel.sent.insert(channel.sent.begin() + static_cast<std::ptrdiff_t>(at), {executed, work, time});
  if (!channel.flows && at == channel.first) {
    begin_first(one.channel, time + one.latency.value);
  }
}

// The first transfer of a channel begins to flow at `time`, unless another one comes before it.
void SharedFlows::begin_first(std::int32_t channel, double time) {
  channels_[channel].begin = time;
  push(time, channel, 0, What::begin_on_channel);
}

std::optional<ArrivedFlow> SharedFlows::step() {
  met_.clear();
  std::pop_heap(events_.begin(), events_.end(), std::greater<>());
  const Event event = events_.back();
  events_.pop_back();
  if (event.what() == What::begin_on_channel) {
    Channel& channel = channels_[event.number()];
    if (!channel.flows && channel.first < channel.sent.size() && channel.begin == event.time) {
      channel.flows = true;
      begin(new_flow(channel.sent[channel.first]), event.time);
    }
  } else if (flows_[event.number()].serial == event.serial) {
    if (event.what() == What::end) {
      return end(event.number(), event.time);
    }
    begin(event.number(), event.time);
  }
  return std::nullopt;
}

void SharedFlows::begin(std::int32_t number, double time) {
  flows_[number].begin = time;
  const Work& work = graph_.works[flows_[number].work];
  if (work.bytes >= 1) {
    fill_links(number, time);
  }
  if (!flows_[number].handed_over) {
    push(time + seconds_alone(work), number, flows_[number].serial, What::end);
  }
}

// A link is full where the flows on it want more than it carries, by more than rounding.
void SharedFlows::fill_links(std::int32_t number, double time) {
  constexpr double kRounding = 1e-12;
  for (const Use& use : uses_of(graph_.works[flows_[number].work])) {
    std::vector<Live>& live = live_[use.link];
    live.push_back({number, use.wanted});
    double wanted = 0;
    for (const Live& one : live) {
      wanted += one.wanted;
    }
    for (std::size_t i = 0; i < live.size() && wanted > bandwidth_[use.link] * (1 + kRounding); ++i) {
      hand_over(live[i].flow, time);
    }
  }
}

void SharedFlows::hand_over(std::int32_t number, double time) {
  Flow& flow = flows_[number];
  const Work& work = graph_.works[flow.work];
  const double left = work.bytes - (time - flow.begin) * graph_.legs[work.leg].bandwidth.value;
  if (!flow.handed_over && left > 0) { // else it ends now
    flow.handed_over = true;
    ++flow.serial;
    met_.push_back({number, work.leg, left});
  }
}

ArrivedFlow SharedFlows::end(std::int32_t number, double time) {
  Flow& flow = flows_[number];
  const Work& work = graph_.works[flow.work];
  if (work.bytes >= 1) {
    for (const Use& use : uses_of(work)) {
      std::vector<Live>& live = live_[use.link];
      live.erase(std::find_if(live.begin(), live.end(), [&](const Live& one) { return one.flow == number; }));
    }
  }
  const ArrivedFlow arrived{flow.executed, flow.start, time};
  ++flow.serial;
  free_.push_back(number);
  if (work.channel >= 0) {
    follow(work, time);
  }
  return arrived;
}

// The next transfer on a channel flows at once if it has been ready for its latency.
void SharedFlows::follow(const Work& work, double time) {
  Channel& channel = channels_[work.channel];
  channel.flows = false;
  if (++channel.first == channel.sent.size()) {
    channel.sent.clear();
    channel.first = 0;
    return;
  }
  Sent& next = channel.sent[channel.first];
  const double entered = time - graph_.works[next.work].latency.value;
  if (entered < next.start) {
    begin_first(work.channel, time + (next.start - entered));
  } else {
    next.start = entered;
    begin_first(work.channel, time);
  }
}

std::int32_t SharedFlows::new_flow(const Sent& sent) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::int32_t number = free_.back();
  free_.pop_back();
  Flow& flow = flows_[number];
  flow = {.executed = sent.executed, .work = sent.work, .serial = flow.serial, .start = sent.start};
  return number;
}

} // namespace stagecraft
