// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/max_load/ideal_sums.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

void sum_times(const Problem& problem, const std::vector<LoadGroup>& groups, const BitRows& ideals, IdealSums& sums) {
  const int n = problem.model.size();
  std::vector<double> share(n, kInfinity);
  for (const LoadGroup& group : groups) {
    double whole = 0;
    for (OperatorId op = 0; op < n; ++op) {
      const double time = problem.seconds(group.type, op);
      whole += std::isinf(time) ? 0 : time;
    }
    sums.speed.push_back(whole > 0 ? 1 / whole : 0);
    for (OperatorId op = 0; op < n; ++op) {
      share[op] = std::min(share[op], problem.seconds(group.type, op) * (whole > 0 ? 1 / whole : 0));
    }
    auto& seconds = sums.seconds.emplace_back(ideals.rows(), 0.0);
    auto& lacking = sums.lacking.emplace_back(ideals.rows(), 0);
    for (int ideal = 0; ideal < ideals.rows(); ++ideal) {
      const bool more = continues(ideals, ideal);
      seconds[ideal] = more ? seconds[ideal - 1] : 0;
      lacking[ideal] = more ? lacking[ideal - 1] : 0;
      for_each_added(ideals, ideal, more, [&](OperatorId op) {
        const double time = problem.seconds(group.type, op);
        seconds[ideal] += std::isinf(time) ? 0 : time;
        lacking[ideal] += std::isinf(time) ? 1 : 0;
      });
    }
  }
  sums.left.assign(ideals.rows(), 0.0);
  for (int ideal = 0; ideal < ideals.rows(); ++ideal) {
    for (OperatorId op = 0; op < n; ++op) {
      sums.left[ideal] += has_bit(ideals.row(ideal), op) || !std::isfinite(share[op]) ? 0 : share[op];
    }
  }
}

void sum_memory(const PlanRequest& request, const BitRows& ideals, const StageBorders& borders, IdealSums& sums) {
  const Problem& problem = request.problem;
  double parameters = 0;
  double resident = 0;
  Activations stash;
  double input = 0;
  for (int ideal = 0; ideal < ideals.rows(); ++ideal) {
    const bool more = continues(ideals, ideal);
    if (!more) {
      parameters = resident = input = 0;
      stash = {};
    }
    for_each_added(ideals, ideal, more, [&](OperatorId op) {
      parameters += problem.model.operators[op].parameters;
      resident += problem.model.operators[op].resident_bytes;
      stash += problem.stash(op);
      input += problem.model.predecessors[op].empty() ? problem.input_bytes().value : 0;
    });
    sums.parameters.push_back(parameters);
    sums.resident.push_back(resident);
    sums.stash.push_back(stash);
    sums.input.push_back(input);
    sums.cut_bytes.push_back(borders.cut_bytes(ideal).value);
    const StageMemory memory =
        memory_of_stage(problem, {parameters, Bytes{resident}, stash}, problem.training.recompute.what);
    sums.fixed.push_back(memory.fixed(request.versions).value);
    sums.per_micro_batch.push_back(memory.per_micro_batch.value);
  }
}

void sum_tensors(const Problem& problem, const std::vector<CrossingTensor>& tensors, const BitRows& ideals,
                 IdealSums& sums) {
  const int count = static_cast<int>(tensors.size());
  sums.open = BitRows(ideals.rows(), count);
  sums.ends = BitRows(count, problem.model.size());
  sums.open_bytes.assign(ideals.rows(), 0.0);
  sums.open_transfers.assign(ideals.rows(), 0);
  for (int tensor = 0; tensor < count; ++tensor) {
    for (const OperatorId end : tensors[tensor].ends) {
      set_bit(sums.ends.row(tensor), end);
    }
    for (int ideal = 0; ideal < ideals.rows(); ++ideal) {
      const auto& ends = tensors[tensor].ends;
      const auto inside =
          std::count_if(ends.begin(), ends.end(), [&](OperatorId end) { return has_bit(ideals.row(ideal), end); });
      if (inside > 0 && inside < static_cast<std::ptrdiff_t>(ends.size())) {
        set_bit(sums.open.row(ideal), tensor);
        sums.open_bytes[ideal] += tensors[tensor].bytes;
        sums.open_transfers[ideal] += tensors[tensor].transfers;
      }
    }
  }
}

} // namespace

IdealSums ideal_sums(const PlanRequest& request, const std::vector<LoadGroup>& groups,
                     const std::vector<CrossingTensor>& tensors, const BitRows& ideals, const StageBorders& borders) {
  IdealSums sums;
  sum_times(request.problem, groups, ideals, sums);
  sum_memory(request, ideals, borders, sums);
  sum_tensors(request.problem, tensors, ideals, sums);
  return sums;
}

} // namespace stagecraft
