// The whole model on every device; each takes samples in proportion to its speed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/plan/strategy.hpp"

namespace stagecraft {
namespace {

// floor(B s_d / sum s) samples each; those left go one by one to the largest fractions, ties to the lower index.
std::vector<double> whole_shares(const std::vector<double>& exact, double samples) {
  std::vector<double> whole(exact.size());
  std::vector<std::size_t> order(exact.size());
  std::iota(order.begin(), order.end(), 0);
  double given = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    whole[i] = std::floor(exact[i] * samples + 1e-9);
    given += whole[i];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return exact[a] * samples - whole[a] > exact[b] * samples - whole[b] + 1e-12;
  });
  for (std::size_t i = 0; given < samples - 0.5; ++i, ++given) {
    whole[order[i]] += 1;
  }
  for (double& share : whole) {
    share /= samples;
  }
  return whole;
}

} // namespace

PlanResult split_data_parallel(const PlanRequest& request) {
  const Problem& problem = request.problem;
  Stage stage;
  stage.operators.resize(problem.model.size());
  std::iota(stage.operators.begin(), stage.operators.end(), 0);
  stage.recompute = problem.training.recompute;
  std::vector<double> speeds;
  double sum = 0;
  std::string reason;
  std::vector<DeviceId> able;
  for (const DeviceId device : request.devices) {
    const int type = problem.type_index(device);
    if (const std::string lacks = missing_kernel(problem, type, stage.operators); !lacks.empty()) {
      reason = lacks;
      continue;
    }
    able.push_back(device);
    speeds.push_back(1 / std::max(problem.prefix.seconds[type].back(), 1e-300));
    sum += speeds.back();
  }
  if (able.empty()) {
    return Infeasible{reason};
  }
  for (double& speed : speeds) {
    speed /= sum;
  }
  const std::vector<double> shares = problem.divisible_at_will ? speeds : whole_shares(speeds, problem.samples);
  for (std::size_t i = 0; i < able.size(); ++i) {
    if (shares[i] > 0) {
      stage.devices.push_back(able[i]);
      stage.shares.push_back(shares[i]);
    }
  }
  Plan plan{.stages = {stage}};
  if (able.size() < request.devices.size()) {
    plan.note = "left out devices that lack kernels: " + reason;
  } else if (stage.devices.size() < able.size()) {
    plan.note = "a micro-batch of " + to_text(problem.samples, 0) + " samples is too small for " +
                std::to_string(able.size()) + " devices";
  }
  return plan;
}

} // namespace stagecraft
