// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/collective/algorithm.hpp"
#include "sim/collective/torus_grid.hpp"

namespace stagecraft {
namespace {

// The parent of position p among 1 … n in a binary tree whose leaves are the odd positions; 0: p is the root. The
// position's lowest bit says its height.
int parent_of(int p, int n) {
  const int bit = p & -p;
  const int parent = (p ^ bit) | (bit << 1);
  return parent <= n ? parent : p ^ bit;
}

// The nodes of a channel with its chains, and one of its trees at a time.
class Tree {
public:
  Tree(const RankMap& ranks, int channel, FlowBuilder& flow) : flow_(flow) {
    for (std::size_t node = 0; node < ranks.nodes.size(); ++node) {
      walks_.push_back(ranks.walk(node, channel));
    }
  }

  /// Adds the hops of a tree, in which nodes stand `shift` positions further on; returns the latency of the longest way
  /// to the root and back.
  HopLatency add(int shift) {
    const int n = static_cast<int>(walks_.size());
    std::vector<Both> to_parent(n);
    std::vector<int> parents(n, -1);
    Both longest;
    for (int node = 0; node < n; ++node) {
      if (const int parent = parent_of((node + shift) % n + 1, n); parent > 0) {
        parents[node] = (parent - 1 - shift + n) % n;
        to_parent[node] = hops(walks_[node].front(), walks_[parents[node]].front());
      }
    }
    for (int node = 0; node < n; ++node) {
      Both way = chain(walks_[node]);
      for (int at = node; parents[at] >= 0; at = parents[at]) {
        way = {way.up + to_parent[at].up, way.down + to_parent[at].down};
      }
      longest = {greatest(longest.up, way.up), greatest(longest.down, way.down)};
    }
    return longest.up + longest.down;
  }

private:
  struct Both {
    HopLatency up, down;
  };

  Both hops(DeviceId child, DeviceId parent) { return {flow_.hop(child, parent), flow_.hop(parent, child)}; }

  // The first of a walk is the node's rank in the tree; the others reduce towards it, one to the next.
  Both chain(const std::vector<DeviceId>& walk) {
    Both sum;
    for (std::size_t i = 0; i + 1 < walk.size(); ++i) {
      const Both one = hops(walk[i + 1], walk[i]);
      sum = {sum.up + one.up, sum.down + one.down};
    }
    return sum;
  }

  FlowBuilder& flow_;
  std::vector<std::vector<DeviceId>> walks_; // [node]
};

} // namespace

std::string why_no_tree(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (kind != CollectiveKind::all_reduce) {
    return "a tree carries all-reduces only";
  }
  return torus_grid(ranks, router) ? "its ranks are a grid of a torus, whose library has no trees" : "";
}

Flows tree_flows(CollectiveKind, const RankMap& ranks, Router& router) {
  if (ranks.ranks() < 2) {
    return {};
  }
  FlowBuilder flow(router, ranks.nodes.size() > 1 ? kNcclTree : kNcclTreeInNode, ranks.lie());
  HopLatency latency;
  for (int channel = 0; channel < ranks.channels(); ++channel) {
    Tree tree(ranks, channel, flow);
    latency = greatest(latency, greatest(tree.add(0), tree.add(1)));
  }
  return {flow.finish(1.0 / (2 * ranks.channels()), latency, 2)};
}

} // namespace stagecraft
