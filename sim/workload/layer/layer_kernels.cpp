// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/layer_kernels.hpp"

#include <algorithm>

#include "sim/workload/layer/layer_parts.hpp"

namespace stagecraft {
namespace {

// Positions of dimensions in KernelOpRow::dimensions.
constexpr int kImages = 0, kRows = 0;

double last(const Shape& shape) { return shape.empty() ? 1 : std::max(1.0, static_cast<double>(shape.back())); }

KernelCall over(KernelOp op, double elements, double columns) { return {op, {elements / columns, columns}, kRows}; }

// The same op forward and backward over the rows of the output.
LayerKernels both_passes(KernelOp op, const Layer& layer, double columns) {
  const KernelCall call = over(op, elements_of(layer.output), columns);
  return {.forward = {call}, .backward_input = {call}};
}

// A convolution that sees one position at a time is the product of the positions that it keeps with one weight matrix.
// Libraries compute it so, and fits to larger windows, whose algorithms save multiplications, say nothing of it.
bool is_product(const Layer& layer) {
  return layer.kernel == std::vector{1, 1} && layer.padding == std::vector{0, 0} && layer.groups == 1;
}

} // namespace

// y[rows, out] = x[rows, in] W[in, out]; then dx = dy W' and dW = x' dy.
LayerKernels linear_kernels(const Layer& layer) {
  const double in = layer.features_in;
  const double out = layer.features;
  const double rows = elements_of(layer.output) / out;
  if (layer.lora > 0) { // A and B beside the weights, and the sum of both ways
    const double rank = layer.lora;
    const KernelCall sum = over(KernelOp::add, elements_of(layer.output), out);
    const KernelCall sum_of_inputs = over(KernelOp::add, rows * in, in);
    return {{make_gemm(1, rows, out, in, kM), make_gemm(1, rows, rank, in, kM), make_gemm(1, rows, out, rank, kM), sum},
            {make_gemm(1, rows, in, out, kM), make_gemm(1, rows, rank, out, kM), make_gemm(1, rows, in, rank, kM),
             sum_of_inputs},
            {make_gemm(1, in, rank, rows, kK), make_gemm(1, rank, out, rows, kK)}};
  }
  return {{make_gemm(1, rows, out, in, kM)}, {make_gemm(1, rows, in, out, kM)}, {make_gemm(1, in, out, rows, kK)}};
}

LayerKernels convolution_kernels(const Layer& layer) {
  const Shape& image = layer.inputs.front();
  const bool plain = layer.kernel.size() == 2 && image.size() >= 3 && layer.stride[0] == layer.stride[1] &&
                     layer.padding[0] == layer.padding[1] &&
                     std::all_of(layer.dilation.begin(), layer.dilation.end(), [](int by) { return by == 1; });
  if (!plain) {
    return {};
  }
  if (is_product(layer)) {
    return linear_kernels(layer);
  }
  const double width = last(image);
  const auto height = static_cast<double>(image[image.size() - 2]);
  const double images = elements_of(image) / (layer.features_in * height * width);
  const KernelCall call{KernelOp::convolution,
                        {images, layer.features_in, height, width, layer.features, static_cast<double>(layer.kernel[0]),
                         static_cast<double>(layer.kernel[1]), static_cast<double>(layer.stride[0]),
                         static_cast<double>(layer.padding[0]), static_cast<double>(layer.groups)},
                        kImages};
  return {{call}, {call}, {call}};
}

// Both operands are activations: backward has a product for the gradient of each.
LayerKernels matmul_kernels(const Layer& layer) {
  if (layer.output.size() < 2) {
    return {};
  }
  const double k = layer.features_in;
  const double n = last(layer.output);
  const auto m = static_cast<double>(layer.output[layer.output.size() - 2]);
  const double batch = elements_of(layer.output) / (m * n);
  return {.forward = {make_gemm(batch, m, n, k, kBatch)},
          .backward_input = {make_gemm(batch, m, k, n, kBatch), make_gemm(batch, k, n, m, kBatch)}};
}

LayerKernels attention_kernels(const Layer& layer) {
  const std::optional<double> length = length_of_documents(layer);
  const bool hides_keys = layer.window > 0 && length && layer.window < *length;
  if (layer.positions != layer.sequence || layer.features != layer.features_in || hides_keys || !length ||
      layer.biased) {
    return {};
  }
  const KernelCall call{KernelOp::attention,
                        {elements_of(layer.output) / (*length * layer.features), *length,
                         static_cast<double>(layer.heads), static_cast<double>(layer.key_value_heads),
                         layer.features / layer.heads, layer.causal ? 1.0 : 0.0},
                        kImages};
  return {.forward = {call}, .backward_input = {call}};
}

LayerKernels batch_norm_kernels(const Layer& layer) {
  return both_passes(KernelOp::batch_norm, layer, layer.features_in);
}
LayerKernels layer_norm_kernels(const Layer& layer) {
  return both_passes(KernelOp::layer_norm, layer, layer.features_in);
}

LayerKernels rms_norm_kernels(const Layer& layer) {
  return both_passes(KernelOp::rms_norm, layer, layer.features_in / layer.groups);
}

LayerKernels query_key_norm_kernels(const Layer& layer) {
  const KernelCall queries{KernelOp::rms_norm, {layer.sequence * layer.heads, layer.features_in}, kRows};
  const KernelCall keys{KernelOp::rms_norm, {layer.sequence * layer.key_value_heads, layer.features_in}, kRows};
  return {.forward = {queries, keys}, .backward_input = {queries, keys}};
}

// Each head of a token, of queries and of keys, is a row.
LayerKernels rotary_kernels(const Layer& layer) {
  const double heads = layer.heads + static_cast<double>(layer.key_value_heads);
  const KernelCall call{KernelOp::rotary, {layer.sequence * heads, layer.features / heads}, kRows};
  return {.forward = {call}, .backward_input = {call}};
}

LayerKernels relu_kernels(const Layer& layer) { return both_passes(KernelOp::relu, layer, last(layer.output)); }
LayerKernels gelu_kernels(const Layer& layer) { return both_passes(KernelOp::gelu, layer, last(layer.output)); }
LayerKernels gated_kernels(const Layer& layer) { return both_passes(KernelOp::swiglu, layer, last(layer.output)); }
LayerKernels dropout_kernels(const Layer& layer) { return both_passes(KernelOp::dropout, layer, last(layer.output)); }
LayerKernels softmax_kernels(const Layer& layer) { return both_passes(KernelOp::softmax, layer, last(layer.output)); }

LayerKernels add_kernels(const Layer& layer) {
  const KernelCall call = over(KernelOp::add, elements_of(layer.output), last(layer.output));
  const std::vector<KernelCall> calls(std::max<std::size_t>(layer.inputs.size(), 1) - 1, call);
  return {.forward = calls, .backward_input = calls};
}

LayerKernels copy_kernels(const Layer& layer) { return both_passes(KernelOp::copy, layer, last(layer.output)); }

LayerKernels loss_kernels(const Layer& layer) {
  const Shape& scores = layer.inputs.front();
  const KernelCall call = over(KernelOp::cross_entropy, elements_of(scores), last(scores));
  return {.forward = {call}, .backward_input = {call}};
}

LayerKernels embedding_kernels(const Layer& layer) {
  const KernelCall call = over(KernelOp::embedding, elements_of(layer.output), layer.features);
  return {.forward = {call}, .backward_weight = {call}};
}

} // namespace stagecraft
