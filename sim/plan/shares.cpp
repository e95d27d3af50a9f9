// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/shares.hpp"

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
  for (std::size_t i = 0; given < samples - 0.5; ++i, ++given) {
    whole[order[i]] += 1;
  }
  for (double& share : whole) {
    share /= samples;
  }
  return whole;
}

} // namespace stagecraft
