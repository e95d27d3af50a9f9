// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/tensor_parallel.hpp"

namespace stagecraft {
namespace {

bool has_weights(const Operator& op) {
  const bool dense = row_of(op.kind).matrix || op.kind == KernelKind::embedding || op.kind == KernelKind::other;
  return dense && (op.parameters > 0 || op.forward.moved_parameters > 0);
}

// Whether the operator can work on any part of its input's features alone.
bool works_on_parts(const Operator& op) {
  return op.parameters == 0 && (op.kind == KernelKind::elementwise || op.kind == KernelKind::attention ||
                                op.kind == KernelKind::pooling || op.kind == KernelKind::reshape);
}

// The operators after `first` up to the one that forms a pair with it; empty if there is none.
std::vector<OperatorId> second_half(const ModelGraph& model, const std::vector<char>& inside, OperatorId first) {
  std::vector<OperatorId> chain;
  OperatorId last = first;
  while (model.successors[last].size() == 1) {
    last = model.successors[last].front();
    const Operator& op = model.operators[last];
    if (inside[last] == 0 || model.predecessors[last].size() != 1) {
      break;
    }
    chain.push_back(last);
    if (has_weights(op)) {
      return chain;
    }
    if (!works_on_parts(op)) {
      break;
    }
  }
  return {};
}

// The bytes that a group exchanges for an operator because some of its neighbours are in other stages.
Bytes exchanged_at_cuts(const ModelGraph& model, const std::vector<char>& inside, OperatorId op,
                        const Configuration& measured) {
  Bytes sum;
  for (std::size_t edge = 0; edge < measured.incoming.size(); ++edge) {
    sum += inside[model.predecessors[op][edge]] == 0 ? measured.incoming[edge] : Bytes{0};
  }
  for (std::size_t edge = 0; edge < measured.outgoing.size(); ++edge) {
    sum += inside[model.successors[op][edge]] == 0 ? measured.outgoing[edge] : Bytes{0};
  }
  return sum;
}

} // namespace

TensorSplit split_tensors(const Problem& problem, const std::vector<OperatorId>& stage, int degree) {
  const ModelGraph& model = problem.model;
  std::vector<char> inside(model.size(), 0);
  for (const OperatorId op : stage) {
    inside[op] = 1;
  }
  std::vector<char> splits(model.size(), 0);
  std::vector<char> by_columns(model.size(), 0);
  std::vector<char> by_rows(model.size(), 0);
  for (const OperatorId op : stage) {
    const std::vector<OperatorId> chain = has_weights(model.operators[op]) && by_rows[op] == 0
                                              ? second_half(model, inside, op)
                                              : std::vector<OperatorId>{};
    for (const OperatorId split : chain) {
      splits[split] = 1;
    }
    if (!chain.empty()) {
      by_columns[op] = by_rows[chain.back()] = 1;
    }
  }
  TensorSplit split;
  for (const OperatorId op : stage) {
    const Configuration* measured = find_configuration(model, op, degree, false);
    split.exchanged.push_back(measured != nullptr ? exchanged_at_cuts(model, inside, op, *measured) : Bytes{0});
    if (measured != nullptr) {
      split.shards.push_back({degree});
      split.forward.emplace_back();
      split.backward.emplace_back();
      continue;
    }
    const bool weights = has_weights(model.operators[op]);
    Bytes input;
    for (const OperatorId before : model.predecessors[op]) {
      input += problem.output_bytes(before);
    }
    const bool differentiates = !model.predecessors[op].empty() && model.operators[op].kind != KernelKind::embedding;
    split.shards.push_back({weights || splits[op] != 0 ? degree : 1, splits[op] != 0});
    split.forward.push_back(weights && by_columns[op] == 0 ? std::optional(problem.output_bytes(op)) : std::nullopt);
    split.backward.push_back(weights && differentiates && by_rows[op] == 0 ? std::optional(input) : std::nullopt);
  }
  return split;
}

GroupWaits group_waits(const TensorSplit& split, std::size_t at, const Group& group, double share) {
  if (group.ranks <= 1) {
    return {};
  }
  const auto reduced = [&](std::optional<Bytes> bytes) {
    return bytes ? seconds_of({CollectiveKind::all_reduce, group, *bytes * share}) : Seconds{0};
  };
  const Seconds exchanged{split.exchanged[at].value * share * group.slowest.seconds_per_byte}; // as the file says
  return {reduced(split.forward[at]) + exchanged, reduced(split.backward[at]) + exchanged};
}

} // namespace stagecraft
