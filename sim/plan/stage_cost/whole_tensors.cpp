// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/whole_tensors.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace stagecraft {

std::vector<StepsAlike> share_out_whole(std::vector<double> tensors, int replicas) {
  const double all = std::accumulate(tensors.begin(), tensors.end(), 0.0);
  if (replicas < 2 || all <= 0) {
    return {};
  }
  std::sort(tensors.begin(), tensors.end(), std::greater<>());
  std::priority_queue<double, std::vector<double>, std::greater<>> loads(
      std::greater<>(), std::vector<double>(static_cast<std::size_t>(replicas), 0.0));
  for (const double tensor : tensors) {
    const double load = loads.top() + tensor;
    loads.pop();
    loads.push(load);
  }
  std::vector<StepsAlike> alike;
  for (; !loads.empty(); loads.pop()) {
    const double part = loads.top() / all;
    if (part > 0 && !alike.empty() && alike.back().part == part) {
      ++alike.back().replicas;
    } else if (part > 0) {
      alike.push_back({part, 1});
    }
  }
  std::reverse(alike.begin(), alike.end());
  return alike;
}

} // namespace stagecraft
