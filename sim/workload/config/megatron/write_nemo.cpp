// Our plans as a row of NeMo's recommended_model_configs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

// The modules that run again, as a cell; "" where others than modules do.
std::string nemo_modules(const ConfigToWrite& what) {
  const RecomputeChoice& choice = what.training.recompute;
  const bool attention = choice.kinds == std::vector{KernelKind::attention};
  if (what.recompute != Recompute::selective || choice.blocks > 0 || !choice.operators.empty() ||
      (!attention && !choice.kinds.empty())) {
    return "";
  }
  std::string text = attention ? "core_attn" : "";
  for (const std::string& module : choice.modules) {
    text += (text.empty() ? "" : "/") + module;
  }
  return text;
}

// Products in 8 bits as its scripts name them; "": none of theirs.
std::string_view nemo_recipe(const Training& training) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kRecipes = {
      {{"delayed", "ds"}, {"tensorwise", "cs"}, {"blockwise", "ss"}, {"mxfp8", "mxfp8"}}};
  for (const auto& [ours, theirs] : kRecipes) {
    if (ours == training.fp8->name) {
      return theirs;
    }
  }
  return "";
}

// Why a row's recipe holds weights otherwise; "".
std::string refusal_of_nemo_weights(const Training& training) {
  const std::string_view recipe = nemo_recipe(training);
  const bool held = recipe == "ds" || recipe == "cs"; // in 8 bits alone, and gathered so
  const bool gathers = training.fp8_weights && training.sharding.quantized_weights == QuantizedWeights::fp8;
  if (held && !gathers) {
    return "weights in 16 bits beside 'fp8' " + std::string(training.fp8->name) +
           ", and NeMo's recipes hold and gather them in 8 ('fp8_weights', 'quantized_weights' fp8)";
  }
  return !held && (training.fp8_weights || gathers)
             ? "weights in 8 bits alone, and NeMo's recipes hold them so with delayed or current scales"
             : "";
}

std::string refusal_of_nemo(const ConfigToWrite& what) {
  const Training& training = what.training;
  if (!has_equal_stages(what)) {
    return "stages of unlike numbers of layers, and a row has as many for each";
  }
  if (what.mesh.tensor > 1 && !what.mesh.sequence) {
    return "a tensor group that does not share tokens, and NeMo's recipes do";
  }
  const bool four = training.fp8->products == Precision::nvfp4;
  if (training.precision != Precision::bf16 || (training.fp8->products && !four && nemo_recipe(training).empty())) {
    return "precision " + precision_text(training) +
           ", and a row has bf16, nvfp4, or fp8 by Transformer Engine's "
           "recipes";
  }
  if (training.sharding.zero != Zero::states && training.sharding.zero != Zero::weights) {
    return zero_text(what) + ", and NeMo's recipes share the optimiser's states, or weights too";
  }
  if (sharing(what) < what.mesh.data * what.mesh.context.ranks) {
    return "groups of replicas that share among themselves, and a row has no column for them";
  }
  if (has_zero_plus_plus(training)) {
    return "weights or gradients that are made smaller before they are sent, and a row has no column for them";
  }
  if (std::string why = refusal_of_nemo_weights(training); !why.empty()) {
    return why;
  }
  if (training.offload.on()) {
    return "what is left to hosts, which a row cannot say";
  }
  if (what.recompute == Recompute::selective && training.recompute.first == 0 && nemo_modules(what).empty()) {
    return "recompute of kinds or operators, and a row has columns for layers and modules";
  }
  return refusal_of_rule(what);
}

} // namespace

WrittenConfig write_nemo(const ConfigToWrite& what) {
  if (std::string why = refusal_of_nemo(what); !why.empty()) {
    return Infeasible{std::move(why)};
  }
  const auto number = [](auto value) { return std::to_string(value); };
  constexpr int kDtype = 4; // its column
  std::vector<std::pair<std::string, std::string>> cells = {
      {"task", "pre_train"},
      {"model", csv_cell(what.model.name)},
      {"size", ""},
      {"system", ""},
      {"dtype", !what.training.fp8->products         ? "bf16"
                : what.training.fp8->name == "nvfp4" ? "nvfp4"
                                                     : "fp8"},
      {"num_gpus", number(what.mesh.devices_before(what.mesh.pipeline) * what.mesh.data)},
      {"seq_len", tokens_of(what.model) > 0 ? number(std::lround(tokens_of(what.model))) : ""},
      {"tp_size", number(what.mesh.tensor)},
      {"pp_size", number(what.mesh.pipeline)},
      {"cp_size", number(what.mesh.context.ranks)},
      {"ep_size", number(what.mesh.experts.ranks)},
      {"vp_size", number(chunks(what))},
      {"mbs", number(samples_at_a_time(what))},
      {"gbs", number(what.training.global_batch)},
      {"etp_size", what.mesh.experts.ranks > 1 ? number(what.mesh.experts.tensor) : ""},
      {"cuda_graphs", what.training.launches.captured == std::vector<std::string>{"layer"} ? "1" : "0"},
      {"use_mcore_fsdp", what.training.sharding.zero == Zero::weights ? "1" : "0"},
      {"recompute_layers", what.recompute == Recompute::full        ? number(layers_of_stage(what))
                           : what.recompute == Recompute::selective ? number(what.training.recompute.first)
                                                                    : "0"},
      {"activation_offload_layers", "0"},
      {"recompute_modules", nemo_modules(what)},
  };
  if (const std::string_view recipe = nemo_recipe(what.training); !recipe.empty() && recipe != "ds") {
    cells.insert(cells.begin() + kDtype + 1, {"fp8_recipe", std::string(recipe)}); // delayed scales are its usual ones
  }
  std::string header, row;
  for (const auto& [name, value] : cells) {
    header += (header.empty() ? "" : ",") + name;
    row += (&name == &cells.front().first ? "" : ",") + value;
  }
  return header + "\n" + row + "\n";
}

} // namespace stagecraft
