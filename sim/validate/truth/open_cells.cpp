// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/open_cells.hpp"

#include <algorithm>
#include <array>

#include "sim/base/count_of.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

struct Batches {
  int global = 0, micro = 0; ///< samples
};

// A recipe of a framework, for rows that name both and state no length of sequences.
struct RecipeRow {
  std::string_view model, framework; ///< how the row's model begins, and a word of its source
  std::string_view name;
  int sequence;
  Batches usual, other; ///< the recipe's own, and those of the command that the source prints
};
constexpr std::array kRecipes = {
    // src/megatron/bridge/recipes: qwen/h100/qwen3_moe.py has the length, common.py the batches; the command is that of
    // skills/nemo-mbridge-perf-cpu-offloading (NVIDIA-NeMo/Megatron-Bridge, Apache-2.0).
    RecipeRow{"qwen3 30b-a3b", "megatron-bridge", "qwen3_30b_a3b_pretrain_config", 4096, {32, 2}, {8, 1}},
};

void fill_cells(TruthRow& row, int sequence, Batches batches) {
  row.sizes.sequence = sequence;
  row.global_batch = row.global_batch > 0 ? row.global_batch : batches.global;
  row.micro_batch = row.micro_batch > 0 ? row.micro_batch : batches.micro;
}

} // namespace

FilledCells fill_open_cells(TruthRow& row) {
  const std::string model = plain_words(row.model);
  const auto recipe = std::find_if(kRecipes.begin(), kRecipes.end(), [&](const RecipeRow& one) {
    return model.starts_with(one.model) && row.mentions(one.framework);
  });
  if (row.sizes.sequence > 0 || recipe == kRecipes.end()) {
    return {};
  }
  const bool open = row.global_batch == 0;
  TruthRow other = row;
  fill_cells(row, recipe->sequence, recipe->usual);
  FilledCells filled{.assumed = "sequences of " + std::to_string(recipe->sequence) + " tokens, as " +
                                std::string(recipe->name) + " has them",
                     .others = {}};
  if (open) {
    fill_cells(other, recipe->sequence, recipe->other);
    filled.assumed += ", and its batch of " + count_of(row.global_batch, "sample") + ", " +
                      count_of(static_cast<int>(row.micro_batch), "sample") + " at a time; the interval spans " +
                      std::to_string(other.global_batch) + ", " + std::to_string(static_cast<int>(other.micro_batch)) +
                      " at a time, too, as the source's command has them";
    filled.others.push_back(std::move(other));
  }
  return filled;
}

bool leaves_recompute_open(const TruthRow& row) {
  const std::string_view framework = framework_of(row).name;
  const bool script = framework.starts_with("pytorch") || framework.starts_with("mxnet");
  return !script && is_decoder(row) && recompute_stated(row).empty();
}

} // namespace stagecraft
