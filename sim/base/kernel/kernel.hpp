// Kernels by name, pass, precision and shape: what a harness measures, a fit predicts and a model's operators run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/base/kernel/kernel_kind.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {

/// What a kernel computes.
enum class KernelOp : std::uint8_t {
  gemm,
  convolution,
  attention,
  copy,
  add,
  relu,
  gelu,
  dropout,
  layer_norm,
  batch_norm,
  softmax,
  embedding,
  sum,
  adam,
  rms_norm,
  swiglu,
  rotary,
  cross_entropy,
  clip,
  cast,
  launch,
};

/// The variant of attention whose heads have keys of other widths than values, as latent attention does: its head size
/// is the mean of both.
inline constexpr std::string_view kLatentAttention = "latent";

inline constexpr std::size_t kMostDimensions = 10;

/// The sizes of a kernel in the order of its op's dimensions; unused ones are 0.
using KernelShape = std::array<double, kMostDimensions>;

struct KernelOpRow {
  std::string_view name, help;
  KernelOp op;
  KernelKind kind;
  std::array<std::string_view, kMostDimensions> dimensions; ///< ends at the first empty name

  /// Number of dimensions.
  constexpr std::size_t rank() const {
    std::size_t count = 0;
    while (count < kMostDimensions && !dimensions[count].empty()) {
      ++count;
    }
    return count;
  }
};

/// Whether this dimension may be 0; every other is at least 1.
constexpr bool may_be_zero(std::string_view dimension) { return dimension == "padding" || dimension == "causal"; }

/// Every op, in the order of the enumeration. docs/formats/measurements.md says what the dimensions mean.
inline constexpr std::array kKernelOps = {
    KernelOpRow{
        "gemm", "batch products C[m,n] = A[m,k] B[k,n]", KernelOp::gemm, KernelKind::matmul, {"batch", "m", "n", "k"}},
    KernelOpRow{"convolution",
                "of images",
                KernelOp::convolution,
                KernelKind::convolution,
                {"n", "c", "h", "w", "k", "r", "s", "stride", "padding", "groups"}},
    KernelOpRow{"attention",
                "scaled dot-product attention, fused",
                KernelOp::attention,
                KernelKind::attention,
                {"batch", "sequence", "heads", "kv_heads", "head_size", "causal"}},
    KernelOpRow{"copy", "y = x", KernelOp::copy, KernelKind::reshape, {"rows", "columns"}},
    KernelOpRow{"add", "z = x + y", KernelOp::add, KernelKind::elementwise, {"rows", "columns"}},
    KernelOpRow{"relu", "y = max(x, 0)", KernelOp::relu, KernelKind::elementwise, {"rows", "columns"}},
    KernelOpRow{"gelu", "y = x Phi(x)", KernelOp::gelu, KernelKind::elementwise, {"rows", "columns"}},
    KernelOpRow{"dropout", "with a mask of bytes", KernelOp::dropout, KernelKind::elementwise, {"rows", "columns"}},
    KernelOpRow{"layer-norm", "over the columns", KernelOp::layer_norm, KernelKind::normalization, {"rows", "columns"}},
    KernelOpRow{"batch-norm", "over the rows", KernelOp::batch_norm, KernelKind::normalization, {"rows", "columns"}},
    KernelOpRow{"softmax", "over the columns", KernelOp::softmax, KernelKind::softmax, {"rows", "columns"}},
    KernelOpRow{"embedding", "rows of a table", KernelOp::embedding, KernelKind::embedding, {"rows", "columns"}},
    KernelOpRow{"sum", "of all elements", KernelOp::sum, KernelKind::elementwise, {"rows", "columns"}},
    KernelOpRow{"adam",
                "one optimiser step in fp32: weights, gradients and both moments",
                KernelOp::adam,
                KernelKind::elementwise,
                {"rows", "columns"}},
    KernelOpRow{"rms-norm",
                "over the columns, without a mean",
                KernelOp::rms_norm,
                KernelKind::normalization,
                {"rows", "columns"}},
    KernelOpRow{"swiglu", "y = silu(gate) up", KernelOp::swiglu, KernelKind::elementwise, {"rows", "columns"}},
    KernelOpRow{"rotary",
                "turns pairs within the columns by the row's position, in place",
                KernelOp::rotary,
                KernelKind::elementwise,
                {"rows", "columns"}},
    KernelOpRow{"cross-entropy",
                "loss of each row of logits; its gradient in place",
                KernelOp::cross_entropy,
                KernelKind::softmax,
                {"rows", "columns"}},
    KernelOpRow{"clip",
                "the norm of all elements, then their scaling in place",
                KernelOp::clip,
                KernelKind::elementwise,
                {"rows", "columns"}},
    KernelOpRow{
        "cast", "to the precision, from fp32 or bf16", KernelOp::cast, KernelKind::elementwise, {"rows", "columns"}},
    KernelOpRow{"launch", "an empty kernel", KernelOp::launch, KernelKind::other, {}},
};

constexpr const KernelOpRow& row_of(KernelOp op) { return kKernelOps[static_cast<std::size_t>(op)]; }

enum class KernelPass : std::uint8_t { forward, backward_input, backward_weight };

struct KernelPassRow {
  std::string_view name, help;
  KernelPass pass;
};
/// The passes. Attention's backward-input computes all three gradients.
inline constexpr std::array kKernelPasses = {
    KernelPassRow{"forward", "the result", KernelPass::forward},
    KernelPassRow{"backward-input", "the gradient of the input", KernelPass::backward_input},
    KernelPassRow{"backward-weight", "the gradient of the weight", KernelPass::backward_weight},
};

constexpr const KernelPassRow& row_of(KernelPass pass) { return kKernelPasses[static_cast<std::size_t>(pass)]; }

/// One kernel. A gemm's shape is that of its own product in every pass: the pass only says which operands are
/// transposed.
struct Kernel {
  KernelOp op = KernelOp::gemm;
  KernelPass pass = KernelPass::forward;
  Precision precision = Precision::fp32;
  KernelShape shape{};
  bool operator==(const Kernel&) const = default;
};

/// Floating-point operations of a kernel.
Flops flops_of(const Kernel& kernel);
/// The least data that a kernel must read and write.
Bytes bytes_of(const Kernel& kernel);
/// "gemm forward bf16 batch=1 m=128 n=256 k=64": a line of a shape list, readable by people.
std::string to_text(const Kernel& kernel);
/// Reads such a line; pass and precision are required. Throws InputError blaming `where`.
Kernel parse_kernel(std::string_view text, const Where& where);

} // namespace stagecraft
