// Over how many ranks and nodes the experts of a token lie, against every possible choice counted one by one.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "sim/workload/expert_spread.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

// Visits every order in which `top` of the open ones can be drawn, with its probability.
void draw(const std::vector<double>& weights, std::vector<int>& drawn, const std::vector<char>& open, int top,
          double probability, const std::function<void(const std::vector<int>&, double)>& visit) {
  if (static_cast<int>(drawn.size()) == top) {
    visit(drawn, probability);
    return;
  }
  double left = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left += open[i] != 0 ? weights[i] : 0;
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (open[i] != 0) {
      std::vector<char> rest = open;
      rest[i] = 0;
      drawn.push_back(static_cast<int>(i));
      draw(weights, drawn, rest, top, probability * weights[i] / left, visit);
      drawn.pop_back();
    }
  }
}

// The same by counting: draws groups, then experts of these.
std::vector<double> counted(const Routing& routing, const std::vector<int>& block_of, int blocks) {
  std::vector<double> weights, groups(routing.groups, 0), hits(blocks, 0);
  const int in_group = routing.experts / routing.groups;
  for (int i = 0; i < routing.experts; ++i) {
    weights.push_back(std::pow(i + 1, -routing.skew));
    groups[i / in_group] += weights.back();
  }
  std::vector<int> some;
  draw(groups, some, std::vector<char>(routing.groups, 1), routing.top_groups, 1,
       [&](const std::vector<int>& chosen, double of_groups) {
         std::vector<char> open(routing.experts, 0);
         for (const int group : chosen) {
           std::fill_n(open.begin() + group * in_group, in_group, 1);
         }
         std::vector<int> experts;
         draw(weights, experts, open, routing.top, of_groups,
              [&](const std::vector<int>& of_token, double probability) {
                std::vector<char> hit(blocks, 0);
                for (const int expert : of_token) {
                  hit[block_of[expert]] = 1;
                }
                for (int block = 0; block < blocks; ++block) {
                  hits[block] += hit[block] != 0 ? probability : 0;
                }
              });
       });
  return hits;
}

std::vector<int> in_equal_parts(int experts, int blocks) {
  std::vector<int> block_of(experts);
  for (int i = 0; i < experts; ++i) {
    block_of[i] = i * blocks / experts;
  }
  return block_of;
}

double sum(const std::vector<double>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

TEST_CASE("blocks are hit as often as in all draws counted one by one", "[workload][experts]") {
  for (const double skew : {0.0, 0.4, 1.5}) {
    for (const Routing& routing :
         {Routing{8, skew, 0, 3}, Routing{8, skew, 0, 1}, Routing{8, skew, 0, 8}, Routing{8, skew, 0, 3, 4, 2},
          Routing{8, skew, 0, 4, 2, 1}, Routing{6, skew, 0, 2, 3, 3}}) {
      for (const int blocks : {1, 2, 4}) {
        const std::vector<int> block_of = in_equal_parts(routing.experts, blocks);
        const std::vector<double> hits = hit_probabilities(routing, block_of);
        const std::vector<double> expected = counted(routing, block_of, blocks);
        CAPTURE(skew, routing.experts, routing.top, routing.groups, routing.top_groups, blocks);
        REQUIRE(hits.size() == expected.size());
        for (int block = 0; block < blocks; ++block) {
          CHECK(hits[block] == Approx(expected[block]).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("blocks need not be neighbours", "[workload][experts]") {
  const std::vector<int> block_of = {0, 1, 0, 1, 2, 2, 1, 0};
  for (const double skew : {0.0, 1.0}) {
    const Routing routing{8, skew, 0, 3, 2, 2};
    const std::vector<double> hits = hit_probabilities(routing, block_of), expected = counted(routing, block_of, 3);
    for (int block = 0; block < 3; ++block) {
      CHECK(hits[block] == Approx(expected[block]).epsilon(1e-6));
    }
  }
}

// DeepSeek-V3: 8 of 256 experts, of 4 of 8 groups, on 64 ranks of 8 nodes, a group a node. With u = C(96,8)/C(128,8) a
// chosen node is missed by all eight; so the nodes of a token are 4 (1 - u). A rank of a chosen node has 4 of its 128
// experts; half of the 64 ranks are on chosen nodes.
TEST_CASE("a token of DeepSeek-V3 goes to 3.6 nodes and 7.4 ranks", "[workload][experts]") {
  const auto missed = [](int all, int marked) {
    double product = 1;
    for (int i = 0; i < 8; ++i) {
      product *= static_cast<double>(all - marked - i) / (all - i);
    }
    return product;
  };
  const Routing routing{256, 0, 0, 8, 8, 4};
  CHECK(sum(hit_probabilities(routing, in_equal_parts(256, 8))) == Approx(4 * (1 - missed(128, 32))));
  CHECK(sum(hit_probabilities(routing, in_equal_parts(256, 64))) == Approx(32 * (1 - missed(128, 4))));
  CHECK(4 * (1 - missed(128, 32)) == Approx(3.63).epsilon(1e-2));
  CHECK(32 * (1 - missed(128, 4)) == Approx(7.36).epsilon(1e-2));
  // Without groups it would be sent to more nodes: 8 (1 - C(224,8)/C(256,8)).
  CHECK(sum(hit_probabilities({256, 0, 0, 8}, in_equal_parts(256, 8))) == Approx(8 * (1 - missed(256, 32))));
}

TEST_CASE("skew sends tokens to fewer ranks, the first of them most often", "[workload][experts]") {
  const std::vector<int> block_of = in_equal_parts(64, 16);
  double before = 17;
  for (const double skew : {0.0, 0.5, 1.0, 2.0}) {
    const std::vector<double> hits = hit_probabilities({64, skew, 0, 6}, block_of);
    CHECK(sum(hits) < before);
    CHECK(std::is_sorted(hits.rbegin(), hits.rend(), [](double a, double b) { return a < b - 1e-9; }));
    before = sum(hits);
  }
}

} // namespace
} // namespace stagecraft
