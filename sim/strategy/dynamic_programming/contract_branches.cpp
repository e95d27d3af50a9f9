// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/contract_branches.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>

namespace stagecraft {

std::vector<std::vector<char>> ideals_of(const Predecessors& graph, int cap) {
  const std::size_t nodes = graph.size();
  std::vector<std::vector<char>> ideals = {std::vector<char>(nodes, 0)};
  std::unordered_set<std::string> seen = {std::string(nodes, 0)};
  for (std::size_t at = 0; at < ideals.size(); ++at) {
    for (std::size_t node = 0; node < nodes; ++node) {
      const std::vector<char>& ideal = ideals[at];
      const bool available = ideal[node] == 0 && std::all_of(graph[node].begin(), graph[node].end(),
                                                             [&](int needed) { return ideal[needed] != 0; });
      if (!available) {
        continue;
      }
      std::string key(ideal.begin(), ideal.end());
      key[node] = 1;
      if (!seen.insert(key).second) {
        continue;
      }
      if (static_cast<int>(ideals.size()) > cap) {
        return {};
      }
      ideals.emplace_back(key.begin(), key.end());
    }
  }
  return ideals;
}

namespace {

// A connected part of a region, or several that were merged. Its operators are cut, in order, into `blocks` blocks.
struct Branch {
  std::vector<OperatorId> operators; // ascending
  int blocks = 1;
};

// The operators between two neighbouring operators of the trunk.
struct Region {
  std::vector<Branch> branches;
  int ideals = 0;
};

// The trunk: operators that are an ancestor or a descendant of every other one. All operators before an operator are
// its ancestors if each of them has a successor no later than it, since following such successors leads to it. The same
// holds, reversed, for the operators after it.
std::vector<char> trunk_of(const ModelGraph& model) {
  const int n = model.size();
  std::vector<char> trunk(n, 0);
  OperatorId reached = 0; // the latest of the first successors of the operators before `op`
  for (OperatorId op = 0; op < n; ++op) {
    trunk[op] = reached <= op ? 1 : 0;
    const auto& next = model.successors[op];
    reached = std::max(reached, next.empty() ? n : *std::min_element(next.begin(), next.end()));
  }
  OperatorId needed = n - 1; // the earliest of the last predecessors of the operators after `op`
  for (OperatorId op = n - 1; op >= 0; --op) {
    trunk[op] = trunk[op] != 0 && needed >= op ? 1 : 0;
    const auto& before = model.predecessors[op];
    needed = std::min(needed, before.empty() ? -1 : *std::max_element(before.begin(), before.end()));
  }
  return trunk;
}

// The connected parts of operators first … last-1, none of them on the trunk.
Region region_of(const ModelGraph& model, OperatorId first, OperatorId last) {
  std::vector<int> part(last - first);
  std::iota(part.begin(), part.end(), 0);
  for (OperatorId op = first; op < last; ++op) {
    for (const OperatorId from : model.predecessors[op]) {
      if (from >= first && part[from - first] != part[op - first]) {
        std::replace(part.begin(), part.end(), std::max(part[from - first], part[op - first]),
                     std::min(part[from - first], part[op - first]));
      }
    }
  }
  Region region;
  std::vector<int> branch_of(part.size(), -1);
  for (OperatorId op = first; op < last; ++op) {
    int& branch = branch_of[part[op - first]];
    if (branch < 0) {
      branch = static_cast<int>(region.branches.size());
      region.branches.emplace_back();
    }
    region.branches[branch].operators.push_back(op);
  }
  for (Branch& branch : region.branches) {
    branch.blocks = static_cast<int>(branch.operators.size());
  }
  return region;
}

// Regions between operators of the trunk. Every operator of one region comes before every operator of the next, since
// the trunk's operator between them is comparable with all.
std::vector<Region> regions_of(const ModelGraph& model, const std::vector<char>& trunk) {
  std::vector<Region> regions;
  for (OperatorId first = 0; first < model.size();) {
    OperatorId last = first;
    while (last < model.size() && trunk[last] == 0) {
      ++last;
    }
    if (last > first) {
      regions.push_back(region_of(model, first, last));
    }
    first = last + 1;
  }
  return regions;
}

// The block, within its branch, of the i-th of n operators that are cut into `blocks` runs as evenly as possible.
int block_of(int i, int n, int blocks) { return static_cast<int>(static_cast<long>(i) * blocks / n); }

// The graph of blocks. `of` gives each operator's block, or -1 if the operator is left out.
Predecessors quotient(const ModelGraph& model, const std::vector<int>& of, int blocks) {
  Predecessors graph(blocks);
  for (OperatorId op = 0; op < model.size(); ++op) {
    for (const OperatorId from : model.predecessors[op]) {
      if (of[op] >= 0 && of[from] >= 0 && of[op] != of[from]) {
        graph[of[op]].push_back(of[from]);
      }
    }
  }
  for (auto& needed : graph) {
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  }
  return graph;
}

// Numbers the blocks of a region from `first` on, branch after branch; returns the next number.
int number_blocks(const Region& region, int first, std::vector<int>& of) {
  for (const Branch& branch : region.branches) {
    const int n = static_cast<int>(branch.operators.size());
    for (int i = 0; i < n; ++i) {
      of[branch.operators[i]] = first + block_of(i, n, branch.blocks);
    }
    first += branch.blocks;
  }
  return first;
}

// The number of ideals of a region's blocks, without the empty one; at most `cap` + 1.
int count_ideals(const ModelGraph& model, const Region& region, int cap) {
  std::vector<int> of(model.size(), -1);
  const int blocks = number_blocks(region, 0, of);
  const auto ideals = ideals_of(quotient(model, of, blocks), cap);
  return ideals.empty() ? cap + 1 : static_cast<int>(ideals.size()) - 1;
}

void coarsen(Region& region) {
  const auto longest = std::max_element(region.branches.begin(), region.branches.end(),
                                        [](const Branch& a, const Branch& b) { return a.blocks < b.blocks; });
  if (longest->blocks > 1) {
    longest->blocks = (longest->blocks + 1) / 2;
    return;
  }
  std::stable_sort(region.branches.begin(), region.branches.end(),
                   [](const Branch& a, const Branch& b) { return a.operators.size() > b.operators.size(); });
  const Branch lightest = std::move(region.branches.back());
  region.branches.pop_back();
  std::vector<OperatorId>& merged = region.branches.back().operators;
  merged.insert(merged.end(), lightest.operators.begin(), lightest.operators.end());
  std::sort(merged.begin(), merged.end());
}

Blocks blocks_of(const ModelGraph& model, const std::vector<char>& trunk, const std::vector<Region>& regions) {
  std::vector<int> of(model.size(), -1);
  int blocks = 0;
  std::size_t region = 0;
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (trunk[op] != 0) {
      of[op] = blocks++;
    } else if (of[op] < 0) {
      blocks = number_blocks(regions[region++], blocks, of);
    }
  }
  Predecessors predecessors = quotient(model, of, blocks);
  return {std::move(of), std::move(predecessors)};
}

} // namespace

Blocks contract_branches(const ModelGraph& model, int cap) {
  const std::vector<char> trunk = trunk_of(model);
  std::vector<Region> regions = regions_of(model, trunk);
  // The ideals of regions one after the other add up; each operator of the trunk adds one.
  long total = std::count(trunk.begin(), trunk.end(), 1);
  for (Region& region : regions) {
    region.ideals = count_ideals(model, region, cap);
    total += region.ideals;
  }
  while (total > cap) {
    const auto most = std::max_element(regions.begin(), regions.end(),
                                       [](const Region& a, const Region& b) { return a.ideals < b.ideals; });
    if (most == regions.end() || most->ideals <= 1) {
      break; // a chain of blocks: nothing more to contract
    }
    coarsen(*most);
    total -= most->ideals;
    most->ideals = count_ideals(model, *most, cap);
    total += most->ideals;
  }
  return blocks_of(model, trunk, regions);
}

} // namespace stagecraft
