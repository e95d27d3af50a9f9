// Kernels by name: the lines of a shape list. The harness builds without the simulator, so it has a table of its own;
// tests/calibrate compares it with sim/base/kernel/kernel.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::gpu {

/// What a kernel computes; docs/formats/measurements.md explains its dimensions.
enum class Op : std::uint8_t {
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

enum class Pass : std::uint8_t { forward, backward_input, backward_weight };

enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8 };

inline constexpr std::size_t kMostDimensions = 10;

struct OpRow {
  std::string_view name;
  Op op;
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

/// Every op, in the order of the enumeration.
inline constexpr std::array<OpRow, 21> kOps = {{
    {"gemm", Op::gemm, {"batch", "m", "n", "k"}},
    {"convolution", Op::convolution, {"n", "c", "h", "w", "k", "r", "s", "stride", "padding", "groups"}},
    {"attention", Op::attention, {"batch", "sequence", "heads", "kv_heads", "head_size", "causal"}},
    {"copy", Op::copy, {"rows", "columns"}},
    {"add", Op::add, {"rows", "columns"}},
    {"relu", Op::relu, {"rows", "columns"}},
    {"gelu", Op::gelu, {"rows", "columns"}},
    {"dropout", Op::dropout, {"rows", "columns"}},
    {"layer-norm", Op::layer_norm, {"rows", "columns"}},
    {"batch-norm", Op::batch_norm, {"rows", "columns"}},
    {"softmax", Op::softmax, {"rows", "columns"}},
    {"embedding", Op::embedding, {"rows", "columns"}},
    {"sum", Op::sum, {"rows", "columns"}},
    {"adam", Op::adam, {"rows", "columns"}},
    {"rms-norm", Op::rms_norm, {"rows", "columns"}},
    {"swiglu", Op::swiglu, {"rows", "columns"}},
    {"rotary", Op::rotary, {"rows", "columns"}},
    {"cross-entropy", Op::cross_entropy, {"rows", "columns"}},
    {"clip", Op::clip, {"rows", "columns"}},
    {"cast", Op::cast, {"rows", "columns"}},
    {"launch", Op::launch, {}},
}};

inline constexpr std::array<std::string_view, 3> kPasses = {"forward", "backward-input", "backward-weight"};
inline constexpr std::array<std::string_view, 5> kPrecisions = {"fp32", "tf32", "fp16", "bf16", "fp8"};

constexpr const OpRow& row_of(Op op) { return kOps[static_cast<std::size_t>(op)]; }
constexpr std::string_view name_of(Pass pass) { return kPasses[static_cast<std::size_t>(pass)]; }
constexpr std::string_view name_of(Precision precision) { return kPrecisions[static_cast<std::size_t>(precision)]; }

/// Bytes of a stored element.
constexpr std::int64_t bytes_of(Precision precision) {
  return precision == Precision::fp8 ? 1 : precision == Precision::fp16 || precision == Precision::bf16 ? 2 : 4;
}

/// What a product's result is stored in: that of fp8 inputs is bf16.
constexpr Precision result_of(Precision precision) { return precision == Precision::fp8 ? Precision::bf16 : precision; }

/// What a cast to this precision starts from: 16 bits come from fp32, all else from bf16.
constexpr Precision cast_from(Precision to) {
  return to == Precision::bf16 || to == Precision::fp16 ? Precision::fp32 : Precision::bf16;
}

/// Rows of an embedding's table, and positions in that of a rotary embedding.
inline constexpr int kVocabulary = 50304, kPositions = 4096;

using Shape = std::array<std::int64_t, kMostDimensions>;

struct Kernel {
  Op op = Op::gemm;
  Pass pass = Pass::forward;
  Precision precision = Precision::fp32;
  Shape shape{};

  bool operator==(const Kernel& other) const {
    return op == other.op && pass == other.pass && precision == other.precision && shape == other.shape;
  }
};

/// The kernel with these extents; the dimensions after them are 0.
Kernel make_kernel(Op op, Pass pass, Precision precision, const std::vector<std::int64_t>& extents);

/// A line of a shape list: "gemm forward bf16 batch=1 m=128 n=256 k=64".
std::string to_text(const Kernel& kernel);

/// Reads such a line; std::invalid_argument says what is wrong.
Kernel parse_kernel(std::string_view line);

/// Reads a shape list: a kernel per line, '#' begins a comment, duplicates are dropped. std::invalid_argument names
/// `file`, the line and what is wrong.
std::vector<Kernel> parse_shape_list(std::string_view text, const std::string& file);

/// Outputs along an edge of `in` values under a window.
constexpr std::int64_t output_extent(std::int64_t in, std::int64_t window, std::int64_t stride, std::int64_t padding) {
  return (in + 2 * padding - window) / stride + 1;
}

/// Floating-point operations of a kernel.
double flops_of(const Kernel& kernel);

/// Device memory of its operands in bytes, approximately.
double bytes_of(const Kernel& kernel);

} // namespace stagecraft::gpu
