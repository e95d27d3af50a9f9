// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/loading.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

// What is read from the disk is written into the host's memory.
Leg disk_leg(const Platform& platform, int node) {
  Leg leg{{}, {}, BytesPerSecond{kInfinity}};
  for (const LinkId link : {platform.nodes[node].disk, platform.nodes[node].memory}) {
    if (link >= 0) {
      leg.links.push_back(link);
      leg.latency += platform.links[link].latency;
      leg.bandwidth = std::min(leg.bandwidth, platform.links[link].bandwidth);
    }
  }
  return leg;
}

std::variant<ReplicaLoading, Infeasible> replica_loading(const Problem& problem, const ReplicaCost& replica,
                                                         const Loader& loader) {
  const Platform& platform = problem.platform;
  const double samples = problem.samples * replica.share;
  ReplicaLoading loading{.node = platform.devices[replica.device].node};
  loading.disk = disk_leg(platform, loading.node);
  loading.read = Bytes{std::round(loader.bytes_per_sample.value * samples)};
  const FlopsPerSecond speed = platform.nodes[loading.node].host.core_speed;
  loading.decode = samples * (loader.decode + loader.decode_work / speed);
  loading.copied = Bytes{std::round(problem.input_bytes().value * replica.share)};
  loading.copy.bandwidth = BytesPerSecond{kInfinity};
  if (loading.copied.value > 0) {
    const std::optional<Leg> leg = problem.router.from_host(replica.device);
    if (!leg && platform.nodes[loading.node].disk >= 0) { // a star of devices has hosts in name only
      return Infeasible{"the loader cannot reach '" + platform.devices[replica.device].name +
                        "': no link leads there from its host"};
    }
    loading.copy = leg ? *leg : loading.copy;
  }
  return loading;
}

// The cores of a node that loaders may use: those that do not spin for a device.
int free_cores(const Problem& problem, const Plan& plan, int node, HostWait host) {
  int cores = problem.platform.nodes[node].host.cores;
  for (const DeviceId device : devices_of(plan)) {
    cores -= host == HostWait::spin && problem.platform.devices[device].node == node ? 1 : 0;
  }
  return cores;
}

} // namespace

int balanced_workers(Seconds load, Seconds step, int most) {
  constexpr double kMargin = 0.95;
  if (step.value <= 0 || load / (kMargin * step) >= most) {
    return load.value > 0 ? most : 1;
  }
  return std::max(1, static_cast<int>(std::ceil(load / (kMargin * step) - 1e-9)));
}

std::variant<Loading, Infeasible> plan_loading(const Problem& problem, const Plan& plan, const PlanCost& cost,
                                               const Loader& loader, const Demand& demand) {
  Loading loading{.host = loader.host};
  std::map<int, int> loaders; // per node
  Seconds slowest;
  for (const ReplicaCost& replica : cost.stages.front().replicas) {
    auto made = replica_loading(problem, replica, loader);
    if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
      return *reason;
    }
    const ReplicaLoading& one = loading.replicas.emplace_back(std::move(std::get<ReplicaLoading>(made)));
    ++loaders[one.node];
    slowest = std::max(slowest, one.read / one.disk.bandwidth + one.decode);
  }
  int most = std::numeric_limits<int>::max();
  for (const auto& [node, count] : loaders) {
    const int free = std::isinf(problem.platform.nodes[node].host.core_speed.value)
                         ? std::numeric_limits<int>::max()
                         : free_cores(problem, plan, node, loader.host);
    most = std::min(most, free / count);
    if (most < loader.workers.value_or(1)) {
      return Infeasible{std::to_string(count) + " loaders of " + std::to_string(loader.workers.value_or(1)) +
                        " workers need more than the " + std::to_string(std::max(free, 0)) + " free cores of '" +
                        problem.platform.nodes[node].name + "'"};
    }
  }
  loading.workers = loader.workers ? *loader.workers : balanced_workers(slowest, demand.step, most);
  loading.queue = loader.queue ? *loader.queue : std::max(2, loading.workers) + demand.burst;
  return loading;
}

} // namespace stagecraft
