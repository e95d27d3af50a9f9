// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/cores.hpp"

#include <pthread.h>
#include <sched.h>

#include <string>

namespace stagecraft::pipeline {
namespace {

std::vector<int> cores_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) {
        cores.push_back(core);
      }
    }
  }
  return cores;
}

} // namespace

Cores cores_for(const Setting& setting) {
  const std::vector<DeviceId>& devices = setting.graph.devices;
  const std::vector<int> allowed = cores_allowed();
  if (allowed.size() < devices.size()) {
    throw Unavailable("the plan uses " + std::to_string(devices.size()) +
                      " devices, and each needs a core; allowed: " + std::to_string(allowed.size()));
  }
  Cores cores{{allowed.begin(), allowed.begin() + static_cast<std::ptrdiff_t>(devices.size())}, {}};
  for (const std::int32_t work : setting.channels.work_of) {
    cores.of_channel.push_back(cores.of_device[setting.graph.works[work].device]);
  }
  return cores;
}

bool stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

} // namespace stagecraft::pipeline
