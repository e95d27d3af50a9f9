// Kernel kinds, precisions and their names: what devices offer and operators ask for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stagecraft {

/// The class of a kernel: devices differ in how fast, and whether, they run each.
enum class KernelKind : std::uint8_t {
  matmul,
  convolution,
  attention,
  recurrent,
  state_space,
  normalization,
  softmax,
  elementwise,
  pooling,
  embedding,
  reshape,
  other,
};

struct KernelKindRow {
  std::string_view name, help;
  KernelKind kind;
  bool matrix;      ///< runs on the matrix units, at a share of the device's matrix peak; others on the vector units
  double share = 1; ///< of that peak, or of the vector units' speed, where a device's file says no other
};

/// What the forward of a selective state space in chunks reaches of the vector units' speed: its Triton kernels decay,
/// mask and sum between small products (docs/model.md, "State spaces").
inline constexpr double kStateSpaceShare = 0.95;

/// Every kernel kind, in the order of the enumeration.
inline constexpr std::array kKernelKinds = {
    KernelKindRow{"matmul", "dense matrix product: linear layers, projections", KernelKind::matmul, true},
    KernelKindRow{"convolution", "convolution of any rank", KernelKind::convolution, true},
    KernelKindRow{"attention", "scaled dot-product attention, fused", KernelKind::attention, true},
    KernelKindRow{"recurrent", "LSTM, GRU and plain recurrent layers", KernelKind::recurrent, true},
    KernelKindRow{"state_space", "selective state spaces, in chunks", KernelKind::state_space, false, kStateSpaceShare},
    KernelKindRow{"normalization", "batch, layer, group and local response normalization", KernelKind::normalization,
                  false},
    KernelKindRow{"softmax", "softmax and cross-entropy", KernelKind::softmax, false},
    KernelKindRow{"elementwise", "activations, additions, dropout", KernelKind::elementwise, false},
    KernelKindRow{"pooling", "maximum and average pooling", KernelKind::pooling, false},
    KernelKindRow{"embedding", "table look-up", KernelKind::embedding, false},
    KernelKindRow{"reshape", "concatenation, split, transpose, views", KernelKind::reshape, false},
    KernelKindRow{"other", "an operator of a profile whose kind its name does not tell", KernelKind::other, false},
};

/// A number format: of weights and activations during training, or of the inputs of products alone.
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8, mxfp8, fp8_block, nvfp4 };

struct PrecisionRow {
  std::string_view name, help;
  Precision precision;
  double bytes; ///< bytes of one stored weight or activation, with its part of a scale
};

/// What weights and activations may be stored in during training.
inline constexpr std::array kPrecisions = {
    PrecisionRow{"fp32", "single precision", Precision::fp32, 4},
    PrecisionRow{"tf32", "single precision stored, 10-bit mantissa in matrix units", Precision::tf32, 4},
    PrecisionRow{"fp16", "half precision with fp32 master weights", Precision::fp16, 2},
    PrecisionRow{"bf16", "bfloat16 with fp32 master weights", Precision::bf16, 2},
};

/// Every number format that a device may multiply, in the order of the enumeration.
inline constexpr std::array kNumberFormats = {
    kPrecisions[0],
    kPrecisions[1],
    kPrecisions[2],
    kPrecisions[3],
    PrecisionRow{"fp8", "8 bits, e4m3 or e5m2, with a scale for each tensor", Precision::fp8, 1},
    PrecisionRow{"mxfp8", "8 bits with a scale of 8 bits for 32 numbers", Precision::mxfp8, 1 + 1.0 / 32},
    PrecisionRow{"fp8-block", "8 bits with a scale of 32 bits for 128 numbers, for 128 x 128 of a weight",
                 Precision::fp8_block, 1 + 4.0 / 128},
    PrecisionRow{"nvfp4", "4 bits with a scale of 8 bits for 16 numbers", Precision::nvfp4, 0.5 + 1.0 / 16},
};

/// Whether a kernel of the kind reads all tokens before each. Its backward reads its own result.
constexpr bool mixes_tokens(KernelKind kind) {
  return kind == KernelKind::attention || kind == KernelKind::state_space;
}

constexpr const KernelKindRow& row_of(KernelKind kind) { return kKernelKinds[static_cast<std::size_t>(kind)]; }
/// Whether its FLOPs are products, which publications count, on whatever units they run.
constexpr bool multiplies(KernelKind kind) { return row_of(kind).matrix || kind == KernelKind::state_space; }

constexpr const PrecisionRow& row_of(Precision precision) {
  return kNumberFormats[static_cast<std::size_t>(precision)];
}

} // namespace stagecraft
