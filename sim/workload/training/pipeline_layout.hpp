// Which layers each stage of a pipeline has, as Megatron-LM writes it: "E,t*3|(tt|)*4,t,m,L".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// The letters of each stage, in the order of the model: E what comes before the layers, t a layer, m a layer that
/// predicts a further token, L what comes after the layers.
struct PipelineLayout {
  std::vector<std::string> stages; ///< none: whole layers, so that the slowest stage takes least time
  Where where;                     ///< for errors

  bool by_time() const { return stages.empty(); }

  /// How often a letter occurs.
  int count(char letter) const;
};

/// A layout as it is written.
struct LayoutText {
  std::string text;
  Where where;
  bool by_column = false; ///< the k-th character stands k columns after `where`, where no quote or escape shifts it
};

/// Expands a layout: commas drop out, x*n and (…)*n repeat, a bar stands between two stages (Megatron-LM,
/// pipeline_parallel_layer_layout.py). InputError for an unknown letter, for letters out of order (one E first, then t,
/// then m, all in one stage, one L last), and for more than a million letters.
PipelineLayout read_pipeline_layout(const LayoutText& layout);

/// The layout as text, runs of a letter as t*n.
std::string to_text(const PipelineLayout& layout);

/// "", or how the number of layers is not that of the model's numbered blocks.
std::string layers_defect(const PipelineLayout& layout, const ModelGraph& model);

/// The layout with so many t: layers are added to the stage with the fewest, or taken from that with the most, of those
/// that have any.
PipelineLayout with_layers(PipelineLayout layout, int layers);

/// The operators of the model that a letter of a layout stands for.
struct LaidLayer {
  char letter = 't';
  std::string name; ///< as errors name it
  std::vector<OperatorId> operators;
};

/// E, each t, each m and L of a model whose last `further` numbered blocks predict further tokens. What stands between
/// the last t and an m belongs to the m if the m needs it, else to L, as a head and a loss of the next token do.
std::vector<LaidLayer> laid_layers(const ModelGraph& model, int further = 0);

/// [stage]: its operators, ascending. `layout` has no layers_defect().
std::vector<std::vector<OperatorId>> stages_of(const PipelineLayout& layout, const ModelGraph& model);

} // namespace stagecraft
