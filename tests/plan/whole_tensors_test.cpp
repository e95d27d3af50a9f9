// How whole tensors are shared out among replicas.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <random>

#include "sim/plan/stage_cost/whole_tensors.hpp"
#include "tests/catch.hpp"

namespace stagecraft::test {
namespace {

// 6 and 5 go to one replica each, 4 to that with 5, 3 to that with 6, and 2 to either of the two that have 9.
TEST_CASE("the largest tensor goes first, to the replica that has fewest parameters", "[plan][zero]") {
  CHECK(share_out_whole({2, 3, 4, 5, 6}, 2) == std::vector<StepsAlike>{{11.0 / 20, 1}, {9.0 / 20, 1}});
  CHECK(share_out_whole({8, 4, 4, 4}, 8) == std::vector<StepsAlike>{{8.0 / 20, 1}, {4.0 / 20, 3}}); // four have none
  CHECK(share_out_whole({8, 4}, 1).empty());
  CHECK(share_out_whole({}, 4).empty());
}

// Graham 1969: the busiest has at most 4/3 - 1/(3m) of the least that it can have, which is a mean or the largest
// tensor.
TEST_CASE("all tensors are shared out, and about evenly", "[plan][zero]") {
  std::mt19937 random(5);
  for (int draw = 0; draw < 200; ++draw) {
    const int replicas = 2 + static_cast<int>(random() % 30);
    std::vector<double> tensors(1 + random() % 100);
    for (double& tensor : tensors) {
      tensor = 1 + static_cast<double>(random() % 1000);
    }
    const double all = std::accumulate(tensors.begin(), tensors.end(), 0.0);
    const std::vector<StepsAlike> shared = share_out_whole(tensors, replicas);
    double sum = 0;
    int busy = 0;
    for (const StepsAlike& alike : shared) {
      sum += alike.part * alike.replicas;
      busy += alike.replicas;
      CHECK(alike.part <= shared.front().part);
    }
    CHECK(sum == near(1));
    CHECK(busy == std::min(replicas, static_cast<int>(tensors.size())));
    const double least = std::max(*std::max_element(tensors.begin(), tensors.end()), all / replicas) / all;
    CHECK(shared.front().part >= least * (1 - 1e-12));
    CHECK(shared.front().part <= least + *std::max_element(tensors.begin(), tensors.end()) / all);
  }
}

} // namespace
} // namespace stagecraft::test
