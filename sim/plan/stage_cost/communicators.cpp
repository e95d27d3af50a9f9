// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/communicators.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace stagecraft {
namespace {

enum class Purpose { pass, data, pipeline, norm };

// Groups of devices by what they exchange, each once.
class Groups {
public:
  void add(Purpose purpose, std::vector<DeviceId> devices) {
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    if (devices.size() > 1) {
      groups_.emplace(purpose, std::move(devices));
    }
  }

  std::map<DeviceId, int> count() const {
    std::map<DeviceId, int> counts;
    for (const auto& [purpose, devices] : groups_) {
      for (const DeviceId device : devices) {
        ++counts[device];
      }
    }
    return counts;
  }

private:
  std::set<std::pair<Purpose, std::vector<DeviceId>>> groups_;
};

// Every `step`-th device of a stage from `first` on, `count` of them.
std::vector<DeviceId> devices_of(const StageCost& stage, std::size_t first, std::size_t step, std::size_t count) {
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < count; ++i) {
    devices.push_back(stage.device(first + i * step));
  }
  return devices;
}

std::size_t replicas_of(const StageCost& stage) {
  return stage.size() / static_cast<std::size_t>(stage.tensor_parallel);
}

} // namespace

std::vector<std::vector<DeviceId>> norm_groups(const PlanCost& cost, bool shards_optimizer) {
  const std::size_t replicas = replicas_of(cost.stages.front());
  const bool alike = std::all_of(cost.stages.begin(), cost.stages.end(),
                                 [&](const StageCost& stage) { return replicas_of(stage) == replicas; });
  std::vector<std::vector<DeviceId>> groups(alike && !shards_optimizer ? replicas : 1);
  for (const StageCost& stage : cost.stages) {
    const std::size_t size = stage.size() / groups.size();
    for (std::size_t i = 0; i < stage.size(); ++i) {
      groups[i / size].push_back(stage.device(i));
    }
  }
  for (std::vector<DeviceId>& group : groups) {
    std::sort(group.begin(), group.end());
    group.erase(std::unique(group.begin(), group.end()), group.end());
  }
  return groups;
}

std::map<DeviceId, int> communicators_of(const PlanCost& cost, bool clips_gradients, bool shards_optimizer) {
  Groups groups;
  for (const StageCost& stage : cost.stages) {
    const auto degree = static_cast<std::size_t>(stage.tensor_parallel);
    const std::size_t replicas = replicas_of(stage);
    for (const Axis axis : kPassAxes) {
      for (const auto& places : team_places(stage.axes, axis, stage.size())) {
        std::vector<DeviceId> devices;
        for (const std::size_t place : places) {
          devices.push_back(stage.device(place));
        }
        groups.add(Purpose::pass, std::move(devices));
      }
    }
    const std::size_t sharing = stage.zero == Zero::none ? replicas : static_cast<std::size_t>(stage.sharing);
    for (std::size_t rank = 0; rank < degree; ++rank) {
      for (std::size_t first = 0; first < replicas; first += sharing) {
        groups.add(Purpose::data, devices_of(stage, first * degree + rank, degree, sharing));
      }
      for (std::size_t place = 0; place < sharing; ++place) { // what holds the same in each group
        groups.add(Purpose::data, devices_of(stage, place * degree + rank, sharing * degree, replicas / sharing));
      }
      const auto apart = static_cast<std::size_t>(stage.axes.expert_replicas()); // replicas with other experts
      for (std::size_t place = 0; apart > 1 && place < apart; ++place) {
        groups.add(Purpose::data, devices_of(stage, place * degree + rank, apart * degree, replicas / apart));
      }
    }
  }
  std::vector<DeviceId> pipeline;
  for (const StageEdge& edge : cost.edges) {
    for (const int stage : {edge.from, edge.to}) {
      for (std::size_t i = 0; i < cost.stages[stage].size(); ++i) {
        pipeline.push_back(cost.stages[stage].device(i));
      }
    }
  }
  groups.add(Purpose::pipeline, std::move(pipeline));
  if (clips_gradients) {
    for (std::vector<DeviceId>& group : norm_groups(cost, shards_optimizer)) {
      groups.add(Purpose::norm, std::move(group));
    }
  }
  return groups.count();
}

} // namespace stagecraft
