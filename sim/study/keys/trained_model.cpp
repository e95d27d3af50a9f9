// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/trained_model.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/workload/fused_norms.hpp"
#include "sim/workload/training/captured_modules.hpp"
#include "sim/workload/training/fp8_products.hpp"
#include "sim/workload/training/latent_product.hpp"

namespace stagecraft {

namespace {

void name_host_kernels(ModelGraph& model, const std::map<std::string, HostKernels>& types) {
  const auto latent = types.find(std::string(kLatentProduct));
  for (OperatorId id = 0; id < model.size(); ++id) {
    Operator& op = model.operators[id];
    if (const auto own = types.find(op.type); own != types.end()) {
      op.host_kernels = own->second;
    }
    if (latent != types.end() && op.type == "latent_attention") {
      const std::vector<OperatorId>& before = model.predecessors[id];
      const auto product = std::find_if(before.rbegin(), before.rend(), [&](OperatorId maker) {
        return model.operators[maker].kind == KernelKind::matmul;
      });
      if (product != before.rend()) {
        model.operators[*product].host_kernels = latent->second;
      }
    }
  }
}

// Of a training whose degrees are known.
const LossRow& loss_of(const Training& training) {
  const bool divides =
      training.parallel && training.parallel->tensor > 1 && training.parallel->tensor_rule == TensorRule::torchtitan;
  return divides ? as_divided(*training.loss) : *training.loss;
}

} // namespace

std::shared_ptr<const ModelGraph> trained_model(std::shared_ptr<const ModelGraph> model, const Training& training) {
  const auto is_frozen = [](const Operator& op) { return op.frozen > 0; };
  const bool frozen = std::any_of(model->operators.begin(), model->operators.end(), is_frozen);
  const bool named = training.attention != &kAttentions.front();
  const bool loss = training.loss != &kLosses.front();
  const bool biases = training.expert_biases != &kExpertBiases.front();
  const bool launched = training.launches.each.value > 0;
  const bool layout = training.image_layout != &kImageLayouts.front();
  const bool norms = training.fused_norms && !training.image_layout->transposes;
  if (!frozen && !training.fp8->products && !named && !loss && !biases && !launched && !layout && !norms) {
    return model;
  }
  const RankHeads rank{.tensor = training.parallel ? training.parallel->tensor : 1,
                       .samples = training.parallel ? training.micro_batch_size.value_or(0) : 0};
  ModelGraph copy = named ? with_attention(*model, *training.attention, rank) : *model;
  copy = with_image_layout(std::move(copy), *training.image_layout, training.precision);
  copy = norms ? with_fused_norms(std::move(copy)) : std::move(copy);
  copy = with_loss(std::move(copy), loss_of(training), row_of(training.precision).bytes);
  for (Operator& op : copy.operators) {
    op.resident_bytes += op.frozen * row_of(training.precision).bytes;
  }
  if (launched) {
    copy = with_captured_graphs(std::move(copy), training.launches.captured);
    name_host_kernels(copy, training.launches.types);
  }
  copy = training.fp8->products ? with_fp8_products(std::move(copy), training) : std::move(copy);
  return std::make_shared<const ModelGraph>(with_expert_biases(std::move(copy), *training.expert_biases));
}

} // namespace stagecraft
