// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/fits/like_kernels.hpp"

#include <algorithm>

namespace stagecraft {

const KernelFit* find_fit(const KernelFits& fits, const Kernel& kernel, std::string_view variant) {
  const auto found = std::find_if(fits.kernels.begin(), fits.kernels.end(), [&](const KernelFit& fit) {
    return fit.op == kernel.op && fit.pass == kernel.pass && fit.precision == kernel.precision &&
           fit.variant == variant;
  });
  return found != fits.kernels.end() ? &*found : nullptr;
}

double processors_of(const KernelFits& fits) {
  return std::max(1.0, fits.processors * (fits.scale ? fits.scale->processors : 1));
}

double more_work(const Kernel& kernel, const Kernel& like) {
  const double arithmetic = flops_of(like).value > 0 ? flops_of(kernel) / flops_of(like) : 1;
  const double data = bytes_of(like).value > 0 ? bytes_of(kernel) / bytes_of(like) : 1;
  return kernel.op == KernelOp::launch ? 1 : row_of(row_of(kernel.op).kind).matrix ? arithmetic : data;
}

std::optional<Precision> like_format(Precision precision) {
  switch (precision) {
  case Precision::fp16:
    return Precision::bf16;
  case Precision::bf16:
    return Precision::fp16;
  case Precision::mxfp8:
  case Precision::fp8_block:
    return Precision::fp8;
  default:
    return std::nullopt;
  }
}

std::optional<KernelOp> like_op(KernelOp op) {
  switch (op) {
  case KernelOp::rms_norm:
    return KernelOp::layer_norm;
  case KernelOp::cross_entropy:
    return KernelOp::softmax;
  case KernelOp::rotary:
    return KernelOp::copy;
  default:
    return std::nullopt;
  }
}

PassRatio pass_ratio(const KernelFits& fits, const Kernel& kernel) {
  constexpr double kOtherPass = 0.2; // an assumption
  PassRatio ratio;
  ratio.spread = kOtherPass;
  for (const PassRatio& one : fits.passes) {
    const bool own = one.precision == kernel.precision, general = !one.precision && !ratio.precision;
    if (one.op == kernel.op && one.pass == kernel.pass && (own || general)) {
      ratio = one;
    }
  }
  return ratio;
}

} // namespace stagecraft
