// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/flow.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/improves.hpp"

namespace stagecraft {

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

Seconds FlowBuilder::hop(DeviceId from, DeviceId to) {
  Seconds latency;
  if (const Route* route = router_.find(from, to)) {
    for (const Leg& leg : route->legs) {
      links_.insert(links_.end(), leg.links.begin(), leg.links.end());
      latency += leg.latency;
    }
  } else {
    check(false, "two devices of a platform have no route");
  }
  return latency;
}

CoupledFlow FlowBuilder::finish(double share, Seconds latency) {
  std::sort(links_.begin(), links_.end());
  const BytesPerSecond bandwidth = narrowest_of(router_.platform(), links_).bandwidth;
  return {{std::move(links_), latency, bandwidth}, share, {}};
}

} // namespace stagecraft
