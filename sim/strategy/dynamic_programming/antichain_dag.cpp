// The antichain DAG and its topological order, as Ju et al. 2024 have them from PipeDream (Narayanan et al. 2019).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>

#include "sim/strategy/dynamic_programming/antichains.hpp"
#include "sim/strategy/dynamic_programming/contract_branches.hpp"

namespace stagecraft {
namespace {

using Nodes = std::vector<int>;

// Builds the DAG breadth first. Vertex `source_` is the virtual source, an ancestor of all.
class DagBuilder {
public:
  explicit DagBuilder(const Predecessors& predecessors)
      : source_(static_cast<int>(predecessors.size())), successors_(source_ + 1), ancestors_(source_ + 1, source_ + 1),
        shared_(source_ + 1) {
    set_bit(ancestors_.row(source_), source_);
    for (int v = 0; v < source_; ++v) {
      const Nodes makers = predecessors[v].empty() ? Nodes{source_} : predecessors[v];
      set_bit(ancestors_.row(v), v);
      for (const int maker : makers) {
        successors_[maker].push_back(v);
        unite(ancestors_.row(v), ancestors_.row(maker));
      }
    }
    for (int v = 0; v < source_; ++v) {
      for (int u = 0; u <= source_; ++u) {
        if (u != v && successors_[u].size() > 1 && is_ancestor(u, v) && leads_past(u, v)) {
          shared_[v].push_back(u);
        }
      }
    }
  }

  std::optional<AntichainDag> build(int cap) {
    add({source_});
    for (std::size_t node = 0; node < antichains_.size(); ++node) {
      const Nodes augmented = augmented_[node];
      for (const int member : augmented) {
        for (const int entering : successors_[member]) {
          if (is_reached(antichains_[node], entering)) {
            continue;
          }
          const int to = add(with(augmented, member, entering));
          if (static_cast<int>(antichains_.size()) > cap + 1) {
            return std::nullopt;
          }
          if (std::find(next_[node].begin(), next_[node].end(), to) == next_[node].end()) {
            next_[node].push_back(to);
          }
        }
      }
    }
    return finish();
  }

private:
  static void unite(std::span<std::uint64_t> into, std::span<const std::uint64_t> from) {
    for (std::size_t word = 0; word < into.size(); ++word) {
      into[word] |= from[word];
    }
  }

  // Whether u is v or an ancestor of it.
  bool is_ancestor(int u, int v) const { return has_bit(ancestors_.row(v), u); }

  bool is_reached(const Nodes& antichain, int vertex) const {
    return std::any_of(antichain.begin(), antichain.end(), [&](int member) { return is_ancestor(vertex, member); });
  }

  // Whether u has a successor that is neither x nor an ancestor of x.
  bool leads_past(int u, int x) const {
    return std::any_of(successors_[u].begin(), successors_[u].end(), [&](int user) { return !is_ancestor(user, x); });
  }

  // The node of an antichain, made if it is new.
  int add(const Nodes& antichain) {
    const auto [slot, is_new] = known_.try_emplace(antichain, static_cast<int>(antichains_.size()));
    if (is_new) {
      Nodes augmented = antichain;
      for (const int member : antichain) {
        augmented.insert(augmented.end(), shared_[member].begin(), shared_[member].end());
      }
      std::sort(augmented.begin(), augmented.end());
      augmented.erase(std::unique(augmented.begin(), augmented.end()), augmented.end());
      antichains_.push_back(antichain);
      augmented_.push_back(std::move(augmented));
      next_.emplace_back();
    }
    return slot->second;
  }

  // `entering` instead of `leaving`, without the members that are ancestors of others.
  Nodes with(const Nodes& augmented, int leaving, int entering) const {
    Nodes members = augmented;
    *std::find(members.begin(), members.end(), leaving) = entering;
    Nodes antichain;
    for (const int u : members) {
      if (std::none_of(members.begin(), members.end(), [&](int v) { return u != v && is_ancestor(u, v); })) {
        antichain.push_back(u);
      }
    }
    std::sort(antichain.begin(), antichain.end());
    return antichain;
  }

  // The virtual source goes: it is no operator.
  AntichainDag finish() {
    AntichainDag dag{.antichains = std::move(antichains_),
                     .augmented = std::move(augmented_),
                     .next = std::move(next_),
                     .ideals = BitRows(static_cast<int>(known_.size()), source_)};
    for (std::size_t node = 0; node < dag.antichains.size(); ++node) {
      std::erase(dag.antichains[node], source_);
      std::erase(dag.augmented[node], source_);
      for (const int member : dag.antichains[node]) {
        for (int v = 0; v < source_; ++v) {
          if (is_ancestor(v, member)) {
            set_bit(dag.ideals.row(static_cast<int>(node)), v);
          }
        }
      }
    }
    return dag;
  }

  int source_;
  std::vector<Nodes> successors_;
  BitRows ancestors_;         // [vertex]: with itself
  std::vector<Nodes> shared_; // [vertex]: its ancestors with a successor that is neither the vertex nor its ancestor
  std::vector<Nodes> antichains_, augmented_, next_;
  std::map<Nodes, int> known_;
};

} // namespace

std::optional<AntichainDag> antichain_dag(const Predecessors& predecessors, int cap) {
  return DagBuilder(predecessors).build(cap);
}

std::vector<int> topological_order(const AntichainDag& dag) {
  std::vector<int> order;
  std::vector<char> visited(dag.next.size(), 0);
  std::vector<std::pair<int, std::size_t>> path = {{0, 0}}; // nodes under way, and their next edge
  visited[0] = 1;
  while (!path.empty()) {
    auto& [node, edge] = path.back();
    if (edge == dag.next[node].size()) {
      order.push_back(node);
      path.pop_back();
    } else if (const int to = dag.next[node][edge++]; visited[to] == 0) {
      visited[to] = 1;
      path.emplace_back(to, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

namespace {

// The ideals of the DAG in its topological order, as sets of operators of which each belongs to a block.
BitRows sequence_of(const AntichainDag& dag, const std::vector<int>& block_of) {
  const std::vector<int> order = topological_order(dag);
  BitRows rows(static_cast<int>(order.size()), static_cast<int>(block_of.size()));
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (OperatorId op = 0; op < static_cast<int>(block_of.size()); ++op) {
      if (has_bit(dag.ideals.row(order[at]), block_of[op])) {
        set_bit(rows.row(static_cast<int>(at)), op);
      }
    }
  }
  return rows;
}

} // namespace

AntichainStates antichain_sequence(const ModelGraph& model, int cap) {
  std::vector<int> itself(model.size());
  std::iota(itself.begin(), itself.end(), 0);
  if (const auto dag = antichain_dag(model.predecessors, cap)) {
    return {sequence_of(*dag, itself)};
  }
  const Blocks blocks = contract_branches(model, cap);
  const auto coarse = antichain_dag(blocks.predecessors, std::max(blocks.count(), cap));
  return {sequence_of(coarse.value(), blocks.of), true};
}

std::vector<double> augmented_cut_bytes(const Problem& problem, const AntichainStates& states) {
  std::vector<double> bytes;
  for (int state = 0; state < states.count(); ++state) {
    double sum = 0;
    for (const OperatorId op : augmented_antichain(problem.model, states.ideals.row(state))) {
      sum += problem.model.successors[op].empty() ? 0 : problem.output_bytes(op).value;
    }
    bytes.push_back(sum);
  }
  return bytes;
}

} // namespace stagecraft
