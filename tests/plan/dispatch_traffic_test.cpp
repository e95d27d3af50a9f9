// How many copies of a token cross each tier: against all choices of experts sent one by one, and times against those
// that DeepEP's authors published.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>

#include "sim/base/format/yaml.hpp"
#include "sim/base/system/file.hpp"
#include "sim/plan/stage_cost/groups/dispatch_traffic.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/platform/platforms.hpp"

namespace stagecraft {
namespace {

// Sends of each rank a token for every choice of experts, each equally likely, and counts copies.
class Counted {
public:
  Counted(const Routing& routing, const std::vector<int>& node_of) : routing_(routing), node_of_(node_of) {
    const std::size_t ranks = node_of.size();
    out_nic_.resize(ranks), in_nic_.resize(ranks), out_port_.resize(ranks), in_port_.resize(ranks);
    if (routing.choice == ExpertChoice::round_robin) {
      send_in_turn();
      return;
    }
    std::vector<char> chosen(routing.experts, 0);
    std::fill(chosen.end() - routing.top, chosen.end(), 1);
    do {
      if (is_open(chosen)) {
        send_from_all(chosen);
      }
    } while (std::next_permutation(chosen.begin(), chosen.end()));
  }

  double between() const { return std::max(most(out_nic_), most(in_nic_)); }
  double inside() const { return std::max(most(out_port_), most(in_port_)); }

private:
  // As many tokens as there are experts come round to the first one again.
  void send_in_turn() {
    for (int token = 0, next = 0; token < routing_.experts; ++token) {
      std::vector<char> chosen(routing_.experts, 0);
      for (int i = 0; i < routing_.top; ++i) {
        chosen[next++ % routing_.experts] = 1;
      }
      send_from_all(chosen);
    }
  }

  void send_from_all(const std::vector<char>& chosen) {
    ++choices_;
    for (std::size_t rank = 0; rank < node_of_.size(); ++rank) {
      send(static_cast<int>(rank), chosen);
    }
  }

  // Whether a router that first chooses groups can have chosen these.
  bool is_open(const std::vector<char>& chosen) const {
    std::set<int> groups;
    for (int i = 0; i < routing_.experts; ++i) {
      if (chosen[i] != 0) {
        groups.insert(i / (routing_.experts / routing_.groups));
      }
    }
    return static_cast<int>(groups.size()) <= routing_.top_groups;
  }

  int rank_of(int expert) const { return expert * static_cast<int>(node_of_.size()) / routing_.experts; }

  // The rank of the same place in a node as this one in its own.
  int arrives_at(int node, int rank) const {
    const auto first = std::find(node_of_.begin(), node_of_.end(), node_of_[rank]) - node_of_.begin();
    return static_cast<int>(std::find(node_of_.begin(), node_of_.end(), node) - node_of_.begin() + rank - first);
  }

  void send(int from, const std::vector<char>& chosen) {
    std::set<int> ranks, nodes;
    for (int i = 0; i < routing_.experts; ++i) {
      if (chosen[i] != 0) {
        ranks.insert(rank_of(i));
        nodes.insert(node_of_[rank_of(i)]);
      }
    }
    for (const int node : nodes) {
      const int at = node == node_of_[from] ? from : arrives_at(node, from);
      if (at != from) {
        ++out_nic_[from];
        ++in_nic_[at];
      }
      for (const int to : ranks) {
        if (node_of_[to] == node && to != at) {
          ++out_port_[at];
          ++in_port_[to];
        }
      }
    }
  }

  double most(const std::vector<int>& counts) const {
    return static_cast<double>(*std::max_element(counts.begin(), counts.end())) / choices_;
  }

  const Routing& routing_;
  const std::vector<int>& node_of_;
  std::vector<int> out_nic_, in_nic_, out_port_, in_port_;
  int choices_ = 0;
};

TEST_CASE("copies of a token are as many as are counted, sent one by one", "[plan][dispatch]") {
  const std::vector<int> two_nodes = {0, 0, 1, 1}, one_node = {0, 0, 0, 0}, apart = {0, 1, 2, 3},
                         of_four = {0, 0, 0, 0, 1, 1, 1, 1}, three = {0, 0, 1, 1, 2, 2};
  // Where a token chooses groups first, choices are equally likely if all experts of the chosen groups are taken.
  const std::vector<std::pair<Routing, const std::vector<int>*>> cases = {
      {{.experts = 8, .top = 1}, &two_nodes},
      {{.experts = 8, .top = 2}, &two_nodes},
      {{.experts = 8, .top = 3}, &one_node},
      {{.experts = 8, .top = 3}, &apart},
      {{.experts = 16, .top = 4}, &of_four},
      {{.experts = 12, .top = 5}, &three},
      {{.experts = 8, .top = 4, .groups = 4, .top_groups = 2}, &two_nodes},
      {{.experts = 12, .top = 4, .groups = 3, .top_groups = 1}, &three},
      {{.experts = 12, .top = 8, .groups = 3, .top_groups = 2}, &three},
      {{.experts = 16, .top = 4, .choice = ExpertChoice::round_robin}, &of_four},
      {{.experts = 12, .top = 5, .choice = ExpertChoice::round_robin}, &three},
      {{.experts = 8, .top = 3, .choice = ExpertChoice::round_robin}, &two_nodes},
  };
  for (const auto& [routing, node_of] : cases) {
    CAPTURE(routing.experts, routing.top, routing.groups, node_of->size());
    const Counted counted(routing, *node_of);
    const DispatchTraffic traffic = dispatch_traffic(routing, *node_of);
    CHECK(traffic.between == test::near(counted.between()));
    CHECK(traffic.inside == test::near(counted.inside()));
  }
}

// Eight ranks of a node, of 128 experts, of which a token has eight. In turn they are half of a rank's sixteen, so that
// it is sent once, but by one rank of eight to itself. Drawn, they lie on 8 (1 - C(112,8)/C(128,8)) = 5.34 ranks.
TEST_CASE("experts that are taken in turn lie on one rank", "[plan][dispatch]") {
  const std::vector<int> node_of(8, 0);
  Routing routing{.experts = 128, .top = 8, .choice = ExpertChoice::round_robin};
  CHECK(dispatch_traffic(routing, node_of).inside == test::near(7.0 / 8));
  routing.choice = ExpertChoice::drawn;
  CHECK(dispatch_traffic(routing, node_of).inside == Approx(5.34 * 7 / 8).epsilon(1e-3));
}

// Eight ranks of a node, whose experts drop all rows beyond half of an equal share: half of all tokens are kept, and
// seven eighths of these are another rank's.
TEST_CASE("what is dropped is not sent", "[plan][dispatch]") {
  const std::vector<int> node_of = {0, 0, 0, 0, 0, 0, 0, 0};
  const DispatchTraffic traffic = dispatch_traffic({.experts = 8, .most = 0.5, .top = 1}, node_of);
  CHECK(traffic.inside == test::near(0.5 * 7 / 8));
}

// Nodes of the shipped file.
Platform h800(int nodes) {
  std::string text = read_file(test::platforms_folder() / "hgx-h800.yaml");
  const std::string name = "  - name: hgx\n";
  text.replace(text.find(name), name.size(), name + "    count: " + std::to_string(nodes) + "\n");
  return load_platform(yaml::parse(text, "hgx-h800.yaml"), test::shipped_types());
}

// DeepEP's own figures (github.com/deepseek-ai/DeepEP, docs/legacy.md, with 4096 tokens of 7168 numbers, 8 of 256
// experts of four nodes at most, 24 multiprocessors, on H800): bytes of a rank's copies, those for its own node or rank
// included, over time. Nothing here was fitted to them: times are of H100, through the ports of H800. On two nodes they
// are further off.
TEST_CASE("dispatch and combine on H800 as DeepEP's authors measured them", "[plan][dispatch]") {
  struct Published {
    int ranks;
    double dispatch, combine; // GB/s
    double error;
  };
  constexpr double kTokens = 4096, kWidth = 7168;
  for (const Published& one : {Published{8, 153, 158, 0.1}, Published{16, 43, 43, 0.3}, Published{32, 58, 57, 0.1},
                               Published{64, 51, 50, 0.1}}) {
    const int nodes = one.ranks / 8;
    const Platform platform = h800(nodes);
    Router router(platform);
    std::vector<DeviceId> devices(one.ranks);
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<int> node_of(one.ranks);
    std::transform(devices.begin(), devices.end(), node_of.begin(), [](DeviceId device) { return device / 8; });
    DispatchTraffic tokens =
        dispatch_traffic({.experts = 256, .top = 8, .groups = nodes, .top_groups = std::min(nodes, 4)}, node_of);
    tokens.dispatched = Bytes{kWidth * (1 + 4.0 / 128)};
    tokens.combined = Bytes{kWidth * 2};
    tokens.processors = 24;
    const Group group = group_with_ways(devices, router, "auto", &tokens);
    const double copies = nodes == 1 ? tokens.inside * 8 / 7 : tokens.between * nodes / (nodes - 1);
    const auto gigabytes = [&](CollectiveKind kind, Bytes token) {
      const Bytes bytes = token * kTokens;
      return (bytes * copies).value / 1e9 / seconds_of({kind, group, bytes}).value;
    };
    CAPTURE(one.ranks);
    CHECK(gigabytes(CollectiveKind::dispatch, tokens.dispatched) == Approx(one.dispatch).epsilon(one.error));
    CHECK(gigabytes(CollectiveKind::combine, tokens.combined) == Approx(one.combine).epsilon(one.error));
  }
}

} // namespace
} // namespace stagecraft
