// Layer kinds: what each layer of a model costs, as a function of its shapes. docs/formats/workload.md has the
// equations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Sizes of a tensor: of one sample in a workload file ([channels, height, width] or [sequence, features]), of the
/// whole batch in an ONNX file. Costs are sums over elements and hold for both.
using Shape = std::vector<std::int64_t>;

double elements_of(const Shape& shape);
/// Of the largest tensor that is read: doubles count so many exactly, and products stay finite.
inline constexpr double kMostElements = 1e15;
std::string to_text(const Shape& shape); ///< "[3, 224, 224]"

/// One layer: the shapes that it reads and writes, and the attributes of its kind; the others keep their defaults.
struct Layer {
  std::vector<Shape> inputs;
  Shape output;
  double features_in = 1; ///< channels of an image or features of a sequence
  double features = 1;    ///< the same for the output; hidden size of an LSTM
  std::vector<int> kernel = {1, 1}, stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int groups = 1, heads = 1, key_value_heads = 1, layers = 1;
  double vocabulary = 0, positions = 0, types = 0;
  double sequence = 1; ///< steps that run one after another
  int window = 0;      ///< the most keys that a query of causal attention sees; 0: all. Of a state space: its chunk
  std::vector<int> documents; ///< lengths of those packed into a sequence, which do not see each other; empty: one
  int lora = 0;               ///< rank of a product's adapter (Hu et al. 2021); 0: none, and its weights are trained
  int buckets = 0;            ///< rows of the table of position biases that an attention owns; 0: none
  double part = 1;            ///< fraction of each head's width that a rotary embedding turns
  int experts = 1;            ///< of a mixture
  int top = 1;                ///< experts that each token goes to, or tokens that are learned
  int top_groups = 1;         ///< of a router's `groups` of experts, from which a token's come
  double capacity = 0;        ///< rows that an expert takes at most, to those of an equal share; 0: no limit
  int rows = 0;               ///< the same as a number, of each sequence; 0: `capacity` says it
  int packed_lengths = 0;     ///< that packed sequences of a recurrent layer may have, about as likely each; 0: one
  double longest = 1;         ///< of the sequences of a batch, in mean lengths
  double skew = 0;            ///< the i-th expert is chosen in proportion to i^-skew
  int axis = 0, start = 0, end = 0;
  Shape target; ///< output of a reshape or adaptive pooling
  bool bias = true, causal = false, bidirectional = false, ceil = false, tied = false, transpose = false;
  bool padded = false, sinks = false, biased = false;
  Where where;
};

/// Which tensors of a layer backward needs.
struct Kept {
  bool inputs = false, output = false;
  bool for_weights_alone = false; ///< the inputs are kept for the gradient of weights, not for that of inputs
  double extra = 0;               ///< further elements kept: a mask, statistics, gates
  double with_input = 0;          ///< further elements kept that are made with input `with`, and again with it
  int with = 0;                   ///< index of an input
  bool view = false;              ///< the output shares the input's memory
};

struct LayerCost {
  Pass forward, backward_input, backward_weight;
  double parameters = 0; ///< that are trained
  Kept kept;
  double seen = 1;                     ///< as in Operator
  double active = 1;                   ///< as in Operator
  double frozen = 0;                   ///< as in Operator
  std::optional<AttentionMask> mask{}; ///< as in Operator
  std::optional<Routing> routing{};    ///< as in Operator
};

/// The kernels of each pass; empty where no shape is known.
struct LayerKernels {
  std::vector<KernelCall> forward, backward_input, backward_weight;
};

struct LayerKind {
  std::string_view name, help;
  KernelKind kernel;
  int least_inputs, most_inputs;
  void (*read)(yaml::Map&, Layer&); ///< reads its attributes from a workload file
  Shape (*shape)(Layer&);           ///< shape of the output; also sets features_in and similar attributes
  LayerCost (*cost)(const Layer&);
  LayerKernels (*kernels)(const Layer&) = nullptr; ///< ops as in docs/formats/measurements.md
  /// How its tensors may be divided, for a number of samples; null where no one has said.
  Signature (*signature)(const Layer&, std::int64_t samples) = nullptr;
};

/// What a layer costs, with its kernels.
LayerCost cost_of(const LayerKind& kind, const Layer& layer);
/// The same where its weights are not trained: there is no gradient of weights, and nothing is kept for one.
LayerCost freeze(LayerCost cost);

/// The signature of a layer for one sample, whose inputs are made by the layers numbered `makers` (kModelInput: the
/// data); nothing where the kind has none for these shapes.
std::optional<Signature> signature_of(const LayerKind& kind, const Layer& layer, const std::vector<int>& makers);

/// The table of layer kinds.
std::span<const LayerKind> layer_kinds();

/// A layer with its cost, and the layers it reads: positions, or kModelInput.
struct CostedLayer {
  Operator op; ///< name, type, kind and output_elements; make_operators() fills in the rest from `cost`
  LayerCost cost;
  std::vector<int> inputs;
  bool measured = false; ///< given by numbers: `op` is complete and `cost` unused
};
inline constexpr int kModelInput = -1;

/// Fills in each operator's passes, parameters and stash. A gradient that nothing needs (no parameters upstream) costs
/// nothing, and a tensor that several layers keep is counted once, for the first that reads it.
std::vector<Operator> make_operators(std::vector<CostedLayer> layers, double input_elements);

} // namespace stagecraft
