// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/peak_in_use.hpp"

#include <algorithm>

namespace stagecraft {

FlopsPerSecond peak_of(const DeviceType& type, std::optional<Precision> precision) {
  return precision ? type.peak[static_cast<std::size_t>(*precision)].value_or(FlopsPerSecond{0}) : FlopsPerSecond{0};
}

FlopsPerSecond peak_in_use(const Study& study, const TaskGraph& graph, std::optional<Precision> also) {
  FlopsPerSecond sum;
  for (const DeviceId device : graph.devices_in_use()) {
    const DeviceType& type = study.platform.type_of(device);
    const FlopsPerSecond own = peak_of(type, study.training.precision);
    if (own.value == 0) {
      return own;
    }
    sum += std::max(own, peak_of(type, also));
  }
  return sum;
}

} // namespace stagecraft
