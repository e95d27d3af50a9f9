// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/depthwise.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/instructions.hpp"
#include "sim/workload/layer/kernel_list.hpp"

namespace stagecraft {
namespace {

// Of [images, channels in, height, width, channels out, kernel height and width, stride, padding, groups].
enum Dimension { kImages, kIn, kHeight, kWidth, kOut, kKernelHeight, kKernelWidth, kStride, kPadding, kGroups };

double extent(const KernelCall& call, Dimension dimension) { return call.shape[dimension]; }

double outputs_along(const KernelCall& call, Dimension image, Dimension kernel) {
  return std::floor((extent(call, image) + 2 * extent(call, kPadding) - extent(call, kernel)) / extent(call, kStride)) +
         1;
}

// Instructions of a pass over one sample. A value written takes those that find its place, three or four divisions of
// integers, and for each tap those that find the element, see whether it is in the image, load it and its weight, and
// multiply; the gradient of the input sees as well whether the stride meets an output there. The gradient of a weight
// is a sum by a block of threads of its own for each tap, which divide for each element.
double instructions(const KernelCall& call, KernelPass which) {
  constexpr double kPlace = 120, kTap = 15, kTapBackward = 20, kElement = 60;
  const double taps = extent(call, kKernelHeight) * extent(call, kKernelWidth);
  const double read = extent(call, kImages) * extent(call, kIn) * extent(call, kHeight) * extent(call, kWidth);
  const double written = extent(call, kImages) * extent(call, kOut) * outputs_along(call, kHeight, kKernelHeight) *
                         outputs_along(call, kWidth, kKernelWidth);
  switch (which) {
  case KernelPass::forward:
    return written * (kPlace + taps * kTap);
  case KernelPass::backward_input:
    return read * (kPlace + taps * kTapBackward);
  default:
    return written * taps * kElement;
  }
}

// In 16 bits and with channels last PyTorch takes cuDNN's kernels, so much faster than its own in the geometric mean of
// its benchmark on an A100 (its pull request 91735).
double faster_in_16_bits(KernelPass which) { return which == KernelPass::forward ? 1.23 : 1.30; }

} // namespace

bool is_depthwise(const Operator& what, const Pass& pass) {
  return what.kind == KernelKind::convolution && pass.calls.size() == 1 &&
         pass.calls.front().op == KernelOp::convolution && extent(pass.calls.front(), kGroups) > 1 &&
         extent(pass.calls.front(), kGroups) == extent(pass.calls.front(), kIn);
}

std::optional<Seconds> depthwise_time(const Operator& what, const Pass& pass, KernelPass which, const DeviceType& type,
                                      double samples, Precision precision, const Shard& shard) {
  const std::optional<double> rate = is_depthwise(what, pass) ? instructions_issued(type) : std::nullopt;
  if (!rate) {
    return std::nullopt;
  }
  const double bytes = row_of(precision).bytes;
  const double faster = bytes < row_of(Precision::fp32).bytes ? faster_in_16_bits(which) : 1;
  const Seconds computing{samples * instructions(pass.calls.front(), which) / (*rate * faster * shard.degree)};
  const Bytes traffic{(samples * pass.moved_elements * shard.activations + pass.moved_parameters) * bytes};
  return pass.kernels * type.launch_overhead + std::max(computing, traffic / type.memory_bandwidth);
}

} // namespace stagecraft
