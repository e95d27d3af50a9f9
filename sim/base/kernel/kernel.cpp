// SPDX-License-Identifier: Apache-2.0
#include "sim/base/kernel/kernel.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/named_table.hpp"

namespace stagecraft {
namespace {

double cells(const Kernel& kernel) { return kernel.shape[0] * kernel.shape[1]; }

struct Convolution {
  double n, c, h, w, k, r, s, groups, out_h, out_w;

  explicit Convolution(const KernelShape& shape)
      : n(shape[0]), c(shape[1]), h(shape[2]), w(shape[3]), k(shape[4]), r(shape[5]), s(shape[6]), groups(shape[9]),
        out_h(out(h, r, shape[7], shape[8])), out_w(out(w, s, shape[7], shape[8])) {}

  static double out(double in, double window, double stride, double padding) {
    return std::floor((in + 2 * padding - window) / stride) + 1;
  }
};

// Bytes of an fp32 number, in which the optimiser keeps its state, and of one in bf16.
constexpr double kFloat = 4, kHalf = 2;

// Bytes read and written per element. The optimiser's state is fp32; its gradients and a copy of the weights may be
// narrower.
double elementwise_bytes(const Kernel& kernel) {
  const double stored = row_of(kernel.precision).bytes;
  const bool forward = kernel.pass == KernelPass::forward;
  switch (kernel.op) {
  case KernelOp::copy:
  case KernelOp::embedding:
    return 2 * stored;
  case KernelOp::add:
    return 3 * stored;
  case KernelOp::dropout:
    return 2 * stored + 1;
  case KernelOp::sum:
    return stored;
  case KernelOp::adam: // reads w, g, m, v; writes w, m, v and, where g is narrower, a copy of w like it
    return 7 * kFloat;
  case KernelOp::swiglu: // gradients of gate and up, from both and the result's
    return (forward ? 3 : 5) * stored;
  case KernelOp::rotary:
    return 2 * stored;
  case KernelOp::cross_entropy:
    return (forward ? 1 : 2) * stored;
  case KernelOp::clip:
    return 3 * stored;
  case KernelOp::cast: // from fp32 to 16 bits; to anything else from bf16
    return stored + (stored == kHalf ? kFloat : kHalf);
  default:
    return (forward ? 2 : 3) * stored;
  }
}

double elementwise_flops(const Kernel& kernel) {
  switch (kernel.op) {
  case KernelOp::copy:
  case KernelOp::cast:
  case KernelOp::embedding:
    return 0;
  case KernelOp::gelu:
  case KernelOp::swiglu:
  case KernelOp::layer_norm:
  case KernelOp::rms_norm:
  case KernelOp::batch_norm:
    return 8;
  case KernelOp::softmax:
  case KernelOp::cross_entropy:
    return 5;
  case KernelOp::rotary:
  case KernelOp::clip:
    return 3;
  case KernelOp::adam:
    return 12;
  default:
    return 1;
  }
}

// Attention scores computed per head; the causal half includes the diagonal.
double pairs(const KernelShape& shape) {
  const double sequence = shape[1];
  return shape[5] > 0 ? sequence * (sequence + 1) / 2 : sequence * sequence;
}

} // namespace

Flops flops_of(const Kernel& kernel) {
  const KernelShape& shape = kernel.shape;
  if (kernel.op == KernelOp::gemm) {
    return Flops{2 * shape[0] * shape[1] * shape[2] * shape[3]};
  }
  if (kernel.op == KernelOp::convolution) {
    const Convolution conv(shape);
    return Flops{2 * conv.n * conv.k * conv.out_h * conv.out_w * conv.c / conv.groups * conv.r * conv.s};
  }
  if (kernel.op == KernelOp::attention) { // forward: QK' and PV; backward: five products (Dao et al. 2022)
    const double products = kernel.pass == KernelPass::forward ? 2 : 5;
    return Flops{2 * products * shape[0] * shape[2] * shape[4] * pairs(shape)};
  }
  return Flops{elementwise_flops(kernel) * cells(kernel)};
}

Bytes bytes_of(const Kernel& kernel) {
  const KernelShape& shape = kernel.shape;
  const double stored = row_of(kernel.precision).bytes;
  if (kernel.op == KernelOp::gemm) {
    return Bytes{stored * shape[0] * (shape[1] * shape[3] + shape[3] * shape[2] + shape[1] * shape[2])};
  }
  if (kernel.op == KernelOp::convolution) {
    const Convolution conv(shape);
    return Bytes{stored * (conv.n * conv.c * conv.h * conv.w + conv.n * conv.k * conv.out_h * conv.out_w +
                           conv.k * conv.c / conv.groups * conv.r * conv.s)};
  }
  if (kernel.op == KernelOp::attention) { // forward: q, k, v and the result; backward: these and their gradients
    const double rows = 2 * shape[2] + 2 * shape[3];
    return Bytes{(kernel.pass == KernelPass::forward ? 1 : 2) * stored * shape[0] * shape[1] * rows * shape[4]};
  }
  return Bytes{elementwise_bytes(kernel) * cells(kernel)};
}

std::string to_text(const Kernel& kernel) {
  const KernelOpRow& row = row_of(kernel.op);
  std::string text(row.name);
  text += " ";
  text += row_of(kernel.pass).name;
  text += " ";
  text += row_of(kernel.precision).name;
  for (std::size_t i = 0; i < row.rank(); ++i) {
    text += " ";
    text += row.dimensions[i];
    text += "=";
    text += std::to_string(std::llround(kernel.shape[i]));
  }
  return text;
}

namespace {

struct Word {
  std::string_view text;
  Where where;
};

std::vector<Word> words_of(std::string_view text, const Where& where) {
  std::vector<Word> words;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;
       at = text.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back({text.substr(at, end - at), {where.file, where.line, where.column + static_cast<int>(at)}});
    at = end;
  }
  return words;
}

std::size_t dimension_of(const KernelOpRow& row, std::string_view name, const Where& where) {
  std::string known;
  for (std::size_t i = 0; i < row.rank(); ++i) {
    if (row.dimensions[i] == name) {
      return i;
    }
    known += (known.empty() ? "" : ", ") + std::string(row.dimensions[i]);
  }
  throw InputError(where, "'" + std::string(name) + "' is no dimension of " + std::string(row.name) +
                              "; allowed: " + (known.empty() ? "none" : known));
}

constexpr int kMostExtent = std::numeric_limits<int>::max();

} // namespace

Kernel parse_kernel(std::string_view text, const Where& where) {
  const std::vector<Word> words = words_of(text, where);
  if (words.size() < 3) {
    throw InputError(where, "a kernel is an op, a pass, a precision and its dimensions, as 'gemm forward bf16 batch=1 "
                            "m=128 n=256 k=64'");
  }
  const KernelOpRow& row = find_by_name(kKernelOps, words[0].text, "kernel", words[0].where);
  Kernel kernel{.op = row.op,
                .pass = find_by_name(kKernelPasses, words[1].text, "pass", words[1].where).pass,
                .precision = find_by_name(kNumberFormats, words[2].text, "precision", words[2].where).precision};
  for (std::size_t i = 3; i < words.size(); ++i) {
    const auto& [word, place] = words[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::size_t at = dimension_of(row, word.substr(0, equals), place);
    if (equals == word.size() || kernel.shape[at] > 0) {
      throw InputError(place, "'" + std::string(word) + "' wants one value, as m=128");
    }
    kernel.shape[at] = parse_integer(word.substr(equals + 1), 0, kMostExtent, place);
  }
  for (std::size_t i = 0; i < row.rank(); ++i) {
    if (kernel.shape[i] == 0 && !may_be_zero(row.dimensions[i])) {
      throw InputError(where, "'" + std::string(row.dimensions[i]) + "' is missing or 0; allowed: 1 or more");
    }
  }
  return kernel;
}

} // namespace stagecraft
