// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/captured_modules.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "sim/base/named_table.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

bool contains(const std::vector<OperatorId>& operators, OperatorId op) {
  return std::binary_search(operators.begin(), operators.end(), op);
}

bool is_norm(const Operator& op) { return op.kind == KernelKind::normalization; }
bool is_sum(const Operator& op) { return op.type == "add"; }
bool is_state_space(const Operator& op) { return op.kind == KernelKind::state_space; }

// With the norms that they alone read and the sums that read them, as far as these are in numbered blocks.
std::vector<OperatorId> with_norm_and_sum(const ModelGraph& model, const std::vector<OperatorId>& inner) {
  std::set<OperatorId> found(inner.begin(), inner.end());
  for (const OperatorId op : inner) {
    for (const OperatorId norm : model.predecessors[op]) {
      const std::vector<OperatorId>& readers = model.successors[norm];
      if (is_norm(model.operators[norm]) && is_in_numbered_block(model.operators[norm].name) &&
          std::all_of(readers.begin(), readers.end(), [&](OperatorId reader) { return contains(inner, reader); })) {
        found.insert(norm);
      }
    }
    for (const OperatorId sum : model.successors[op]) {
      if (is_sum(model.operators[sum]) && is_in_numbered_block(model.operators[sum].name)) {
        found.insert(sum);
      }
    }
  }
  return ascending(found);
}

// Of each numbered block with a core, all up to the first sum after it, MLPs left out that stand beside it.
std::vector<OperatorId> around(const ModelGraph& model, const std::function<bool(const Operator&)>& is_core) {
  const std::vector<OperatorId> dense = dense_mlps(model), mixture = mixtures(model);
  std::vector<OperatorId> found;
  for (const Block& block : layer_row_of(model).layers) {
    const auto core = std::find_if(block.operators.begin(), block.operators.end(),
                                   [&](OperatorId op) { return is_core(model.operators[op]); });
    const auto sum =
        std::find_if(core, block.operators.end(), [&](OperatorId op) { return is_sum(model.operators[op]); });
    const auto end = core == block.operators.end()  ? block.operators.begin()
                     : sum == block.operators.end() ? sum
                                                    : sum + 1;
    std::copy_if(block.operators.begin(), end, std::back_inserter(found),
                 [&](OperatorId op) { return !contains(dense, op) && !contains(mixture, op); });
  }
  return found;
}

} // namespace

std::vector<OperatorId> captured_attention(const ModelGraph& model) {
  return around(model, [](const Operator& op) { return op.kind == KernelKind::attention; });
}

std::vector<OperatorId> captured_state_space(const ModelGraph& model) { return around(model, is_state_space); }

std::vector<OperatorId> captured_mlp(const ModelGraph& model) { return with_norm_and_sum(model, dense_mlps(model)); }

std::vector<OperatorId> captured_mixture(const ModelGraph& model) { return with_norm_and_sum(model, mixtures(model)); }

std::vector<OperatorId> captured_router(const ModelGraph& model) {
  const std::vector<OperatorId> shared = shared_experts(model);
  std::set<OperatorId> found;
  for (const OperatorId op : captured_mixture(model)) {
    if (model.operators[op].type == "router" || is_norm(model.operators[op]) || contains(shared, op)) {
      found.insert(op);
    }
  }
  return ascending(found);
}

std::vector<OperatorId> captured_dispatch(const ModelGraph& model) {
  std::vector<OperatorId> found;
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (model.operators[op].type == "dispatch") {
      found.push_back(op);
    }
  }
  return found;
}

std::vector<OperatorId> captured_layers(const ModelGraph& model) {
  std::vector<OperatorId> found;
  for (const Block& block : layer_row_of(model).layers) {
    found.insert(found.end(), block.operators.begin(), block.operators.end());
  }
  return found;
}

std::vector<OperatorId> captured_iteration(const ModelGraph& model) { return all_operators(model); }

ModelGraph with_captured_graphs(ModelGraph model, const std::vector<std::string>& modules) {
  for (const std::string& module : modules) {
    const ModuleRow& row = find_by_name(kCapturedModules, module, "module", {});
    const bool counting = row.operators == captured_dispatch; // tokens are sorted and sent behind that graph
    for (const OperatorId op : row.operators(model)) {
      (counting ? model.operators[op].counting_captured : model.operators[op].captured) = true;
    }
  }
  for (const OperatorId dispatch : captured_dispatch(model)) {
    const std::vector<OperatorId>& experts = model.successors[dispatch];
    const bool goes_on =
        std::all_of(experts.begin(), experts.end(), [&](OperatorId op) { return model.operators[op].captured; });
    model.operators[dispatch].counted_by_host = !model.operators[dispatch].routing->padded && !goes_on;
  }
  return model;
}

} // namespace stagecraft
