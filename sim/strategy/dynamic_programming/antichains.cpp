// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/antichains.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/base/improves.hpp"
#include "sim/strategy/dynamic_programming/contract_branches.hpp"
#include "sim/strategy/dynamic_programming/stage_borders.hpp"

namespace stagecraft {

bool is_subset(std::span<const std::uint64_t> inner, std::span<const std::uint64_t> outer) {
  for (std::size_t word = 0; word < inner.size(); ++word) {
    if ((inner[word] & ~outer[word]) != 0) {
      return false;
    }
  }
  return true;
}

bool continues(const BitRows& rows, int row) {
  if (row == 0 || !is_subset(rows.row(row - 1), rows.row(row))) {
    return false;
  }
  const auto before = rows.row(row - 1);
  const auto here = rows.row(row);
  bool added = false; // in the words so far
  for (std::size_t word = 0; word < here.size(); ++word) {
    const std::uint64_t more = here[word] & ~before[word];
    const bool in_order = more == 0 || before[word] >> std::countr_zero(more) == 0;
    if (!in_order || (added && before[word] != 0)) {
      return false;
    }
    added = added || more != 0;
  }
  return true;
}

namespace {

// Sorted by size, then by the operators they hold, each once.
BitRows rows_of(const std::vector<std::vector<char>>& found, int bits) {
  using Ideal = std::pair<std::ptrdiff_t, const std::vector<char>*>; // size and members
  std::vector<Ideal> ideals;
  for (const std::vector<char>& ideal : found) {
    ideals.emplace_back(std::count(ideal.begin(), ideal.end(), 1), &ideal);
  }
  std::stable_sort(ideals.begin(), ideals.end(), [](const Ideal& a, const Ideal& b) {
    return a.first != b.first ? a.first < b.first : *a.second > *b.second;
  });
  const auto same = [](const Ideal& a, const Ideal& b) { return a.first == b.first && *a.second == *b.second; };
  ideals.erase(std::unique(ideals.begin(), ideals.end(), same), ideals.end());
  BitRows rows(static_cast<int>(ideals.size()), bits);
  for (std::size_t i = 0; i < ideals.size(); ++i) {
    for (OperatorId op = 0; op < bits; ++op) {
      if ((*ideals[i].second)[op] != 0) {
        set_bit(rows.row(static_cast<int>(i)), op);
      }
    }
  }
  return rows;
}

// The ideals of a coarser graph, as sets of the model's operators, and all prefixes of the topological order.
BitRows contracted_states(const ModelGraph& model, int cap) {
  const int n = model.size();
  const Blocks blocks = contract_branches(model, std::max(1, cap - n));
  std::vector<std::vector<char>> ideals;
  for (const std::vector<char>& coarse : ideals_of(blocks.predecessors, std::max(blocks.count(), cap - n))) {
    std::vector<char>& ideal = ideals.emplace_back(n, 0);
    for (OperatorId op = 0; op < n; ++op) {
      ideal[op] = coarse[blocks.of[op]];
    }
  }
  for (int k = 0; k <= n; ++k) {
    std::fill_n(ideals.emplace_back(n, 0).begin(), k, 1);
  }
  return rows_of(ideals, n);
}

} // namespace

AntichainStates antichain_states(const ModelGraph& model, int cap) {
  const auto ideals = ideals_of(model.predecessors, cap);
  if (ideals.empty()) {
    return {contracted_states(model, cap), true};
  }
  return {rows_of(ideals, model.size())};
}

std::string note_of(const AntichainStates& states, int cap) {
  return states.contracted ? "more than " + std::to_string(cap) + " antichain states: parallel branches were contracted"
                           : "";
}

std::vector<OperatorId> augmented_antichain(const ModelGraph& model, std::span<const std::uint64_t> ideal) {
  const int n = model.size();
  std::vector<char> member(n, 0);
  for (OperatorId x = n - 1; x >= 0; --x) {
    const auto& users = model.successors[x];
    const bool inside = has_bit(ideal, x);
    const bool maximal =
        inside && std::none_of(users.begin(), users.end(), [&](OperatorId u) { return has_bit(ideal, u); });
    if (!maximal) {
      continue;
    }
    member[x] = 1;
    std::vector<char> ancestor(n, 0); // of x, and x itself
    ancestor[x] = 1;
    for (OperatorId u = x; u >= 0; --u) {
      if (ancestor[u] == 0) {
        continue;
      }
      for (const OperatorId p : model.predecessors[u]) {
        ancestor[p] = 1;
      }
      const auto& out = model.successors[u];
      if (std::any_of(out.begin(), out.end(), [&](OperatorId v) { return ancestor[v] == 0; }) && u != x) {
        member[u] = 1;
      }
    }
  }
  std::vector<OperatorId> antichain;
  for (OperatorId op = 0; op < n; ++op) {
    if (member[op] != 0) {
      antichain.push_back(op);
    }
  }
  return antichain;
}

std::vector<std::vector<std::int32_t>> states_above(const AntichainStates& states) {
  std::vector<std::vector<std::int32_t>> above(states.count());
  bool nested = true;
  for (int state = 1; state < states.count() && nested; ++state) {
    nested = is_subset(states.ideals.row(state - 1), states.ideals.row(state));
  }
  for (int state = 0; state < states.count(); ++state) {
    if (nested) {
      above[state].resize(states.count() - state - 1);
      std::iota(above[state].begin(), above[state].end(), state + 1);
      continue;
    }
    for (int larger = state + 1; larger < states.count(); ++larger) {
      if (is_subset(states.ideals.row(state), states.ideals.row(larger))) {
        above[state].push_back(larger);
      }
    }
  }
  return above;
}

std::vector<std::int32_t> few_states(std::span<const std::int32_t> nested, std::span<const double> work, int parts) {
  const double all = work[nested.back()];
  std::vector<std::int32_t> few = {nested.front()};
  for (int part = 1; part < parts; ++part) {
    const auto at = std::partition_point(nested.begin() + 1, nested.end() - 1,
                                         [&](std::int32_t state) { return work[state] * parts < all * part; });
    few.push_back(*(at - 1));
    few.push_back(*at);
  }
  few.push_back(nested.back());
  std::sort(few.begin(), few.end());
  few.erase(std::unique(few.begin(), few.end()), few.end());
  return few;
}

namespace {

struct StateSums {
  std::vector<double> seconds;
  std::vector<int> lacking;
  double parameters = 0, resident_bytes = 0, input_bytes = 0, weighted = 0;
  Activations stash;
};

// For each operator, the least over device types of its time relative to the type's time for the whole model, without
// the kernels that the type lacks.
std::vector<double> weights_of_operators(const Problem& problem) {
  std::vector<double> weights(problem.model.size(), 0.0);
  std::vector<double> whole;
  for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
    double sum = 0;
    for (OperatorId op = 0; op < problem.model.size(); ++op) {
      const double time = problem.seconds(static_cast<int>(type), op);
      sum += std::isinf(time) ? 0 : time;
    }
    whole.push_back(sum);
  }
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    double least = kInfinity;
    for (std::size_t type = 0; type < whole.size(); ++type) {
      const double time = problem.seconds(static_cast<int>(type), op);
      if (!std::isinf(time)) {
        least = std::min(least, whole[type] > 0 ? time / whole[type] : 0);
      }
    }
    weights[op] = std::isinf(least) ? 0 : least;
  }
  return weights;
}

void add_operator(const Problem& problem, const std::vector<double>& weights, OperatorId op, StateSums& sums) {
  sums.parameters += problem.model.operators[op].parameters;
  sums.resident_bytes += problem.model.operators[op].resident_bytes;
  sums.stash += problem.stash(op);
  sums.input_bytes += problem.model.predecessors[op].empty() ? problem.input_bytes().value : 0;
  sums.weighted += weights[op];
  for (std::size_t type = 0; type < sums.seconds.size(); ++type) {
    const double time = problem.seconds(static_cast<int>(type), op);
    sums.seconds[type] += std::isinf(time) ? 0 : time;
    sums.lacking[type] += std::isinf(time) ? 1 : 0;
  }
}

} // namespace

StateCosts cost_states(const Problem& problem, const AntichainStates& states) {
  const std::size_t types = problem.platform.types.size();
  StateCosts costs;
  costs.seconds.resize(types);
  costs.lacking.resize(types);
  costs.above = states_above(states);
  const std::vector<double> weights = weights_of_operators(problem);
  const StageBorders borders(problem, states.ideals);
  const StateSums none{std::vector<double>(types, 0.0), std::vector<int>(types, 0)};
  StateSums sums = none;
  for (int state = 0; state < states.count(); ++state) {
    const bool more = continues(states.ideals, state);
    if (!more) {
      sums = none;
    }
    for_each_added(states.ideals, state, more, [&](OperatorId op) { add_operator(problem, weights, op, sums); });
    for (std::size_t type = 0; type < sums.seconds.size(); ++type) {
      costs.seconds[type].push_back(sums.seconds[type]);
      costs.lacking[type].push_back(sums.lacking[type]);
    }
    costs.parameters.push_back(sums.parameters);
    costs.resident_bytes.push_back(sums.resident_bytes);
    costs.stash.push_back(sums.stash);
    costs.input_bytes.push_back(sums.input_bytes);
    costs.weighted.push_back(sums.weighted);
    costs.cut_bytes.push_back(borders.cut_bytes(state).value);
    costs.pairs += costs.above[state].size();
  }
  return costs;
}

} // namespace stagecraft
