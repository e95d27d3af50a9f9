// The names are those of src/maxtext/layers/decoders.py (get_remat_policy) and src/maxtext/configs/base.yml.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/maxtext_policy.hpp"

#include <algorithm>
#include <array>

#include "sim/base/named_table.hpp"
#include "sim/workload/config/common/model_sizes.hpp"
#include "sim/workload/training/block_operators.hpp"

namespace stagecraft {
namespace {

// What is kept beside the input of a block.
struct Kept {
  bool queries = false; ///< with keys and values
  bool attention = false, projection = false, expand = false;
  bool on_host = false; ///< what is kept is on the host meanwhile
};

struct Policy {
  std::string_view name;
  Kept kept;
};
constexpr std::array kPolicies = {
    Policy{"full", {}},
    Policy{"custom", {}},
    Policy{"minimal", {true, false, true, true}},
    Policy{"minimal_flash", {true, true, true, true}},
    Policy{"minimal_with_context", {true, true, true, true}},
    Policy{"minimal_with_quantization", {true, false, true, true}},
    Policy{"minimal_with_context_and_quantization", {true, true, true, true}},
    Policy{"minimal_offloaded", {true, false, true, true, true}},
    Policy{"save_dot_with_context_except_mlp", {true, true, true, false}},
    Policy{"save_dot_except_mlpwi", {true, false, true, false}},
    Policy{"save_dot_except_mlp", {true, false, true, false}},
    Policy{"save_qkv_proj", {true, false, false, false}},
    Policy{"qkv_proj_offloaded", {true, false, false, false, true}},
    Policy{"save_out_proj", {false, false, true, false}},
};

// Where the tensors of a policy `custom` are until backward.
class Tensors {
public:
  explicit Tensors(ConfigLeaves& leaves) : leaves_(leaves) {}

  Kept kept() {
    Kept kept;
    is_kept("decoder_layer_input");
    const bool query = is_kept("query_proj"), key = is_kept("key_proj"), value = is_kept("value_proj");
    const bool both = is_kept("kv_proj");
    kept.queries = is_kept("qkv_proj") || (query && ((key && value) || both));
    part_ = !kept.queries && (query || key || value || both);
    kept.attention = is_kept("context");
    kept.projection = is_kept("out_proj");
    const bool first = is_kept("mlpwi_0"), second = is_kept("mlpwi_1");
    kept.expand = is_kept("mlpwi") || (first && second);
    part_ = part_ || (!kept.expand && (first || second));
    is_kept("mlpwo"); // which backward does not read
    kept.on_host = on_host_;
    return kept;
  }
  /// Whether a product is kept in part, which is one operator here.
  bool keeps_parts() const { return part_; }
  bool are_in_both() const { return on_host_ && on_device_; }

private:
  bool is_kept(std::string_view tensor) {
    const std::vector<std::string> places = {"remat", "device", "offload"};
    const std::string place = leaves_.choice("", tensor, places, tensor == "decoder_layer_input" ? "device" : "remat");
    on_host_ = on_host_ || place == "offload";
    on_device_ = on_device_ || place == "device";
    return place != "remat";
  }

  ConfigLeaves& leaves_;
  bool on_host_ = false, on_device_ = false, part_ = false;
};

// All but what is kept and an MLP's last product, which backward does not read and XLA leaves out.
void run_again(const Kept& kept, TrainingDraft& draft, const Where& where) {
  if (kept.attention) {
    draft.recompute_kinds({KernelKind::normalization, KernelKind::elementwise}, where);
  } else {
    draft.recompute_kinds({KernelKind::attention, KernelKind::normalization, KernelKind::elementwise}, where);
  }
  std::vector<std::string_view> products;
  for (const auto& [is_kept, name] :
       {std::pair{kept.queries, "qkv"}, {kept.projection, "projection"}, {kept.expand, "expand"}}) {
    if (!is_kept) {
      products.emplace_back(name);
    }
  }
  draft.recompute_operators(in_all_blocks(draft.layers(), products), where);
}

} // namespace

void read_maxtext_policy(ConfigLeaves& leaves, TrainingDraft& draft) {
  const std::string given = leaves.text("", "remat_policy", "full");
  const Where where = leaves.where("", "remat_policy");
  if (given == "none") {
    draft.set("recompute", "none", where);
    return;
  }
  const auto policy =
      std::find_if(kPolicies.begin(), kPolicies.end(), [&](const Policy& one) { return one.name == given; });
  if (policy == kPolicies.end()) {
    std::vector<std::string> known = names_of(kPolicies);
    known.emplace_back("none");
    throw InputError(where, unknown_name("remat_policy", given, known));
  }
  Tensors tensors(leaves);
  const Kept kept = given == "custom" ? tensors.kept() : policy->kept;
  const bool nothing = !kept.queries && !kept.attention && !kept.projection && !kept.expand;
  const bool all_products = kept.queries && kept.projection && kept.expand;
  const bool named = draft.layers() > 0 && sizes_of(draft.context().model).experts.value_or(0) == 0;
  if (nothing || !(named || all_products)) {
    draft.recompute_blocks(1, 0, where);
  } else {
    run_again(kept, draft, where);
  }
  if (!nothing && !(named || all_products)) {
    draft.leave("remat_policy " + given + " (here whole blocks run again, as with full)");
  } else if (tensors.keeps_parts()) {
    draft.leave("remat_policy custom of a part of a product (here all of it runs again)");
  }
  if (tensors.are_in_both() || (kept.on_host && given != "custom")) { // whose blocks' inputs stay
    draft.leave("remat_policy " + given + " that keeps a part on the device (here all of it is on the host)");
  }
  if (kept.on_host) {
    draft.set("offload.activations", "all", where);
  }
}

} // namespace stagecraft
