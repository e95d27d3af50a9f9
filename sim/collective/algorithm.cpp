// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/algorithm.hpp"

#include <array>

#include "sim/base/error.hpp"
#include "sim/base/improves.hpp"

namespace stagecraft {

// NCCL's channels, a multiprocessor each, as it logs them on nodes of eight H100: "24 coll channels, 16 nvls channels,
// 32 p2p channels" on one node, 16 of each on several. Its sources have 16 for NVLS on Hopper (transport/nvls.cc).
// Routers of a torus are beside the cores, which they leave alone.
constexpr KernelProcessors kRings{24, 16}, kSwitch{16, 16}, kPairs{32, 16}, kNoProcessors{0, 0};

std::span<const AlgorithmRow> algorithms() {
  static constexpr std::array kAlgorithms = {
      AlgorithmRow{"ring", "a ring through all nodes, each channel through another NIC", why_no_ring, ring_flows,
                   kRings},
      AlgorithmRow{"tree", "two binary trees over the nodes, chains inside them", why_no_tree, tree_flows, kRings},
      AlgorithmRow{"hierarchical", "rings inside the nodes, rings between them for parts of the bytes",
                   why_no_hierarchy, hierarchical_flows, kRings},
      AlgorithmRow{"nvls", "the switch of a node adds up and spreads (NVLink SHARP)", why_no_nvls, nvls_flows, kSwitch},
      AlgorithmRow{"direct", "every rank sends its part to every other one, over a link for each pair", why_not_direct,
                   direct_flows, kRings},
      AlgorithmRow{"torus", "rings along all axes of a torus at once, both ways round", why_no_torus, torus_flows,
                   kNoProcessors},
      AlgorithmRow{"pairs", "every rank sends every other one its part", why_no_pairs, pairs_flows, kPairs},
      AlgorithmRow{"measured", "what a library does below a switch, in the time measured for it", why_not_measured,
                   measured_flows, kRings},
  };
  return kAlgorithms;
}

namespace {

Way way_of(const AlgorithmRow& row, CollectiveKind kind, const RankMap& ranks, Router& router) {
  Way way{&row, row.flows(kind, ranks, router)};
  for (CoupledFlow& flow : way.flows) {
    flow.processors = ranks.nodes.size() > 1 ? row.processors.between : row.processors.in_node;
  }
  return way;
}

} // namespace

std::vector<Way> ways_of(CollectiveKind kind, const std::vector<DeviceId>& devices, Router& router,
                         std::string_view wanted) {
  return ways_of(kind, map_ranks(devices, router), router, wanted);
}

std::vector<Way> ways_of(CollectiveKind kind, const RankMap& ranks, Router& router, std::string_view wanted) {
  if (wanted == "auto" && why_not_measured(kind, ranks, router).empty()) {
    wanted = "measured";
  }
  std::vector<Way> ways;
  for (const AlgorithmRow& row : algorithms()) {
    if ((wanted == "auto" || wanted == row.name) && row.why_not(kind, ranks, router).empty()) {
      ways.push_back(way_of(row, kind, ranks, router));
    }
  }
  if (ways.empty()) {
    ways.push_back(way_of(algorithms().front(), kind, ranks, router)); // the ring
  }
  return ways;
}

std::string why_not_wanted(CollectiveKind kind, const std::vector<DeviceId>& devices, Router& router,
                           std::string_view wanted) {
  for (const AlgorithmRow& row : algorithms()) {
    if (wanted == row.name) {
      return row.why_not(kind, map_ranks(devices, router), router);
    }
  }
  return "";
}

const Way& fastest_of(std::span<const Way> ways, Bytes buffer) {
  check(!ways.empty(), "a collective without an algorithm");
  const Way* best = &ways.front();
  for (const Way& way : ways) {
    if (improves(seconds_of(way.flows, buffer).value, seconds_of(best->flows, buffer).value)) {
      best = &way;
    }
  }
  return *best;
}

} // namespace stagecraft
