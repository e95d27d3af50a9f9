// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/onnx_operators.hpp"

#include <algorithm>
#include <array>

namespace stagecraft {
namespace {

constexpr int kAll = 1'000'000;

[[noreturn]] void refuse(const OnnxOperands& operands, const std::string& problem) {
  throw InputError(operands.where, "node '" + operands.node.name + "' (" + operands.node.type + "): " + problem);
}

const Shape& shape_at(const OnnxOperands& operands, size_t input, size_t least_rank) {
  if (input >= operands.shapes.size() || operands.shapes[input].size() < least_rank) {
    refuse(operands, "input " + std::to_string(input) + " is missing or has fewer than " + std::to_string(least_rank) +
                         " dimensions");
  }
  return operands.shapes[input];
}

double at(const Shape& shape, size_t i) { return static_cast<double>(shape[i]); }

std::int64_t attribute(const OnnxOperands& operands, const std::string& name, std::int64_t otherwise) {
  const auto found = operands.node.attributes.find(name);
  return found == operands.node.attributes.end() || found->second.empty() ? otherwise : found->second.front();
}

std::string_view prepare_nothing(const OnnxOperands&, Layer&) { return ""; }

// Weights are [channels out, channels in / groups, kernel...].
std::string_view prepare_convolution(const OnnxOperands& operands, Layer& layer) {
  const Shape& weights = shape_at(operands, 1, 3);
  const std::int64_t groups = attribute(operands, "group", 1);
  if (groups < 1 || groups > weights[0]) {
    refuse(operands, "group " + std::to_string(groups) + "; allowed: 1 to the channels out");
  }
  layer.groups = static_cast<int>(groups);
  layer.features = at(weights, 0);
  layer.features_in = at(weights, 1) * layer.groups;
  layer.kernel.clear();
  for (size_t i = 2; i < weights.size(); ++i) {
    layer.kernel.push_back(static_cast<int>(weights[i]));
  }
  layer.stride[0] = layer.stride[1] = static_cast<int>(attribute(operands, "strides", 1));
  layer.padding[0] = layer.padding[1] = static_cast<int>(attribute(operands, "pads", 0));
  layer.dilation[0] = layer.dilation[1] = static_cast<int>(attribute(operands, "dilations", 1));
  layer.bias = operands.is_constant(2);
  return "";
}

// y = A B, where A, B or neither is a weight.
std::string_view prepare_product(const OnnxOperands& operands, Layer& layer, bool transpose_a, bool transpose_b) {
  const Shape& a = shape_at(operands, 0, 1);
  const Shape& b = shape_at(operands, 1, 1);
  layer.kernel = {};
  layer.features_in = transpose_a ? at(a, 0) : at(a, a.size() - 1);
  if (!operands.is_constant(0) && !operands.is_constant(1)) {
    return "matmul";
  }
  layer.features =
      operands.is_constant(0) ? elements_of(a) / layer.features_in : (transpose_b ? at(b, 0) : at(b, b.size() - 1));
  layer.bias = operands.is_constant(2);
  return "";
}

std::string_view prepare_matmul(const OnnxOperands& operands, Layer& layer) {
  return prepare_product(operands, layer, false, false);
}

std::string_view prepare_gemm(const OnnxOperands& operands, Layer& layer) {
  shape_at(operands, 0, 2);
  shape_at(operands, 1, 2);
  return prepare_product(operands, layer, attribute(operands, "transA", 0) != 0, attribute(operands, "transB", 0) != 0);
}

std::string_view prepare_norm(const OnnxOperands& operands, Layer& layer) {
  layer.features_in = elements_of(shape_at(operands, 1, 1));
  return "";
}

std::string_view prepare_response_norm(const OnnxOperands& operands, Layer& layer) {
  layer.kernel = {static_cast<int>(attribute(operands, "size", 1))};
  return "";
}

std::string_view prepare_pool(const OnnxOperands& operands, Layer& layer) {
  constexpr std::int64_t kLargestWindow = 1'000'000;
  const auto found = operands.node.attributes.find("kernel_shape");
  if (found == operands.node.attributes.end()) {
    refuse(operands, "it has no kernel_shape");
  }
  layer.kernel.clear();
  for (const std::int64_t size : found->second) {
    if (size < 1 || size > kLargestWindow) {
      refuse(operands, "kernel_shape " + to_text(found->second) + "; allowed: sizes from 1 to 1000000");
    }
    layer.kernel.push_back(static_cast<int>(size));
  }
  return "";
}

// A reduction, costed like a pooling whose window covers all elements that go into one output.
std::string_view prepare_reduction(const OnnxOperands& operands, Layer& layer) {
  const double window = elements_of(shape_at(operands, 0, 0)) / elements_of(layer.output);
  layer.kernel = {static_cast<int>(std::min(window, 1e9))};
  return "";
}

// A gather from a constant table is an embedding; from data it is a selection.
std::string_view prepare_gather(const OnnxOperands& operands, Layer& layer) {
  if (!operands.is_constant(0)) {
    return "slice";
  }
  const Shape& table = shape_at(operands, 0, 1);
  layer.vocabulary = at(table, 0);
  layer.features = elements_of(table) / layer.vocabulary;
  return "";
}

// Weights are [directions, 4 hidden, features]; the input is [sequence, batch, features].
std::string_view prepare_lstm(const OnnxOperands& operands, Layer& layer) {
  const Shape& input = shape_at(operands, 0, 3);
  const Shape& weights = shape_at(operands, 1, 3);
  layer.bidirectional = weights[0] == 2;
  layer.features = at(weights, 1) / 4;
  layer.features_in = at(weights, 2);
  layer.sequence = at(input, 0);
  layer.bias = operands.is_constant(3);
  return "";
}

// X + skip, then the norm of the sum: the scale is the third input.
std::string_view prepare_skip_norm(const OnnxOperands& operands, Layer& layer) {
  layer.features_in = elements_of(shape_at(operands, 2, 1));
  return "";
}

// The input is queries or keys alone, and all of it turns unless an attribute says less.
std::string_view prepare_rotary(const OnnxOperands& operands, Layer& layer) {
  const Shape& input = shape_at(operands, 0, 3);
  const auto heads = static_cast<double>(std::max<std::int64_t>(1, attribute(operands, "num_heads", 1)));
  const double width = input.size() > 3 ? at(input, 3) : at(input, 2) / heads;
  const std::int64_t turned = attribute(operands, "rotary_embedding_dim", 0);
  const double part = turned > 0 ? std::min(1.0, static_cast<double>(turned) / width) : 1;
  layer.features = at(input, input.size() - 1) * part;
  layer.sequence = elements_of(input) / at(input, input.size() - 1);
  return "";
}

// Queries are [batch, tokens, heads * width], or [batch, heads, tokens, width]; keys and values likewise. As one
// sequence of the batch's: its samples are documents.
void prepare_attention(const OnnxOperands& operands, Layer& layer, std::int64_t heads, bool causal) {
  constexpr std::int64_t kMostSamples = 1 << 20;
  const Shape& query = shape_at(operands, 0, 3);
  const Shape& key = shape_at(operands, 1, 3);
  const bool apart = query.size() > 3;
  const std::int64_t tokens = query[apart ? 2 : 1];
  layer.heads = static_cast<int>(apart ? query[1] : heads);
  const std::int64_t shared = apart && key.size() > 3 ? key[1] : attribute(operands, "kv_num_heads", layer.heads);
  if (layer.heads < 1 || shared < 1 || layer.heads % shared != 0 || query[0] > kMostSamples || query.size() > 4 ||
      query.size() != key.size()) {
    refuse(operands, "queries " + to_text(query) + " of " + std::to_string(layer.heads) + " heads and keys " +
                         to_text(key) + " of " + std::to_string(shared) +
                         "; allowed: [batch, tokens, heads * width] or [batch, heads, tokens, width]");
  }
  layer.key_value_heads = static_cast<int>(shared);
  layer.causal = causal;
  layer.sequence = at(query, 0) * static_cast<double>(tokens);
  layer.positions = at(key, apart ? 2 : 1);
  layer.features_in = elements_of(query) / layer.sequence;
  layer.features = elements_of(layer.output) / layer.sequence;
  if (causal) {
    layer.documents.assign(static_cast<std::size_t>(query[0]), static_cast<int>(tokens));
  }
}

std::string_view prepare_standard_attention(const OnnxOperands& operands, Layer& layer) {
  prepare_attention(operands, layer, attribute(operands, "q_num_heads", 0), attribute(operands, "is_causal", 0) != 0);
  return "";
}

std::string_view prepare_multi_head_attention(const OnnxOperands& operands, Layer& layer) {
  prepare_attention(operands, layer, attribute(operands, "num_heads", 0),
                    attribute(operands, "unidirectional", 0) != 0);
  return "";
}

// Always causal; a window of -1 is none.
std::string_view prepare_group_query_attention(const OnnxOperands& operands, Layer& layer) {
  prepare_attention(operands, layer, attribute(operands, "num_heads", 0), true);
  const std::int64_t window = attribute(operands, "local_window_size", -1);
  layer.window = window > 0 && window < kAll ? static_cast<int>(window) : 0;
  return "";
}

constexpr OnnxOperator unary(std::string_view type) { return {type, "gelu", prepare_nothing, 0, -1}; }
constexpr OnnxOperator in_place(std::string_view type) { return {type, "relu", prepare_nothing, 0, -1}; }
constexpr OnnxOperator copy(std::string_view type) { return {type, "slice", prepare_nothing, 0, -1}; }
constexpr OnnxOperator view(std::string_view type) { return {type, "reshape", prepare_nothing, 0, -1}; }
constexpr OnnxOperator sum(std::string_view type, int last_weight) {
  return {type, "add", prepare_nothing, 0, last_weight};
}
constexpr OnnxOperator product(std::string_view type) { return {type, "mul", prepare_nothing, 0, kAll}; }
constexpr OnnxOperator reduction(std::string_view type) { return {type, "global_avg_pool", prepare_reduction, 0, -1}; }

constexpr std::array kOperators = {
    OnnxOperator{"Conv", "conv2d", prepare_convolution, 1, 2},
    OnnxOperator{"Gemm", "linear", prepare_gemm, 0, 2},
    OnnxOperator{"MatMul", "linear", prepare_matmul, 0, 1},
    OnnxOperator{"LSTM", "lstm", prepare_lstm, 1, 3},
    OnnxOperator{"Gather", "embedding", prepare_gather, 0, 0},
    OnnxOperator{"BatchNormalization", "batch_norm", prepare_norm, 1, 2},
    OnnxOperator{"InstanceNormalization", "batch_norm", prepare_norm, 1, 2},
    OnnxOperator{"GroupNormalization", "layer_norm", prepare_norm, 1, 2},
    OnnxOperator{"LayerNormalization", "layer_norm", prepare_norm, 1, 2},
    OnnxOperator{"RMSNormalization", "rms_norm", prepare_norm, 1, 1},
    OnnxOperator{"SimplifiedLayerNormalization", "rms_norm", prepare_norm, 1, 1},
    OnnxOperator{"com.microsoft.SimplifiedLayerNormalization", "rms_norm", prepare_norm, 1, 1},
    OnnxOperator{"com.microsoft.SkipSimplifiedLayerNormalization", "rms_norm", prepare_skip_norm, 2, 2},
    OnnxOperator{"com.microsoft.SkipLayerNormalization", "layer_norm", prepare_skip_norm, 2, 3},
    OnnxOperator{"RotaryEmbedding", "rotary", prepare_rotary, 0, -1},
    OnnxOperator{"com.microsoft.RotaryEmbedding", "rotary", prepare_rotary, 0, -1},
    OnnxOperator{"Attention", "attention", prepare_standard_attention, 0, -1},
    OnnxOperator{"com.microsoft.MultiHeadAttention", "attention", prepare_multi_head_attention, 0, -1},
    OnnxOperator{"com.microsoft.GroupQueryAttention", "attention", prepare_group_query_attention, 0, -1},
    OnnxOperator{"LRN", "lrn", prepare_response_norm, 0, -1},
    OnnxOperator{"MaxPool", "max_pool", prepare_pool, 0, -1},
    OnnxOperator{"AveragePool", "avg_pool", prepare_pool, 0, -1},
    OnnxOperator{"Softmax", "softmax", prepare_nothing, 0, -1},
    OnnxOperator{"LogSoftmax", "softmax", prepare_nothing, 0, -1},
    OnnxOperator{"Dropout", "dropout", prepare_nothing, 0, -1},
    OnnxOperator{"Concat", "concat", prepare_nothing, 0, -1},
    OnnxOperator{"Transpose", "transpose", prepare_nothing, 0, -1},
    OnnxOperator{"PRelu", "mul", prepare_nothing, 1, 1},
    reduction("GlobalAveragePool"),
    reduction("GlobalMaxPool"),
    reduction("ReduceMean"),
    reduction("ReduceSum"),
    reduction("ReduceMax"),
    reduction("ReduceMin"),
    reduction("ReduceProd"),
    reduction("ReduceL2"),
    reduction("ReduceSumSquare"),
    reduction("ArgMax"),
    reduction("ArgMin"),
    sum("Add", kAll),
    sum("Sub", kAll),
    sum("Sum", kAll),
    sum("Max", -1),
    sum("Min", -1),
    sum("Mean", -1),
    sum("Where", -1),
    sum("Equal", -1),
    sum("Less", -1),
    sum("LessOrEqual", -1),
    sum("Greater", -1),
    sum("GreaterOrEqual", -1),
    sum("And", -1),
    sum("Or", -1),
    sum("Xor", -1),
    sum("Mod", -1),
    product("Mul"),
    product("Div"),
    in_place("Relu"),
    in_place("LeakyRelu"),
    in_place("Sigmoid"),
    in_place("Tanh"),
    in_place("Clip"),
    in_place("Elu"),
    in_place("Exp"),
    in_place("Sqrt"),
    in_place("Reciprocal"),
    in_place("HardSigmoid"),
    in_place("Selu"),
    unary("Gelu"),
    unary("Erf"),
    unary("Pow"),
    unary("HardSwish"),
    unary("Mish"),
    unary("Softplus"),
    unary("Softsign"),
    unary("Celu"),
    unary("Log"),
    unary("Abs"),
    unary("Sin"),
    unary("Cos"),
    unary("CumSum"),
    copy("Neg"),
    copy("Not"),
    copy("Cast"),
    copy("CastLike"),
    copy("Floor"),
    copy("Ceil"),
    copy("Round"),
    copy("Sign"),
    copy("IsNaN"),
    copy("Split"),
    copy("Slice"),
    copy("Pad"),
    copy("Tile"),
    copy("Expand"),
    copy("Resize"),
    copy("Upsample"),
    copy("DepthToSpace"),
    copy("SpaceToDepth"),
    copy("GatherElements"),
    copy("GatherND"),
    copy("ScatterElements"),
    copy("ScatterND"),
    copy("Trilu"),
    copy("OneHot"),
    view("Reshape"),
    view("Flatten"),
    view("Squeeze"),
    view("Unsqueeze"),
    view("Identity"),
};

} // namespace

std::span<const OnnxOperator> onnx_operators() { return kOperators; }

} // namespace stagecraft
