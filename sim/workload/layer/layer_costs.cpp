// The cost of each layer kind. Letters as in docs/formats/workload.md: x, y = elements read and written;
// P = parameters; k = window; F = FLOPs.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/layer_costs.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "sim/workload/layer/layer_parts.hpp"

namespace stagecraft {
namespace {

constexpr double kMaskElements = 0.5; // a mask is one byte per element, half an fp16 value

double inputs_of(const Layer& layer) {
  double sum = 0;
  for (const Shape& shape : layer.inputs) {
    sum += elements_of(shape);
  }
  return sum;
}

double window_of(const Layer& layer) {
  return std::accumulate(layer.kernel.begin(), layer.kernel.end(), 1.0, std::multiplies<>());
}

// An element-wise function of `flops` operations per element: forward reads and writes every element, backward reads
// one tensor more.
LayerCost elementwise(const Layer& layer, double flops, Kept kept) {
  const double y = elements_of(layer.output);
  return {.forward = make_pass(flops * y, 2 * y), .backward_input = make_pass(flops * y, 3 * y), .kept = kept};
}

LayerCost normalization(const Layer& layer, double reads, double parameters) {
  const double y = elements_of(layer.output);
  return {.forward = make_pass(2 * y, (reads + 1) * y, parameters),
          .backward_input = make_pass(2 * y, 3 * y, layer.features_in),
          .backward_weight = make_pass(2 * y, 2 * y, parameters),
          .parameters = parameters,
          .kept = {.inputs = true}};
}

} // namespace

LayerCost dense_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double fan_in = layer.features_in / layer.groups * window_of(layer);
  const double weights = fan_in * layer.features;
  const double parameters = weights + (layer.bias ? layer.features : 0);
  const double flops = 2 * y * fan_in;
  return {.forward = make_pass(flops, x + y, parameters),
          .backward_input = make_pass(flops, x + y, weights),
          .backward_weight = make_pass(flops, x + y, parameters),
          .parameters = layer.tied ? parameters - weights : parameters,
          .kept = {.inputs = true, .for_weights_alone = true}};
}

// The gradient of a convolution as a forward pass: each element read is multiplied with the window of every channel
// written (Dumoulin and Visin 2016).
LayerCost transposed_convolution_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double fan_out = layer.features / layer.groups * window_of(layer);
  const double weights = fan_out * layer.features_in;
  const double parameters = weights + (layer.bias ? layer.features : 0);
  const double flops = 2 * x * fan_out;
  return {.forward = make_pass(flops, x + y, parameters),
          .backward_input = make_pass(flops, x + y, weights),
          .backward_weight = make_pass(flops, x + y, parameters),
          .parameters = parameters,
          .kept = {.inputs = true, .for_weights_alone = true}};
}

// Hu et al. 2021: y = W x + B A x, where only A [r, in] and B [out, r] are trained. x is kept for A's gradient, A x for
// B's.
LayerCost linear_cost(const Layer& layer) {
  LayerCost cost = dense_cost(layer);
  if (layer.lora == 0) {
    return cost;
  }
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double inner = y / layer.features * layer.lora; // elements of A x
  const double weights = layer.lora * (layer.features_in + layer.features);
  const double flops = 2 * inner * (layer.features_in + layer.features);
  const double moved = x + 2 * inner + 3 * y; // the sum reads both and writes
  cost = freeze(cost);
  cost.parameters = weights;
  for (Pass* pass : {&cost.forward, &cost.backward_input}) {
    *pass = make_pass(pass->flops.value + flops, pass->moved_elements + moved, pass->moved_parameters + weights, 4);
  }
  cost.backward_weight = make_pass(flops, x + y + 2 * inner, weights, 2);
  cost.kept = {.inputs = true, .extra = inner};
  return cost;
}

// Batch statistics need a second pass over the input; for layer normalization a row fits on the chip.
LayerCost batch_norm_cost(const Layer& layer) { return normalization(layer, 2, 2 * layer.features_in); }

// Ulyanov et al. 2016: a batch normalization of every sample by itself. Without weights the sums that their gradients
// would share are still made, for the gradient of the input.
LayerCost instance_norm_cost(const Layer& layer) {
  LayerCost cost = batch_norm_cost(layer);
  if (!layer.bias) {
    const double y = elements_of(layer.output);
    cost.forward = make_pass(2 * y, 3 * y);
    cost.backward_input = make_pass(4 * y, (3 + 2) * y);
    cost.backward_weight = {};
    cost.parameters = 0;
  }
  return cost;
}

LayerCost layer_norm_cost(const Layer& layer) {
  return normalization(layer, 1, (layer.bias ? 2 : 1) * layer.features_in);
}

// Zhang and Sennrich 2019: y = w x / rms(x), with no shift. Backward: u = x / rms(x), dx = (w dy - u mean(w dy u)) /
// rms(x), dw = sum of dy u: it reads x and dy as that of a layer normalization does.
LayerCost rms_norm_cost(const Layer& layer) { return normalization(layer, 1, layer.features_in); }

// The same within each head, with one weight for queries and one for keys. Values stay where they are: z elements of
// the tensor are touched, and kept, by one kernel for queries and one for keys.
LayerCost query_key_norm_cost(const Layer& layer) {
  const double z = layer.sequence * layer.features;
  const double parameters = 2 * layer.features_in;
  return {.forward = make_pass(2 * z, 2 * z, parameters, 2),
          .backward_input = make_pass(2 * z, 3 * z, parameters, 2),
          .backward_weight = make_pass(2 * z, 2 * z, parameters, 2),
          .parameters = parameters,
          .kept = {.extra = z}};
}

LayerCost response_norm_cost(const Layer& layer) {
  const double y = elements_of(layer.output);
  const double flops = (2 * window_of(layer) + 3) * y;
  return {.forward = make_pass(flops, 2 * y),
          .backward_input = make_pass(2 * flops, 4 * y),
          .kept = {.inputs = true, .output = true}};
}

LayerCost in_place_cost(const Layer& layer) { return elementwise(layer, 1, {.output = true}); }
LayerCost activation_cost(const Layer& layer) { return elementwise(layer, 8, {.inputs = true}); }
LayerCost leaky_relu_cost(const Layer& layer) { return elementwise(layer, 1, {.inputs = true}); }

// y = a(g) u of the input's halves g and u. Backward computes a(g) again, of which nothing was kept, then du = dy a(g)
// and dg = dy u a'(g): 8 + 1 + 1 + 8 operations. The weights of rows, where there are some, are one factor more.
LayerCost gated_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double weights = layer.inputs.size() > 1 ? y : 0;
  return {.forward = make_pass(9 * y + weights, x + y),
          .backward_input = make_pass(18 * y + 3 * weights, 2 * x + y),
          .kept = {.inputs = true}};
}

// Su et al. 2021: each pair (a, b) becomes (a cos - b sin, a sin + b cos), 3 operations for each of the z elements that
// turn, in place. Backward turns the gradient back; it needs only the angles, which follow from the position.
LayerCost rotary_cost(const Layer& layer) {
  const double z = layer.sequence * layer.features;
  return {.forward = make_pass(3 * z, 2 * z), .backward_input = make_pass(3 * z, 2 * z)};
}

LayerCost dropout_cost(const Layer& layer) {
  const double y = elements_of(layer.output);
  return {.forward = make_pass(y, (2 + kMaskElements) * y),
          .backward_input = make_pass(y, (2 + kMaskElements) * y),
          .kept = {.extra = kMaskElements * y}};
}

// Tompson et al. 2015: one number for each channel is kept.
LayerCost channel_dropout_cost(const Layer& layer) {
  LayerCost cost = elementwise(layer, 1, {.extra = layer.features_in});
  cost.backward_input.moved_elements = cost.forward.moved_elements;
  return cost;
}

// Instructions of PyTorch's kernels over windows (aten/src/ATen/native/cuda: DilatedMaxPool2d.cu, AveragePool2d.cu):
// those that find the place of an element, by divisions of integers, and those for each of its windows. Forward an
// element is one of the output; backward, of the input, which each window that has it gives a part of its gradient.
struct WindowInstructions {
  double place, tap, place_backward, tap_backward;
};

// Of forward and of backward.
std::array<double, 2> instructions_of(const Layer& layer, const WindowInstructions& each) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double taps = window_of(layer) * y;
  return {each.place * y + each.tap * taps, each.place_backward * x + each.tap_backward * taps};
}

void count_instructions(LayerCost& cost, const Layer& layer, const WindowInstructions& channels_last,
                        const WindowInstructions& channels_first) {
  const auto last = instructions_of(layer, channels_last), first = instructions_of(layer, channels_first);
  cost.forward.instructions = last[0];
  cost.backward_input.instructions = last[1];
  cost.forward.instructions_channels_first = first[0];
  cost.backward_input.instructions_channels_first = first[1];
}

// With channels last a thread finds a place once for many channels.
LayerCost max_pool_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  LayerCost cost{.forward = make_pass((window_of(layer) - 1) * y, x + 2 * y),
                 .backward_input = make_pass(y, x + 2 * y),
                 .kept = {.extra = y}};
  count_instructions(cost, layer, {.place = 20, .tap = 12, .place_backward = 10, .tap_backward = 10},
                     {.place = 120, .tap = 9, .place_backward = 150, .tap_backward = 10});
  return cost;
}

LayerCost average_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  return {.forward = make_pass(window_of(layer) * y, x + y), .backward_input = make_pass(window_of(layer) * y, x + y)};
}

LayerCost average_pool_cost(const Layer& layer) {
  LayerCost cost = average_cost(layer);
  constexpr WindowInstructions kEach{.place = 120, .tap = 6, .place_backward = 220, .tap_backward = 35};
  count_instructions(cost, layer, kEach, kEach);
  return cost;
}

// Backward adds up the gradients of the copies of an element.
LayerCost upsample_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  return {.forward = make_pass(0, x + y), .backward_input = make_pass(y, x + y)};
}

// A sum passes its gradient on unchanged. What costs time is adding it to other gradients where branches part.
LayerCost add_cost(const Layer& layer) {
  const double y = elements_of(layer.output);
  const double terms = static_cast<double>(layer.inputs.size()) - 1;
  return {.forward = make_pass(terms * y, inputs_of(layer) + y), .backward_input = make_pass(terms * y, 3 * terms * y)};
}

// A factor that is broadcast, as a gate of each channel (Hu et al. 2018), is a sum of products for the gradient of its
// own: they are written, and read again. What is gated has two gradients then, its own and the gate's, which are added.
LayerCost product_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const auto factors = static_cast<double>(layer.inputs.size());
  const auto broadcast = static_cast<double>(std::count_if(
      layer.inputs.begin(), layer.inputs.end(), [&](const Shape& factor) { return elements_of(factor) < y; }));
  constexpr double kSummed = 3, kAdded = 3; // of y: a gradient and what is gated read, written, read; two read, written
  return {.forward = make_pass((factors - 1) * y, x + y),
          .backward_input = make_pass((factors + broadcast) * y, 2 * x + y + broadcast * (kSummed + kAdded) * y),
          .kept = {.inputs = true}};
}

LayerCost copy_cost(const Layer& layer) {
  const double y = elements_of(layer.output);
  return {.forward = make_pass(0, 2 * y), .backward_input = make_pass(0, y + inputs_of(layer))};
}

LayerCost view_cost(const Layer&) { return {.kept = {.view = true}}; }

LayerCost softmax_cost(const Layer& layer) { return elementwise(layer, 5, {.output = true}); }

LayerCost cross_entropy_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  return {.forward = make_pass(5 * x, 2 * x), .backward_input = make_pass(2 * x, 2 * x), .kept = {.extra = x}};
}

LayerCost embedding_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double tables = 1 + (layer.positions > 0 ? 1 : 0) + (layer.types > 0 ? 1 : 0);
  const double parameters = (layer.vocabulary + layer.positions + layer.types) * layer.features;
  return {.forward = make_pass((tables - 1) * y, x + (tables + 1) * y),
          .backward_weight = make_pass(tables * y, x + y, parameters),
          .parameters = layer.tied ? parameters - layer.vocabulary * layer.features : parameters,
          .kept = {.inputs = true}};
}

namespace {

// Of one document.
double pairs_of(const Layer& layer, double queries) {
  if (!layer.causal) {
    return queries * queries;
  }
  const double most = layer.window > 0 ? std::min<double>(queries, layer.window) : queries;
  return most * (most + 1) / 2 + (queries - most) * most;
}

} // namespace

double attended_pairs(const Layer& layer) {
  if (layer.documents.empty()) {
    return layer.causal ? pairs_of(layer, layer.sequence) : layer.sequence * layer.positions;
  }
  return std::accumulate(layer.documents.begin(), layer.documents.end(), 0.0,
                         [&](double sum, int length) { return sum + pairs_of(layer, length); });
}

AttentionMask mask_of(const Layer& layer) {
  return {static_cast<std::int64_t>(layer.sequence), layer.causal, layer.window, layer.documents};
}

// Dao et al. 2022: forward computes QK' and PV; backward QK' again, then dV, dP, dQ and dK: 5 products against 2.
// Beside q, k, v and the output only the logarithm of each row's sum is kept. A sink is a learned logit of each head to
// which no value belongs; a bias of each pair and head is read and added.
LayerCost attention_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double queries = layer.sequence;
  const double flops = 2 * attended_pairs(layer) * (layer.features_in + layer.features);
  const double biases = layer.biased ? layer.heads * attended_pairs(layer) : 0;
  const Pass weight_pass = layer.buckets > 0 ? make_pass(biases, biases, layer.buckets * layer.heads)
                           : layer.sinks     ? make_pass(2 * queries * layer.heads, queries * layer.heads, layer.heads)
                                             : Pass();
  const double parameters =
      (layer.sinks ? layer.heads : 0) + static_cast<double>(layer.buckets) * static_cast<double>(layer.heads);
  return {.forward = make_pass(flops + biases, x + y + biases),
          .backward_input = make_pass(2.5 * flops + biases, 2 * (x + y + biases)),
          .backward_weight = weight_pass,
          .parameters = parameters,
          .kept = {.inputs = true, .output = true, .extra = queries * layer.heads},
          .seen = attended_pairs(layer) / (queries * layer.positions),
          .mask = mask_of(layer)};
}

// Per layer and direction, 4 gates of (in + hidden + 2 biases) x hidden. One product for the inputs of all steps, then
// one kernel per step, each reading the recurrent weights again. Of packed sequences PyTorch's backward takes the
// output apart length by length: for each it copies the gradient of the padded output, reading and writing, fills a
// gradient of the packed one with zeros, and adds it to the others, reading two and writing one.
LayerCost lstm_cost(const Layer& layer) {
  const double directions = layer.bidirectional ? 2 : 1;
  const double hidden = layer.features;
  const double x = inputs_of(layer);
  const double steps = x / layer.features_in; // sum over all samples
  double weights = 0;
  for (int i = 0; i < layer.layers; ++i) {
    weights += directions * 4 * hidden * ((i == 0 ? layer.features_in : directions * hidden) + hidden);
  }
  const double cells = directions * layer.layers;
  const double recurrent = cells * 4 * hidden * hidden;
  const double parameters = weights + (layer.bias ? cells * 8 * hidden : 0);
  const double flops = 2 * steps * weights;
  const double gates = steps * cells * 4 * hidden;
  const double moved = x + elements_of(layer.output) + 2 * gates;
  const double read_weights = weights + (layer.sequence - 1) * recurrent;
  const int kernels = static_cast<int>(std::min(cells * (1 + layer.sequence), 1e9));
  Pass backward = make_pass(flops, moved, read_weights, kernels);
  if (layer.packed_lengths > 0) {
    constexpr double kPadded = 2, kPacked = 1 + 3;
    backward.lengths = static_cast<double>(layer.packed_lengths);
    backward.unpacked_elements = (kPadded * layer.longest + kPacked) * elements_of(layer.output);
  }
  return {.forward = make_pass(flops, moved, read_weights, kernels),
          .backward_input = backward,
          .backward_weight = make_pass(flops, moved, parameters, static_cast<int>(2 * cells)),
          .parameters = parameters,
          .kept = {.inputs = true, .output = true, .extra = gates + steps * (2 * cells - directions) * hidden}};
}

LayerCost matmul_cost(const Layer& layer) {
  const double x = inputs_of(layer);
  const double y = elements_of(layer.output);
  const double flops = 2 * y * layer.features_in;
  return {.forward = make_pass(flops, x + y),
          .backward_input = make_pass(2 * flops, 2 * (x + y), 0, 2),
          .kept = {.inputs = true}};
}

} // namespace stagecraft
