// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/flow.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/improves.hpp"

namespace stagecraft {

Seconds MeasuredFlow::time(Bytes buffer) const {
  if (lines.empty()) {
    return times.time(buffer).time;
  }
  Seconds least{kInfinity}, waits;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const Seconds seconds = lines[at].start + Seconds{buffer.value * lines[at].seconds_per_byte};
    waits = seconds < least && !waiting.empty() ? waiting[at].time(buffer) : waits;
    least = std::min(least, seconds);
  }
  return least + waits;
}

Bytes CoupledFlow::sent(Bytes buffer) const {
  const Bytes bytes = buffer * share;
  if (!measured) {
    return bytes;
  }
  const Bytes most = (measured->time(buffer) - measured->time(Bytes{0})) * measured->bandwidth;
  return Bytes{std::floor(std::clamp(bytes, Bytes{0}, std::max(Bytes{0}, most)).value)};
}

Seconds CoupledFlow::latency(Bytes buffer) const {
  return measured ? measured->time(buffer) - sent(buffer) / measured->bandwidth : leg.latency;
}

namespace {

// Adds up a figure of those flows that end last among those beside them.
template <class Figure> Seconds sum_of_last(const Flows& flows, Bytes buffer, const Figure& figure) {
  Seconds sum;
  for (std::size_t first = 0, end = 0; first < flows.size(); first = end) {
    const CoupledFlow* last = &flows[first];
    for (end = first + 1; end < flows.size() && flows[end].beside; ++end) {
      last = last->time(buffer) < flows[end].time(buffer) ? &flows[end] : last;
    }
    sum += figure(*last);
  }
  return sum;
}

} // namespace

Seconds seconds_of(const Flows& flows, Bytes buffer) {
  return sum_of_last(flows, buffer, [&](const CoupledFlow& flow) { return flow.time(buffer); });
}

Seconds latency_of(const Flows& flows, Bytes buffer) {
  return sum_of_last(flows, buffer, [&](const CoupledFlow& flow) { return flow.latency(buffer); });
}

BytesPerSecond narrowest_link(const Platform& platform, const Leg& leg) {
  BytesPerSecond narrowest{kInfinity};
  for (const LinkId link : leg.links) {
    narrowest = std::min(narrowest, platform.links[link].bandwidth);
  }
  return narrowest;
}

HopLatency FlowBuilder::hop(DeviceId from, DeviceId to) {
  const Route* route = router_.find(from, to);
  check(route != nullptr, "two devices of a platform have no route");
  HopLatency latency = kNoProtocol;
  for (const Leg& leg : route->legs) {
    links_.insert(links_.end(), leg.links.begin(), leg.links.end());
    latency.stated += leg.latency;
  }
  const Platform& platform = router_.platform();
  const bool both = platform.type_of(from).vendor == kNcclVendor && platform.type_of(to).vendor == kNcclVendor;
  if (algorithm_ != nullptr && both && route->legs.size() == 1) {
    latency = nccl_latency(platform, route->legs.front(), *algorithm_, group_);
    most_by_ll_ = std::min(most_by_ll_, most_by_ll(platform.type_of(from), group_));
  }
  return latency;
}

// A protocol takes start + latency + n share/(part of the bandwidth), LL no less than its most allows.
MeasuredFlow FlowBuilder::by_protocol(const CoupledFlow& flow, const HopLatency& latency, double all_channels,
                                      Handed handed) const {
  MeasuredFlow measured{nullptr, {}, flow.leg.bandwidth};
  for (std::size_t p = 0; algorithm_ != nullptr && p < kProtocols; ++p) {
    const Seconds start = Seconds{algorithm_->start[p] * 1e-6} + latency.nccl[p];
    if (std::isinf(start.value)) {
      continue;
    }
    const double least = p == static_cast<std::size_t>(Protocol::ll) ? all_channels / most_by_ll_.value : 0;
    const double slope = std::max(flow.share / (flow.leg.bandwidth.value * algorithm_->bandwidth[p]), least);
    measured.lines.push_back({kInfinity, start, slope});
    if (handed == Handed::on) {
      const Seconds step = Bytes{kNcclStep[p] * kNcclChannels} / flow.leg.bandwidth;
      measured.waiting.push_back({latency.whole_steps[p] * step, latency.whole_steps[p] * slope});
    }
  }
  return measured;
}

CoupledFlow FlowBuilder::finish(double share, const HopLatency& latency, double all_channels, Handed handed) {
  std::sort(links_.begin(), links_.end());
  const BytesPerSecond bandwidth = narrowest_of(router_.platform(), links_).bandwidth;
  CoupledFlow flow{{std::move(links_), latency.stated, bandwidth}, share, {}};
  if (MeasuredFlow measured = by_protocol(flow, latency, all_channels, handed); !measured.lines.empty()) {
    flow.measured = std::move(measured);
  }
  return flow;
}

} // namespace stagecraft
