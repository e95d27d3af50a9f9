// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/flow.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"

namespace stagecraft {

Bytes CoupledFlow::sent(Bytes buffer) const {
  const Bytes bytes = buffer * share;
  if (!measured) {
    return bytes;
  }
  const CollectiveTimes& times = measured->times;
  const Bytes most = (times.time(buffer).time - times.time(Bytes{0}).time) * measured->bandwidth;
  return Bytes{std::floor(std::clamp(bytes, Bytes{0}, std::max(Bytes{0}, most)).value)};
}

Seconds CoupledFlow::latency(Bytes buffer) const {
  return measured ? measured->times.time(buffer).time - sent(buffer) / measured->bandwidth : leg.latency;
}

Seconds seconds_of(const Flows& flows, Bytes buffer) {
  Seconds sum;
  for (const CoupledFlow& flow : flows) {
    sum += flow.time(buffer);
  }
  return sum;
}

Seconds FlowBuilder::hop(DeviceId from, DeviceId to) {
  const Route* route = router_.find(from, to);
  check(route != nullptr, "two devices of a platform have no route");
  Seconds latency;
  for (const Leg& leg : route->legs) {
    links_.insert(links_.end(), leg.links.begin(), leg.links.end());
    latency += leg.latency;
  }
  return latency;
}

CoupledFlow FlowBuilder::finish(double share, Seconds latency) {
  std::sort(links_.begin(), links_.end());
  const BytesPerSecond bandwidth = narrowest_of(router_.platform(), links_).bandwidth;
  return {{std::move(links_), latency, bandwidth}, share, {}};
}

} // namespace stagecraft
