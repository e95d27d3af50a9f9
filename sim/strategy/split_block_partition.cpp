// torchgpipe's balance: blocks of about equal time. It ignores devices, links and memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {
namespace {

constexpr double kBlockRounding =
    1e-9; // relative to the sums; without it blocks that differ by just 1 may take turns forever

std::vector<double> normalized(std::span<const double> costs) {
  const auto [low, high] = std::minmax_element(costs.begin(), costs.end());
  std::vector<double> scaled(costs.size(), 0.0);
  for (std::size_t i = 0; i < costs.size() && *high > *low; ++i) {
    scaled[i] = (costs[i] - *low) / (*high - *low);
  }
  return scaled;
}

} // namespace

std::vector<int> block_partition(std::span<const double> costs, int parts) {
  const int n = static_cast<int>(costs.size());
  const std::vector<double> cost = normalized(costs);
  std::vector<double> sum(n + 1, 0.0);
  std::partial_sum(cost.begin(), cost.end(), sum.begin() + 1);
  std::vector<int> bounds(parts + 1);
  for (int i = 0; i < parts; ++i) {
    bounds[i] = n / parts * i;
  }
  bounds[parts] = n;
  const auto block = [&](int i) { return sum[bounds[i + 1]] - sum[bounds[i]]; };
  for (;;) {
    // (1) "Fix p in [k] with M(P) = b_p. So B_p is a maximal block of P."
    int p = 0;
    for (int i = 1; i < parts; ++i) {
      p = block(i) >= block(p) ? i : p;
    }
    const double largest = block(p);
    for (;;) {
      // (2) "If M(P) <= m(P) + 1, then stop."
      int q = 0;
      for (int i = 1; i < parts; ++i) {
        q = block(i) < block(q) ? i : q;
      }
      if (largest <= block(q) + 1 + kBlockRounding) {
        std::vector<int> sizes(parts);
        for (int i = 0; i < parts; ++i) {
          sizes[i] = bounds[i + 1] - bounds[i];
        }
        return sizes;
      }
      // (3) "If M(P) > m(P) + 1, then let m(P) = b_q for the q in [k] which is closest to p", and move one layer from
      // its neighbour towards p into B_q.
      const int h = p < q ? q - 1 : q + 1;
      p < q ? --bounds[q] : ++bounds[q + 1];
      // (4) "Let P be the resulting partition. If h = p, go to (1), else to (2)."
      if (h == p) {
        break;
      }
    }
  }
}

PlanResult split_block_partition(const PlanRequest& request) {
  if (const std::string reason = too_many_stages(request); !reason.empty()) {
    return Infeasible{reason};
  }
  const std::vector<DeviceId> devices = chunked_devices(request);
  const int type = request.problem.type_index(devices.front());
  std::vector<double> costs;
  for (OperatorId op = 0; op < request.problem.model.size(); ++op) {
    costs.push_back(request.problem.seconds(type, op));
  }
  if (const std::string reason = missing_kernel(request.problem, type, all_operators(request.problem.model));
      !reason.empty()) {
    return Infeasible{"costs are taken on the first device: " + reason};
  }
  std::vector<int> bounds = {0};
  for (const int size : block_partition(costs, static_cast<int>(devices.size()))) {
    bounds.push_back(bounds.back() + size);
  }
  const Plan plan = make_chain_plan(request, bounds, devices);
  if (request.chunks > 1 && plan.stages.size() < devices.size()) {
    return Infeasible{"balancing blocks leaves " + std::to_string(devices.size() - plan.stages.size()) + " of " +
                      std::to_string(devices.size()) + " stages empty"};
  }
  return plan;
}

} // namespace stagecraft
