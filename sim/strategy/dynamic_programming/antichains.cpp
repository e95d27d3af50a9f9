// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/antichains.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/strategy/dynamic_programming/contract_branches.hpp"

namespace stagecraft {

bool has_bit(std::span<const std::uint64_t> bits, int at) { return ((bits[at / 64] >> (at % 64)) & 1) != 0; }

void set_bit(std::span<std::uint64_t> bits, int at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }

bool is_subset(std::span<const std::uint64_t> inner, std::span<const std::uint64_t> outer) {
  for (std::size_t word = 0; word < inner.size(); ++word) {
    if ((inner[word] & ~outer[word]) != 0) {
      return false;
    }
  }
  return true;
}

namespace {

// Sorted by size, then by the operators they hold, each once.
BitRows rows_of(std::vector<std::vector<char>> ideals, int bits) {
  std::stable_sort(ideals.begin(), ideals.end(), [](const auto& a, const auto& b) {
    const auto size_a = std::count(a.begin(), a.end(), 1);
    const auto size_b = std::count(b.begin(), b.end(), 1);
    return size_a != size_b ? size_a < size_b : a > b;
  });
  ideals.erase(std::unique(ideals.begin(), ideals.end()), ideals.end());
  BitRows rows(static_cast<int>(ideals.size()), bits);
  for (std::size_t i = 0; i < ideals.size(); ++i) {
    for (OperatorId op = 0; op < bits; ++op) {
      if (ideals[i][op] != 0) {
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
  return rows_of(std::move(ideals), n);
}

} // namespace

AntichainStates antichain_states(const ModelGraph& model, int cap) {
  auto ideals = ideals_of(model.predecessors, cap);
  if (ideals.empty()) {
    return {contracted_states(model, cap), true};
  }
  return {rows_of(std::move(ideals), model.size())};
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
  for (int state = 0; state < states.count(); ++state) {
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

StateSums sum_state(const Problem& problem, const std::vector<double>& weights, const std::vector<char>& inside) {
  const std::size_t types = problem.platform.types.size();
  StateSums sums{std::vector<double>(types, 0.0), std::vector<int>(types, 0)};
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    if (inside[op] == 0) {
      continue;
    }
    sums.parameters += problem.model.operators[op].parameters;
    sums.resident_bytes += problem.model.operators[op].resident_bytes;
    sums.stash += problem.stash(op);
    sums.input_bytes += problem.model.predecessors[op].empty() ? problem.input_bytes().value : 0;
    sums.weighted += weights[op];
    for (std::size_t type = 0; type < types; ++type) {
      const double time = problem.seconds(static_cast<int>(type), op);
      sums.seconds[type] += std::isinf(time) ? 0 : time;
      sums.lacking[type] += std::isinf(time) ? 1 : 0;
    }
  }
  return sums;
}

} // namespace

StateCosts cost_states(const Problem& problem, const AntichainStates& states) {
  const int n = problem.model.size();
  StateCosts costs;
  costs.seconds.resize(problem.platform.types.size());
  costs.lacking.resize(problem.platform.types.size());
  costs.above = states_above(states);
  const std::vector<double> weights = weights_of_operators(problem);
  for (int state = 0; state < states.count(); ++state) {
    const auto ideal = states.ideals.row(state);
    std::vector<char> inside(n, 0);
    for (OperatorId op = 0; op < n; ++op) {
      inside[op] = has_bit(ideal, op) ? 1 : 0;
    }
    const StateSums sums = sum_state(problem, weights, inside);
    for (std::size_t type = 0; type < sums.seconds.size(); ++type) {
      costs.seconds[type].push_back(sums.seconds[type]);
      costs.lacking[type].push_back(sums.lacking[type]);
    }
    costs.parameters.push_back(sums.parameters);
    costs.resident_bytes.push_back(sums.resident_bytes);
    costs.stash.push_back(sums.stash);
    costs.input_bytes.push_back(sums.input_bytes);
    costs.weighted.push_back(sums.weighted);
    costs.cut_bytes.push_back(problem.cut_bytes(inside).value);
    costs.pairs += costs.above[state].size();
  }
  return costs;
}

} // namespace stagecraft
