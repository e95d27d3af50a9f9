// Sorting operators topologically, checking their edges, and sums over a model.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/model_graph.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>

namespace stagecraft {
namespace {

using Adjacency = std::vector<std::vector<OperatorId>>;

void check_edges(const std::vector<Operator>& operators, const std::vector<std::pair<int, int>>& edges,
                 const Where& where) {
  const int count = static_cast<int>(operators.size());
  for (const auto& [from, to] : edges) {
    if (from < 0 || from >= count || to < 0 || to >= count) {
      throw InputError(where, "an edge leads to operator " + std::to_string(from < 0 || from >= count ? from : to) +
                                  "; allowed: 0 to " + std::to_string(count - 1));
    }
  }
}

Adjacency adjacency(int count, const std::vector<std::pair<int, int>>& edges, bool reversed) {
  Adjacency lists(count);
  for (const auto& [from, to] : edges) {
    lists[reversed ? to : from].push_back(reversed ? from : to);
  }
  for (std::vector<OperatorId>& list : lists) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return lists;
}

// Kahn 1962. Among operators whose predecessors are all placed, the first in the given order comes next. Operators on a
// cycle, and those after one, are left out.
std::vector<int> topological_order(const Adjacency& predecessors, const Adjacency& successors) {
  const int count = static_cast<int>(predecessors.size());
  std::vector<size_t> waiting(count);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int v = 0; v < count; ++v) {
    waiting[v] = predecessors[v].size();
    if (waiting[v] == 0) {
      ready.push(v);
    }
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const int next : successors[v]) {
      if (--waiting[next] == 0) {
        ready.push(next);
      }
    }
  }
  return order;
}

// A cycle, its first operator at both ends. Every operator left out of `order` has a predecessor that is left out too,
// so walking back must meet one twice.
std::vector<int> find_cycle(const Adjacency& predecessors, const std::vector<int>& order) {
  std::vector<bool> placed(predecessors.size(), false);
  for (const int v : order) {
    placed[v] = true;
  }
  std::vector<int> walk = {static_cast<int>(std::find(placed.begin(), placed.end(), false) - placed.begin())};
  std::vector<bool> seen(predecessors.size(), false);
  while (!seen[walk.back()]) {
    seen[walk.back()] = true;
    const auto& before = predecessors[walk.back()];
    walk.push_back(*std::find_if(before.begin(), before.end(), [&](int v) { return !placed[v]; }));
  }
  const auto first = std::find(walk.begin(), walk.end(), walk.back());
  std::vector<int> cycle(first, walk.end());
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

std::string cycle_text(const std::vector<Operator>& operators, const std::vector<int>& cycle) {
  constexpr size_t kMostNames = 10;
  std::string text;
  for (size_t i = 0; i < std::min(cycle.size(), kMostNames); ++i) {
    text += (i == 0 ? "" : " -> ") + operators[cycle[i]].name;
  }
  return cycle.size() > kMostNames ? text + " -> ..." : text;
}

template <class Value> std::vector<Value> reordered(std::vector<Value> values, const std::vector<int>& order) {
  std::vector<Value> result;
  result.reserve(order.size());
  for (const int v : order) {
    result.push_back(std::move(values[v]));
  }
  return result;
}

void check_names(const std::vector<Operator>& operators, const std::function<Where(int)>& place_of) {
  std::set<std::string_view> names;
  for (size_t v = 0; v < operators.size(); ++v) {
    const std::string& name = operators[v].name;
    if (!names.insert(name).second) {
      throw InputError(place_of(static_cast<int>(v)),
                       "two operators are called '" + name + "'; allowed: each name once");
    }
  }
}

// The makers of what an operator reads, after sorting.
void renumber_makers(Operator& op, const std::vector<int>& position) {
  for (KeptInput& kept : op.kept_inputs) {
    kept.maker = position[kept.maker];
  }
  if (op.signature) {
    for (InputSignature& input : op.signature->inputs) {
      input.maker = input.maker < 0 ? input.maker : position[input.maker];
    }
  }
}

} // namespace

bool is_grouped_product(const Operator& what) {
  return what.active < 1 && what.kind == KernelKind::matmul && !what.forward.calls.empty();
}

ModelGraph make_graph(std::string name, std::vector<Operator> operators, std::vector<std::pair<int, int>> edges,
                      std::vector<Profile> profiles, const Where& where, const std::function<Where(int)>& place_of) {
  if (operators.empty()) {
    throw InputError(where, "the model has no operators; allowed: at least one");
  }
  const auto place = [&](int v) { return place_of ? place_of(v) : where; };
  check_names(operators, place);
  check_edges(operators, edges, where);
  const int count = static_cast<int>(operators.size());
  const Adjacency predecessors = adjacency(count, edges, true);
  const std::vector<int> order = topological_order(predecessors, adjacency(count, edges, false));
  if (static_cast<int>(order.size()) < count) {
    const std::vector<int> cycle = find_cycle(predecessors, order);
    throw InputError(place(cycle.front()),
                     "the operators form a cycle: " + cycle_text(operators, cycle) + "; allowed: an acyclic graph");
  }
  std::vector<int> position(count);
  for (int i = 0; i < count; ++i) {
    position[order[i]] = i;
  }
  for (auto& edge : edges) {
    edge = {position[edge.first], position[edge.second]};
  }
  for (Profile& profile : profiles) {
    check(static_cast<int>(profile.times.size()) == count, "a profile has one time per operator");
    profile.times = reordered(std::move(profile.times), order);
  }
  ModelGraph graph;
  graph.name = std::move(name);
  graph.operators = reordered(std::move(operators), order);
  for (Operator& op : graph.operators) {
    renumber_makers(op, position);
  }
  graph.predecessors = adjacency(count, edges, true);
  graph.successors = adjacency(count, edges, false);
  graph.profiles = std::move(profiles);
  return graph;
}

const Configuration* find_configuration(const ModelGraph& model, OperatorId op, int tensor_parallel, bool recompute) {
  const Configuration* found = nullptr;
  if (model.configurations.empty()) {
    return found;
  }
  for (const Configuration& one : model.configurations[static_cast<std::size_t>(op)]) {
    if (one.tensor_parallel == tensor_parallel && (found == nullptr || one.recompute == recompute)) {
      found = &one;
    }
  }
  return found;
}

ModelTotals totals_of(const ModelGraph& model) {
  ModelTotals totals;
  for (const Operator& op : model.operators) {
    totals.parameters += op.parameters;
    totals.frozen += op.frozen;
    totals.active += (op.parameters + op.frozen) * op.active;
    totals.stash_elements += op.stash_elements;
    totals.output_elements += op.output_elements;
    totals.forward += op.forward.flops;
    totals.backward += op.backward_input.flops + op.backward_weight.flops;
  }
  return totals;
}

std::vector<OperatorId> operators_between(OperatorId begin, OperatorId end) {
  std::vector<OperatorId> operators(static_cast<std::size_t>(end - begin));
  std::iota(operators.begin(), operators.end(), begin);
  return operators;
}

std::vector<OperatorId> all_operators(const ModelGraph& model) { return operators_between(0, model.size()); }

} // namespace stagecraft
