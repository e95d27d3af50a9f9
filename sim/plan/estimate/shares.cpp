// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stagecraft {

std::vector<double> shares_by_speed(const Problem& problem, std::vector<double> speeds) {
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  for (double& speed : speeds) {
    speed /= sum;
  }
  if (problem.divisible_at_will) {
    return speeds;
  }
  const double samples = problem.samples;
  std::vector<double> whole(speeds.size());
  std::vector<std::size_t> order(speeds.size());
  std::iota(order.begin(), order.end(), 0);
  double given = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    whole[i] = std::floor(speeds[i] * samples + 1e-9);
    given += whole[i];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return speeds[a] * samples - whole[a] > speeds[b] * samples - whole[b] + 1e-12;
  });
  const double left = std::ceil(samples - 0.5 - given);
  for (std::size_t i = 0; static_cast<double>(i) < left; ++i) {
    whole[order[i]] += 1;
  }
  for (double& share : whole) {
    share /= samples;
  }
  return whole;
}

bool divides_samples(const Problem& problem, int replicas) {
  const double samples = problem.samples / replicas;
  return problem.divisible_at_will || std::abs(samples - std::round(samples)) < 1e-9;
}

AbleDevices able_devices(const PlanRequest& request) {
  const std::vector<OperatorId> all = all_operators(request.problem.model);
  AbleDevices able;
  for (const DeviceId device : request.devices) {
    const std::string lacks = missing_kernel(request.problem, request.problem.type_index(device), all);
    if (lacks.empty()) {
      able.devices.push_back(device);
    } else {
      able.lacks = lacks;
    }
  }
  return able;
}

Bytes most_memory(const Platform& platform, const std::vector<DeviceId>& devices) {
  Bytes most;
  for (const DeviceId device : devices) {
    most = std::max(most, platform.type_of(device).memory);
  }
  return most;
}

Stage make_replicated_stage(const Problem& problem, std::vector<OperatorId> operators,
                            std::span<const DeviceId> devices, std::span<const double> weights) {
  std::vector<double> speeds;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    double seconds = 0;
    for (const OperatorId op : operators) {
      seconds += problem.seconds(problem.type_index(devices[i]), op);
    }
    speeds.push_back((weights.empty() ? 1 : weights[i]) / std::max(seconds, 1e-300));
  }
  const std::vector<double> shares = shares_by_speed(problem, speeds);
  Stage stage{.operators = std::move(operators)};
  recompute_as_trained(problem, stage);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (shares[i] > 0) {
      stage.devices.push_back(devices[i]);
      stage.shares.push_back(shares[i]);
    }
  }
  if (stage.devices.size() == 1) {
    stage.shares.clear(); // a stage without replicas has no shares
  }
  return stage;
}

} // namespace stagecraft
