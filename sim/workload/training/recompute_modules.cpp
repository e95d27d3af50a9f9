// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/recompute_modules.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

bool in_block(const Operator& op) { return is_in_numbered_block(op.name); }

// By the types that workloads and ONNX give them. Convolutional networks normalize over a batch.
bool is_layer_norm(const Operator& op) {
  constexpr std::array<std::string_view, 5> kTypes = {"layer_norm", "rms_norm", "LayerNormalization",
                                                      "RMSNormalization", "SimplifiedLayerNormalization"};
  return std::find(kTypes.begin(), kTypes.end(), op.type) != kTypes.end();
}

bool is_product(const Operator& op) { return op.kind == KernelKind::matmul && op.type != "expert_linear"; }

bool is_activation(const Operator& op) {
  return op.kind == KernelKind::elementwise && op.type != "add" && op.type != "rotary" && op.type != "scaled_rotary";
}

std::vector<OperatorId> operators_that(const ModelGraph& model, const std::function<bool(OperatorId)>& belong) {
  std::vector<OperatorId> found;
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (in_block(model.operators[op]) && belong(op)) {
      found.push_back(op);
    }
  }
  return found;
}

// [operator]: whether its numbered block has a router.
std::vector<char> in_mixtures(const ModelGraph& model) {
  const std::vector<int> numbers = block_numbers(model);
  std::set<int> routed;
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (model.operators[op].type == "router") {
      routed.insert(numbers[op]);
    }
  }
  std::vector<char> inside;
  for (const int number : numbers) {
    inside.push_back(number >= 0 && routed.count(number) > 0 ? 1 : 0);
  }
  return inside;
}

// A product, activations, and a product, each read by the next alone.
std::vector<OperatorId> mlp_from(const ModelGraph& model, OperatorId first) {
  std::vector<OperatorId> chain{first};
  while (model.successors[chain.back()].size() == 1) {
    const OperatorId next = model.successors[chain.back()].front();
    chain.push_back(next);
    if (is_product(model.operators[next])) {
      return chain.size() > 2 ? chain : std::vector<OperatorId>{};
    }
    if (!is_activation(model.operators[next])) {
      break;
    }
  }
  return {};
}

std::vector<OperatorId> mlps(const ModelGraph& model, bool of_mixtures) {
  const std::vector<char> routed = in_mixtures(model);
  std::set<OperatorId> found;
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (in_block(model.operators[op]) && is_product(model.operators[op]) && (routed[op] != 0) == of_mixtures) {
      const std::vector<OperatorId> chain = mlp_from(model, op);
      found.insert(chain.begin(), chain.end());
    }
  }
  return ascending(found);
}

} // namespace

std::vector<OperatorId> core_attention(const ModelGraph& model) {
  return operators_that(model, [&](OperatorId op) { return model.operators[op].kind == KernelKind::attention; });
}

std::vector<OperatorId> layer_norms(const ModelGraph& model) {
  const std::vector<OperatorId> latent = latent_up_projections(model);
  return operators_that(model, [&](OperatorId op) {
    return is_layer_norm(model.operators[op]) && !std::binary_search(latent.begin(), latent.end(), op);
  });
}

// A norm of a latent follows what narrows it, a product or a part of one; the layer's own norm follows a sum.
std::vector<OperatorId> latent_up_projections(const ModelGraph& model) {
  std::set<OperatorId> found;
  const auto narrows = [&](OperatorId op) {
    return is_product(model.operators[op]) || model.operators[op].type == "slice";
  };
  for (const OperatorId attention : core_attention(model)) {
    if (model.operators[attention].type != "latent_attention") {
      continue;
    }
    for (const OperatorId wide : model.predecessors[attention]) {
      if (!is_product(model.operators[wide])) {
        continue;
      }
      found.insert(wide);
      for (const OperatorId norm : model.predecessors[wide]) {
        const std::vector<OperatorId>& before = model.predecessors[norm];
        if (is_layer_norm(model.operators[norm]) && !before.empty() &&
            std::all_of(before.begin(), before.end(), narrows)) {
          found.insert(norm);
        }
      }
    }
  }
  return ascending(found);
}

std::vector<OperatorId> expert_activations(const ModelGraph& model) {
  return operators_that(model, [&](OperatorId op) {
    const std::vector<OperatorId>& before = model.predecessors[op];
    return is_activation(model.operators[op]) && std::any_of(before.begin(), before.end(), [&](OperatorId maker) {
             return model.operators[maker].type == "expert_linear";
           });
  });
}

std::vector<OperatorId> dense_mlps(const ModelGraph& model) { return mlps(model, false); }

std::vector<OperatorId> shared_experts(const ModelGraph& model) { return mlps(model, true); }

std::vector<OperatorId> mixtures(const ModelGraph& model) {
  constexpr std::array<std::string_view, 4> kParts = {"router", "dispatch", "expert_linear", "combine"};
  std::set<OperatorId> found;
  for (const auto part : {&expert_activations, &shared_experts}) {
    const std::vector<OperatorId> operators = part(model);
    found.insert(operators.begin(), operators.end());
  }
  const std::vector<OperatorId> others = operators_that(model, [&](OperatorId op) {
    return std::find(kParts.begin(), kParts.end(), model.operators[op].type) != kParts.end();
  });
  found.insert(others.begin(), others.end());
  return ascending(found);
}

} // namespace stagecraft
