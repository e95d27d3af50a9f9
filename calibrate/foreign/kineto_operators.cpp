// SPDX-License-Identifier: Apache-2.0
#include "calibrate/foreign/kineto_operators.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "sim/base/named_table.hpp"

namespace stagecraft::foreign {
namespace {

using Dims = std::vector<double>;

// Thrown with the reason why a call is no kernel of ours.
struct NoKernel {
  std::string reason;
};

const OperatorInput& input_of(const OperatorCall& call, std::size_t index) {
  if (index >= call.inputs.size()) {
    throw NoKernel{call.inputs.empty() ? "no shapes recorded" : "fewer inputs than known"};
  }
  return call.inputs[index];
}

const Dims& dims_of(const OperatorCall& call, std::size_t index, std::size_t least = 1) {
  const Dims& dims = input_of(call, index).dims;
  if (dims.size() < least) {
    throw NoKernel{"inputs without a shape"};
  }
  if (std::any_of(dims.begin(), dims.end(), [](double d) { return !(d >= 1 && d <= 1e12); })) {
    throw NoKernel{"empty tensors"};
  }
  return dims;
}

double product(const Dims& dims) {
  double count = 1;
  for (const double dim : dims) {
    count *= dim;
  }
  return count;
}

// "[3, 1]" or "(3,1)" as two numbers; a single number counts for both axes.
std::vector<double> pair_of(const OperatorCall& call, std::size_t index) {
  std::vector<double> values;
  const std::string& text = input_of(call, index).value;
  for (std::size_t at = text.find_first_of("0123456789"); at != std::string::npos;
       at = text.find_first_of("0123456789", at)) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    if (end - at > 9) {
      throw NoKernel{"windows without a size"};
    }
    values.push_back(std::stod(text.substr(at, end - at)));
    at = end;
  }
  if (values.empty()) {
    throw NoKernel{"no Concrete Inputs recorded"};
  }
  if (values.front() != values.back()) {
    throw NoKernel{"windows unlike in their two directions"};
  }
  return values;
}

bool flag_of(const OperatorCall& call, std::size_t index) {
  const std::string& text = input_of(call, index).value;
  if (text.empty()) {
    throw NoKernel{"no Concrete Inputs recorded"};
  }
  return text == "True" || text == "true" || text == "1";
}

// The precision of a product. In fp32 it may have run in tf32, which only the kernel's name shows.
Precision precision_of(const OperatorCall& call, std::size_t index) {
  const std::string& type = input_of(call, index).type;
  if (type == "c10::BFloat16") {
    return Precision::bf16;
  }
  if (type == "c10::Half") {
    return Precision::fp16;
  }
  if (type != "float") {
    throw NoKernel{type.empty() ? "no types recorded" : "tensors of " + type};
  }
  const bool tf32 = std::any_of(call.kernels.begin(), call.kernels.end(), [](const TraceKernel& kernel) {
    return kernel.name.find("tf32") != std::string::npos || kernel.name.find("tensorop_s1688") != std::string::npos;
  });
  return tf32 ? Precision::tf32 : Precision::fp32;
}

KernelShape shape(std::initializer_list<double> extents) {
  KernelShape shape{};
  std::copy(extents.begin(), extents.end(), shape.begin());
  return shape;
}

using Kernels = std::vector<Kernel>;

// Whether the last two axes are swapped in memory; nothing if no strides were recorded.
std::optional<bool> transposed(const OperatorInput& input) {
  const Dims& strides = input.strides;
  if (strides.size() != input.dims.size() || strides.size() < 2) {
    return std::nullopt;
  }
  return strides.back() != 1 && strides[strides.size() - 2] == 1;
}

// The pass of a product follows from how its operands are stored. Weights are output x input, so forward has their
// transpose; the weight's gradient has the transpose of the output's gradient.
KernelPass pass_of(const OperatorCall& call, const OperatorInput& a, const OperatorInput& b) {
  if (a.dims.size() == 3) {
    return call.in_backward ? KernelPass::backward_input : KernelPass::forward;
  }
  const std::optional<bool> first = transposed(a), second = transposed(b);
  if (!first || !second) {
    if (call.in_backward) {
      throw NoKernel{"products of backward without Input Strides"};
    }
    return KernelPass::forward;
  }
  return *first             ? KernelPass::backward_weight
         : *second          ? KernelPass::forward
         : call.in_backward ? KernelPass::backward_input
                            : KernelPass::forward;
}

// A x B, with A at `first`. For addmm, what is added comes before.
Kernels product_of(const OperatorCall& call, std::size_t first) {
  const Dims& a = dims_of(call, first, 2);
  const Dims& b = dims_of(call, first + 1, 2);
  const std::size_t axes = a.size();
  if (axes > 3 || b.size() != axes || a[axes - 1] != b[axes - 2] || (axes == 3 && a[0] != b[0])) {
    throw NoKernel{"shapes that are no product"};
  }
  const KernelPass pass = pass_of(call, call.inputs[first], call.inputs[first + 1]);
  return {{KernelOp::gemm, pass, precision_of(call, first),
           shape({axes == 3 ? a[0] : 1, a[axes - 2], b[axes - 1], a[axes - 1]})}};
}

// Positions of a convolution's arguments.
struct ConvolutionArguments {
  std::size_t input, weight, stride, padding, dilation, groups;
};

Kernel convolution_of(const OperatorCall& call, const ConvolutionArguments& at, KernelPass pass) {
  const Dims& x = dims_of(call, at.input, 4);
  const Dims& w = dims_of(call, at.weight, 4);
  const double stride = pair_of(call, at.stride).front(), padding = pair_of(call, at.padding).front();
  const double groups = pair_of(call, at.groups).front();
  if (x.size() != 4 || w.size() != 4 || pair_of(call, at.dilation).front() != 1) {
    throw NoKernel{"dilated, or not of images"};
  }
  if (w[1] * groups != x[1] || stride < 1 || w[2] > x[2] + 2 * padding || w[3] > x[3] + 2 * padding) {
    throw NoKernel{"shapes that are no convolution"};
  }
  return {KernelOp::convolution, pass, precision_of(call, at.input),
          shape({x[0], x[1], x[2], x[3], w[0], w[2], w[3], stride, padding, groups})};
}

Kernels convolution_forward(const OperatorCall& call) {
  if (call.name == "aten::cudnn_convolution" || call.name == "aten::miopen_convolution") {
    const bool with_bias = call.name == "aten::miopen_convolution";
    return {with_bias ? convolution_of(call, {0, 1, 4, 3, 5, 6}, KernelPass::forward)
                      : convolution_of(call, {0, 1, 3, 2, 4, 5}, KernelPass::forward)};
  }
  if (flag_of(call, 6)) {
    throw NoKernel{"transposed"};
  }
  return {convolution_of(call, {0, 1, 3, 4, 5, 8}, KernelPass::forward)};
}

// The gradients that one call makes, as its mask says.
Kernels convolution_backward(const OperatorCall& call) {
  if (flag_of(call, 7)) {
    throw NoKernel{"transposed"};
  }
  const std::string& mask = input_of(call, 10).value;
  const std::size_t comma = std::min(mask.find(','), mask.size());
  const std::string input = mask.substr(0, comma), weight = mask.substr(comma, mask.find(',', comma + 1) - comma);
  Kernels kernels;
  for (const auto& [text, pass] :
       {std::pair{input, KernelPass::backward_input}, std::pair{weight, KernelPass::backward_weight}}) {
    if (mask.empty() || text.find("rue") != std::string::npos || text.find('1') != std::string::npos) {
      kernels.push_back(convolution_of(call, {1, 2, 4, 5, 6, 9}, pass));
    }
  }
  if (kernels.empty()) {
    throw NoKernel{"neither gradient asked for"};
  }
  return kernels;
}

// Positions of attention's arguments, and whether the heads axis comes before the positions axis.
struct AttentionRow {
  std::string_view name;
  std::size_t query, causal;
  bool heads_first;
  KernelPass pass;
};
constexpr std::array kAttentions = {
    AttentionRow{"aten::_flash_attention_forward", 0, 8, false, KernelPass::forward},
    AttentionRow{"aten::_flash_attention_backward", 1, 11, false, KernelPass::backward_input},
    AttentionRow{"aten::_efficient_attention_forward", 0, 9, false, KernelPass::forward},
    AttentionRow{"aten::_efficient_attention_backward", 1, 14, false, KernelPass::backward_input},
    AttentionRow{"aten::_cudnn_attention_forward", 0, 10, true, KernelPass::forward},
    AttentionRow{"aten::_cudnn_attention_backward", 1, 14, true, KernelPass::backward_input},
    AttentionRow{"aten::_scaled_dot_product_cudnn_attention", 0, 6, true, KernelPass::forward},
    AttentionRow{"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, true, KernelPass::backward_input},
    AttentionRow{"aten::_scaled_dot_product_flash_attention", 0, 4, true, KernelPass::forward},
    AttentionRow{"aten::_scaled_dot_product_flash_attention_backward", 1, 11, true, KernelPass::backward_input},
    AttentionRow{"aten::_scaled_dot_product_efficient_attention", 0, 6, true, KernelPass::forward},
    AttentionRow{"aten::_scaled_dot_product_efficient_attention_backward", 1, 11, true, KernelPass::backward_input}};

Kernels attention_of(const OperatorCall& call, const AttentionRow& row) {
  const Dims& query = dims_of(call, row.query, 4);
  const Dims& key = dims_of(call, row.query + 1, 4);
  const std::size_t sequence = row.heads_first ? 2 : 1, heads = row.heads_first ? 1 : 2;
  if (query.size() != 4 || key.size() != 4 || query[sequence] != key[sequence] || query[3] != key[3] ||
      query[0] != key[0]) {
    throw NoKernel{"queries and keys of unlike shapes"};
  }
  return {
      {KernelOp::attention, row.pass, precision_of(call, row.query),
       shape({query[0], query[sequence], query[heads], key[heads], query[3], flag_of(call, row.causal) ? 1.0 : 0.0})}};
}

Kernel rows_of(const OperatorCall& call, KernelOp op, KernelPass pass, const Dims& dims, double columns) {
  return {op, pass, precision_of(call, 0), shape({product(dims) / columns, columns})};
}

// An op that makes one element of output for each element of its first input.
Kernels elementwise(const OperatorCall& call, KernelOp op, KernelPass pass) {
  const Dims& dims = dims_of(call, 0);
  return {rows_of(call, op, pass, dims, dims.back())};
}

// An op on two tensors of the same shape.
Kernels of_equal_tensors(const OperatorCall& call, KernelOp op) {
  const Dims& dims = dims_of(call, 0);
  if (input_of(call, 1).dims != dims || call.inputs[1].type != call.inputs[0].type) {
    throw NoKernel{"operands unlike in shape or type"};
  }
  return elementwise(call, op, KernelPass::forward);
}

Kernels clamp(const OperatorCall& call) {
  const std::string& least = input_of(call, 1).value;
  if (!least.empty() && least.find_first_not_of("0.") != std::string::npos) {
    throw NoKernel{"not from 0 on"};
  }
  return elementwise(call, KernelOp::relu, KernelPass::forward);
}

// Weights, if there are any, have the shape of the normalised axes.
Kernels layer_norm(const OperatorCall& call, std::size_t input, std::size_t weight, KernelPass pass) {
  const Dims& dims = dims_of(call, input);
  const Dims weights = weight < call.inputs.size() ? call.inputs[weight].dims : Dims{};
  return {rows_of(call, KernelOp::layer_norm, pass, dims, weights.empty() ? dims.back() : product(weights))};
}

// The second axis holds the channels.
Kernels batch_norm(const OperatorCall& call, KernelPass pass) {
  const Dims& dims = dims_of(call, 0, 2);
  return {rows_of(call, KernelOp::batch_norm, pass, dims, dims[1])};
}

Kernels softmax(const OperatorCall& call, std::size_t axis, KernelPass pass) {
  const Dims& dims = dims_of(call, 0);
  const std::string& text = input_of(call, axis).value;
  if (!text.empty() && text != "-1" && text != std::to_string(dims.size() - 1)) {
    throw NoKernel{"not over the last axis"};
  }
  return {rows_of(call, KernelOp::softmax, pass, dims, dims.back())};
}

Kernels index_select(const OperatorCall& call) {
  const Dims& table = dims_of(call, 0, 2);
  const Dims& rows = dims_of(call, 2);
  const std::string& axis = input_of(call, 1).value;
  if (table.size() != 2 || (!axis.empty() && axis != "0")) {
    throw NoKernel{"not of a table's rows"};
  }
  return {{KernelOp::embedding, KernelPass::forward, precision_of(call, 0), shape({product(rows), table[1]})}};
}

Kernels sum(const OperatorCall& call) {
  if (call.inputs.size() > 2) {
    throw NoKernel{"over some axes only"};
  }
  return elementwise(call, KernelOp::sum, KernelPass::forward);
}

struct OperatorRow {
  std::string_view name;
  Kernels (*kernels)(const OperatorCall& call);
};
using Call = const OperatorCall&;
constexpr auto kForward = KernelPass::forward, kBackward = KernelPass::backward_input;
constexpr std::array kOperators = {
    OperatorRow{"aten::mm", [](Call c) { return product_of(c, 0); }},
    OperatorRow{"aten::bmm", [](Call c) { return product_of(c, 0); }},
    OperatorRow{"aten::addmm", [](Call c) { return product_of(c, 1); }},
    OperatorRow{"aten::_addmm_activation", [](Call c) { return product_of(c, 1); }},
    OperatorRow{"aten::baddbmm", [](Call c) { return product_of(c, 1); }},
    OperatorRow{"aten::cudnn_convolution", convolution_forward},
    OperatorRow{"aten::miopen_convolution", convolution_forward},
    OperatorRow{"aten::convolution", convolution_forward},
    OperatorRow{"aten::_convolution", convolution_forward},
    OperatorRow{"aten::convolution_backward", convolution_backward},
    OperatorRow{"aten::add", [](Call c) { return of_equal_tensors(c, KernelOp::add); }},
    OperatorRow{"aten::add_", [](Call c) { return of_equal_tensors(c, KernelOp::add); }},
    OperatorRow{"aten::copy_", [](Call c) { return of_equal_tensors(c, KernelOp::copy); }},
    OperatorRow{"aten::clamp_min", clamp},
    OperatorRow{"aten::clamp_min_", clamp},
    OperatorRow{"aten::relu", [](Call c) { return elementwise(c, KernelOp::relu, kForward); }},
    OperatorRow{"aten::relu_", [](Call c) { return elementwise(c, KernelOp::relu, kForward); }},
    OperatorRow{"aten::threshold_backward", [](Call c) { return elementwise(c, KernelOp::relu, kBackward); }},
    OperatorRow{"aten::gelu", [](Call c) { return elementwise(c, KernelOp::gelu, kForward); }},
    OperatorRow{"aten::gelu_backward", [](Call c) { return elementwise(c, KernelOp::gelu, kBackward); }},
    OperatorRow{"aten::native_dropout", [](Call c) { return elementwise(c, KernelOp::dropout, kForward); }},
    OperatorRow{"aten::native_dropout_backward", [](Call c) { return elementwise(c, KernelOp::dropout, kBackward); }},
    OperatorRow{"aten::native_layer_norm", [](Call c) { return layer_norm(c, 0, 2, kForward); }},
    OperatorRow{"aten::native_layer_norm_backward", [](Call c) { return layer_norm(c, 1, 5, kBackward); }},
    OperatorRow{"aten::cudnn_batch_norm", [](Call c) { return batch_norm(c, kForward); }},
    OperatorRow{"aten::native_batch_norm", [](Call c) { return batch_norm(c, kForward); }},
    OperatorRow{"aten::cudnn_batch_norm_backward", [](Call c) { return batch_norm(c, kBackward); }},
    OperatorRow{"aten::native_batch_norm_backward", [](Call c) { return batch_norm(c, kBackward); }},
    OperatorRow{"aten::_softmax", [](Call c) { return softmax(c, 1, kForward); }},
    OperatorRow{"aten::_softmax_backward_data", [](Call c) { return softmax(c, 2, kBackward); }},
    OperatorRow{"aten::index_select", index_select},
    OperatorRow{"aten::embedding_dense_backward",
                [](Call c) { return elementwise(c, KernelOp::embedding, KernelPass::backward_weight); }},
    OperatorRow{"aten::sum", sum},
};

Kernels kernels_of(const OperatorCall& call) {
  for (const OperatorRow& row : kOperators) {
    if (row.name == call.name) {
      return row.kernels(call);
    }
  }
  for (const AttentionRow& row : kAttentions) {
    if (row.name == call.name) {
      return attention_of(call, row);
    }
  }
  throw NoKernel{"no kernel of ours"};
}

// Which gradient a cuDNN kernel computes; nothing if its name does not show it.
std::optional<KernelPass> gradient_of(const std::string& name) {
  const bool input = name.find("dgrad") != std::string::npos;
  const bool weight = name.find("wgrad") != std::string::npos;
  return input == weight ? std::nullopt
                         : std::optional(input ? KernelPass::backward_input : KernelPass::backward_weight);
}

CallTimes share_out(const OperatorCall& call, const Kernels& kernels) {
  CallTimes out;
  for (const Kernel& kernel : kernels) {
    out.times.push_back({kernel, Seconds{0}});
  }
  for (const TraceKernel& kernel : call.kernels) {
    const std::optional<KernelPass> pass =
        kernels.size() == 1 ? std::optional(kernels.front().pass) : gradient_of(kernel.name);
    const auto own = std::find_if(out.times.begin(), out.times.end(),
                                  [&](const KernelTime& time) { return pass && time.kernel.pass == *pass; });
    if (own == out.times.end()) {
      return {{}, "both gradients, in kernels whose names do not tell which"};
    }
    own->time += kernel.time;
  }
  std::erase_if(out.times, [](const KernelTime& time) { return time.time.value <= 0; });
  return out.times.empty() ? CallTimes{{}, "no time at all"} : out;
}

} // namespace

CallTimes times_of(const OperatorCall& call) {
  try {
    return share_out(call, kernels_of(call));
  } catch (const NoKernel& none) {
    return {{}, none.reason};
  }
}

} // namespace stagecraft::foreign
