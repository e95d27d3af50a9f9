// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/attention_graph.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::int64_t kRowAxis = 2, kColumnAxis = 3;

/// Extents and strides of all tensors of an attention.
struct Layout {
  std::int64_t batch, sequence, heads, kv_heads, size;
  dnn::DataType type;

  explicit Layout(const Kernel& kernel)
      : batch(kernel.shape[0]), sequence(kernel.shape[1]), heads(kernel.shape[2]), kv_heads(kernel.shape[3]),
        size(kernel.shape[4]), type(data_type(kernel.precision)) {}

  Extents rows(std::int64_t of) const { return {batch, of, sequence, size}; }
  Extents row_strides(std::int64_t of) const { return {sequence * of * size, size, of * size, 1}; }
  Extents transposed(std::int64_t of) const { return {batch, of, size, sequence}; }
  Extents transposed_strides(std::int64_t of) const { return {sequence * of * size, size, 1, of * size}; }
  Extents packed_strides() const { return {heads * sequence * size, sequence * size, size, 1}; }
  Extents scores() const { return {batch, heads, sequence, sequence}; }
  Extents score_strides() const { return {heads * sequence * sequence, sequence * sequence, sequence, 1}; }
  Extents transposed_score_strides() const { return {heads * sequence * sequence, sequence * sequence, 1, sequence}; }
  Extents statistics() const { return {batch, heads, sequence, 1}; }
  Extents statistic_strides() const { return {heads * sequence, sequence, 1, 1}; }
};

/// Adds operations whose results are virtual tensors.
struct Chain {
  DnnGraph& graph;
  Layout layout;

  DnnTensor score(dnn::DataType type) { return graph.virtual_tensor(layout.scores(), layout.score_strides(), type); }
  DnnTensor statistic() { return graph.virtual_tensor(layout.statistics(), layout.statistic_strides(), dnn::kFloat); }
  DnnTensor product(const DnnTensor& a, const DnnTensor& b) {
    DnnTensor c = score(dnn::kFloat);
    graph.matmul(a, b, c);
    return c;
  }
  DnnTensor apply(dnn::Pointwise mode, const DnnTensor& x, const DnnTensor& b) {
    DnnTensor y = score(dnn::kFloat);
    graph.pointwise(mode, x, y, &b);
    return y;
  }
  DnnTensor apply(dnn::Pointwise mode, const DnnTensor& x) {
    DnnTensor y = score(dnn::kFloat);
    graph.pointwise(mode, x, y);
    return y;
  }
  DnnTensor index(const DnnTensor& x, std::int64_t axis) {
    DnnTensor y = score(dnn::kInt32);
    graph.pointwise(dnn::kGenerateIndex, x, y, nullptr, nullptr, dnn::kInt32, axis);
    return y;
  }
  /// Keeps values on and below the diagonal.
  DnnTensor mask(const DnnTensor& x, const DnnTensor& minus_infinity) {
    const DnnTensor rows = index(x, kRowAxis), columns = index(x, kColumnAxis);
    const DnnTensor keep = score(dnn::kBoolean);
    DnnTensor y = score(dnn::kFloat);
    graph.pointwise(dnn::kGreaterOrEqual, rows, keep, &columns, nullptr, dnn::kBoolean);
    graph.pointwise(dnn::kSelect, x, y, &minus_infinity, &keep);
    return y;
  }
  /// The same values with rows and columns exchanged, for a product.
  DnnTensor transpose(const DnnTensor& x) {
    DnnTensor y = graph.virtual_tensor(layout.scores(), layout.transposed_score_strides(), layout.type);
    graph.reshape(x, y);
    return y;
  }
};

/// Softmax of `x` over columns, and its statistics.
DnnTensor softmax(Chain& chain, const DnnTensor& x, const DnnTensor& stats) {
  DnnGraph& graph = chain.graph;
  const DnnTensor most = chain.statistic(), total = chain.statistic(), logarithm = chain.statistic();
  graph.reduce(dnn::kReduceMax, x, most);
  const DnnTensor exponentials = chain.apply(dnn::kExp, chain.apply(dnn::kSub, x, most));
  graph.reduce(dnn::kReduceAdd, exponentials, total);
  graph.pointwise(dnn::kLog, total, logarithm);
  graph.pointwise(dnn::kAdd, most, stats, &logarithm);
  DnnTensor y = chain.score(chain.layout.type);
  graph.pointwise(dnn::kDiv, exponentials, y, &total);
  return y;
}

// A gradient of keys or values: computed for each query head, then summed over the heads that share a key head.
DnnTensor shared_gradient(Chain& chain, const DnnTensor& a, const DnnTensor& b) {
  const Layout& layout = chain.layout;
  DnnGraph& graph = chain.graph;
  DnnTensor gradient = graph.tensor(layout.rows(layout.kv_heads), layout.row_strides(layout.kv_heads), layout.type);
  if (layout.heads == layout.kv_heads) {
    graph.matmul(a, b, gradient);
    return gradient;
  }
  const DnnTensor full = graph.virtual_tensor(layout.rows(layout.heads), layout.packed_strides(), layout.type);
  graph.matmul(a, b, full);
  graph.reduce(dnn::kReduceAdd, full, gradient);
  return gradient;
}

} // namespace

dnn::DataType data_type(Precision precision) {
  return precision == Precision::bf16 ? dnn::kBfloat16 : precision == Precision::fp16 ? dnn::kHalf : dnn::kFloat;
}

AttentionForward add_attention(DnnGraph& graph, const Kernel& kernel) {
  const Layout layout(kernel);
  AttentionForward at;
  at.q = graph.tensor(layout.rows(layout.heads), layout.row_strides(layout.heads), layout.type);
  at.k = graph.tensor(layout.rows(layout.kv_heads), layout.row_strides(layout.kv_heads), layout.type);
  at.v = graph.tensor(layout.rows(layout.kv_heads), layout.row_strides(layout.kv_heads), layout.type);
  at.o = graph.tensor(layout.rows(layout.heads), layout.row_strides(layout.heads), layout.type);
  at.stats = graph.tensor(layout.statistics(), layout.statistic_strides(), dnn::kFloat);
  at.scale = graph.scalar(dnn::kFloat);
  const Cudnn& dnn = graph.descriptor(at.q).api();
  graph.operation(DnnDescriptor(dnn, dnn::kSdpaForward)
                      .set(dnn::kSdpaForwardQ, graph.descriptor(at.q))
                      .set(dnn::kSdpaForwardK, graph.descriptor(at.k))
                      .set(dnn::kSdpaForwardV, graph.descriptor(at.v))
                      .set(dnn::kSdpaForwardO, graph.descriptor(at.o))
                      .set(dnn::kSdpaForwardStats, graph.descriptor(at.stats))
                      .set(dnn::kSdpaForwardScale, graph.descriptor(at.scale))
                      .finalize());
  return at;
}

AttentionForward add_attention_parts(DnnGraph& graph, const Kernel& kernel) {
  const Layout layout(kernel);
  Chain chain{graph, layout};
  AttentionForward at;
  at.q = graph.tensor(layout.rows(layout.heads), layout.row_strides(layout.heads), layout.type);
  at.k = graph.tensor(layout.transposed(layout.kv_heads), layout.transposed_strides(layout.kv_heads), layout.type);
  at.v = graph.tensor(layout.rows(layout.kv_heads), layout.row_strides(layout.kv_heads), layout.type);
  at.o = graph.tensor(layout.rows(layout.heads), layout.row_strides(layout.heads), layout.type);
  at.stats = graph.tensor(layout.statistics(), layout.statistic_strides(), dnn::kFloat);
  at.scale = graph.scalar(dnn::kFloat);
  DnnTensor scores = chain.apply(dnn::kMul, chain.product(at.q, at.k), at.scale);
  if (kernel.shape[5] > 0) {
    at.minus_infinity = graph.scalar(dnn::kFloat);
    scores = chain.mask(scores, at.minus_infinity);
  }
  graph.matmul(softmax(chain, scores, at.stats), at.v, at.o);
  return at;
}

AttentionBackward add_attention_backward(DnnGraph& graph, const Kernel& kernel) {
  const Layout layout(kernel);
  Chain chain{graph, layout};
  AttentionBackward at;
  const Extents rows = layout.rows(layout.heads), strides = layout.row_strides(layout.heads);
  at.q = graph.tensor(rows, strides, layout.type);
  at.k = graph.tensor(layout.transposed(layout.kv_heads), layout.transposed_strides(layout.kv_heads), layout.type);
  at.v = graph.tensor(layout.transposed(layout.kv_heads), layout.transposed_strides(layout.kv_heads), layout.type);
  at.o = graph.tensor(rows, strides, layout.type);
  at.d_o = graph.tensor(rows, strides, layout.type);
  at.stats = graph.tensor(layout.statistics(), layout.statistic_strides(), dnn::kFloat);
  at.scale = graph.scalar(dnn::kFloat);
  at.one = graph.scalar(dnn::kFloat);

  // For each row, the sum of dO times O.
  const DnnTensor products = graph.virtual_tensor(rows, strides, dnn::kFloat), row_sums = chain.statistic();
  graph.pointwise(dnn::kMul, at.d_o, products, &at.o);
  graph.reduce(dnn::kReduceAdd, products, row_sums);
  at.sums = graph.tensor(layout.statistics(), layout.statistic_strides(), dnn::kFloat);
  graph.pointwise(dnn::kMul, row_sums, at.sums, &at.one);

  // The probabilities again, and dV from them.
  DnnTensor scores = chain.apply(dnn::kMul, chain.product(at.q, at.k), at.scale);
  scores = chain.apply(dnn::kSub, scores, at.stats);
  if (kernel.shape[5] > 0) {
    at.minus_infinity = graph.scalar(dnn::kFloat);
    scores = chain.mask(scores, at.minus_infinity);
  }
  const DnnTensor probabilities = chain.apply(dnn::kExp, scores);
  at.dv = shared_gradient(chain, chain.transpose(probabilities), at.d_o);

  // The gradient of the scores, and dK and dQ from it.
  DnnTensor gradients = chain.apply(dnn::kSub, chain.product(at.d_o, at.v), at.sums);
  gradients = chain.apply(dnn::kMul, gradients, probabilities);
  const DnnTensor scaled = chain.score(layout.type);
  graph.pointwise(dnn::kMul, gradients, scaled, &at.scale);
  at.dk = shared_gradient(chain, chain.transpose(scaled), at.q);
  const DnnTensor keys =
      graph.virtual_tensor(layout.rows(layout.kv_heads), layout.row_strides(layout.kv_heads), layout.type);
  graph.reshape(at.k, keys);
  at.dq_sums = graph.tensor(rows, layout.packed_strides(), dnn::kFloat);
  graph.matmul(scaled, keys, at.dq_sums);
  at.dq = graph.tensor(rows, strides, layout.type);
  graph.pointwise(dnn::kIdentity, at.dq_sums, at.dq);
  return at;
}

} // namespace stagecraft::gpu
