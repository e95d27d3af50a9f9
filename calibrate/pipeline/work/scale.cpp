// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/work/scale.hpp"

#include <cmath>

namespace stagecraft::pipeline {

Platform rescaled(Platform platform, const Scale& scale) {
  for (Link& link : platform.links) {
    link.bandwidth = link.bandwidth * scale.bandwidth;
    link.latency = link.latency * scale.time;
  }
  return platform;
}

TaskGraph rescaled(TaskGraph graph, const Scale& scale) {
  for (Leg& leg : graph.legs) {
    leg.bandwidth = leg.bandwidth * scale.bandwidth;
    leg.latency = leg.latency * scale.time;
  }
  for (Work& work : graph.works) {
    work.seconds = work.seconds * scale.time;
    work.latency = work.latency * scale.time;
    if (work.transfers()) {
      work.bytes = std::round(work.bytes * scale.time * scale.bandwidth);
      work.seconds = work.latency + Bytes{work.bytes} / graph.legs[work.leg].bandwidth;
    }
  }
  return graph;
}

} // namespace stagecraft::pipeline
