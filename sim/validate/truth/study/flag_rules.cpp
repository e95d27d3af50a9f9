// What the flags of a run say of exchanges, of what is left to hosts, and of graphs of kernels.
// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <cstdlib>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/training_rules.hpp"
#include "sim/workload/training/captured_modules.hpp"
#include "sim/workload/training/latent_product.hpp"

namespace stagecraft {
namespace {

// From its container 26.02 on Megatron-Bridge's performance recipes have `moe_token_dispatcher_type = "flex"` with
// DeepEP's or HybridEP's kernels (src/megatron/bridge/perf_recipes).
constexpr int kFlexible = 2602;

// 2602 of "26.02 NeMo Container", the first two numbers of two digits with a point between them; 0: none.
int container_of(const TruthRow& row) {
  constexpr int kYear = 100;
  const auto is_digit = [&](std::size_t at) {
    return at < row.table.size() && std::isdigit(static_cast<unsigned char>(row.table[at])) != 0;
  };
  for (std::size_t point = 2; point < row.table.size(); ++point) {
    if (row.table[point] == '.' && is_digit(point - 2) && is_digit(point - 1) && is_digit(point + 1) &&
        is_digit(point + 2) && (point == 2 || !is_digit(point - 3)) && !is_digit(point + 3)) {
      return kYear * std::atoi(row.table.c_str() + point - 2) + std::atoi(row.table.c_str() + point + 1);
    }
  }
  return 0;
}

// What flags say of how tokens reach experts, else the row's words, else the recipes of its release; "" if none do.
std::string token_dispatcher(RunTraining& run) {
  if (std::string dispatcher = run.row.flag("dispatcher"); !dispatcher.empty()) {
    return dispatcher;
  }
  if (run.row.mentions("HybridEP")) {
    return "hybridep";
  }
  if (run.row.mentions("DeepEP")) {
    return "deepep";
  }
  if (run.framework.name != "megatron-bridge" || run.row.degrees.expert <= 1 || container_of(run.row) < kFlexible) {
    return "";
  }
  run.assume("tokens go to experts by HybridEP, as in the performance recipes of that release");
  return "hybridep";
}

std::string write_offload(RunTraining& run) {
  constexpr double kPercents = 100;
  const std::string words = run.row.flag("cpu_offload");
  const int share = number_after(words, "optimizer ");
  if (words.starts_with("optimizer") && share > 0 && share <= kPercents) {
    run.line("  offload: {optimizer: " + std::to_string(share / kPercents) + ", gradients: true}");
  } else if (const int layers = number_after(words, "activations of "); layers > 0) {
    run.line("  offload: {activations: " + std::to_string(layers) + "}");
  } else if (!words.empty() && !says_no(words) && !words.starts_with("n/a")) {
    return "what is left to hosts, '" + excerpt(words) +
           "', is not modelled; allowed: none, optimizer 50 %, activations of 40 layers";
  }
  return "";
}

// "transformer_engine: attn, moe_router" names modules; "local: per layer" captures layers as they are.
void write_captured(RunTraining& run) {
  const std::string graphs = run.row.flag("cuda_graphs");
  const std::string named = modules_named(graphs, kCapturedModules);
  const std::string modules = has(graphs, "per layer") ? "layer" + (named.empty() ? "" : ", " + named) : named;
  std::vector<std::string> parts;
  if (!modules.empty()) {
    parts.push_back("captured: [" + modules + "]");
  }
  if (run.framework.name == "megatron-bridge" && run.row.mentions("performance summary")) { // apply_rope_fusion in all
    parts.push_back("types: {" + std::string(kLatentProduct) +
                    ": {forward: " + std::to_string(static_cast<int>(kFusedLatentProduct.forward)) +
                    ", backward: " + std::to_string(static_cast<int>(kFusedLatentProduct.backward)) + "}}");
  }
  if (!parts.empty()) {
    run.line("  launches: {" + join(parts, ", ") + "}");
  }
}

} // namespace

// How tokens reach experts, what is left to hosts, graphs of kernels, which the host launches at once, and whether
// replicas reduce gradients beside the last backward.
std::string write_flags(RunTraining& run) {
  if (const std::string dispatcher = token_dispatcher(run); dispatcher == "hybridep" || dispatcher == "deepep") {
    run.line("  token_dispatcher: " + dispatcher);
  }
  if (const std::string choice = run.row.flag("expert_choice"); !choice.empty() && run.is_mixture()) {
    run.line("  expert_choice: " + choice);
  }
  write_captured(run);
  if (run.row.flag("overlap_grad_reduce") == "false") {
    run.line("  gradient_bucket: none");
  }
  if (run.tensor > 1 && (run.row.flag("tp_comm_overlap") == "true" || run.row.mentions("async_TP=True"))) {
    run.line("  pipelined_exchange: true");
  }
  return write_offload(run);
}

} // namespace stagecraft
