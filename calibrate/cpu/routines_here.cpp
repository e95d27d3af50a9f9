// The routines of one instruction set. This file is compiled once for each, with `Eigen` and STAGECRAFT_ROUTINES as
// macros for names of their own, so that the linker never takes a template compiled for another set. For the same
// reason it uses nothing of the standard library that is not inlined.
// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>

#include "calibrate/cpu/routines.hpp"

namespace stagecraft::cpu {
namespace {

using Array = Eigen::Array<float, Eigen::Dynamic, 1>;
using In = Eigen::Map<const Array>;
using Out = Eigen::Map<Array>;
template <int Order> using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Order>;
template <int Order> using MatrixIn = Eigen::Map<const Matrix<Order>, 0, Eigen::OuterStride<>>;
using MatrixOut = Eigen::Map<Matrix<Eigen::RowMajor>, 0, Eigen::OuterStride<>>;

template <int OrderA, int OrderB> void multiply(const Product& p) {
  const MatrixIn<OrderA> a(p.a, p.m, p.k, Eigen::OuterStride<>(p.lda));
  const MatrixIn<OrderB> b(p.b, p.k, p.n, Eigen::OuterStride<>(p.ldb));
  MatrixOut c(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (p.accumulate) {
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
}

void product(const Product& p) {
  constexpr int kRow = Eigen::RowMajor, kColumn = Eigen::ColMajor;
  p.transpose_a ? (p.transpose_b ? multiply<kColumn, kColumn>(p) : multiply<kColumn, kRow>(p))
                : (p.transpose_b ? multiply<kRow, kColumn>(p) : multiply<kRow, kRow>(p));
}

void add(const float* x, const float* y, float* z, Index count) { Out(z, count) = In(x, count) + In(y, count); }

void relu(const float* x, float* y, Index count) { Out(y, count) = In(x, count).max(0.0F); }

void relu_gradient(const float* y, const float* dy, float* dx, Index count) {
  for (Index i = 0; i < count; ++i) {
    dx[i] = y[i] > 0 ? dy[i] : 0.0F;
  }
}

// Elements that fit into the first-level cache, so that the steps of a formula do not go through memory.
constexpr Index kBlock = 1024;

// Normal distribution by Abramowitz and Stegun 7.1.26, with an error below 1.5e-7; `bell` gets exp(-x^2/2).
template <class X, class Bell, class Phi> void normal(const X& x, Bell& bell, Phi& phi) {
  constexpr float kSqrtHalf = 0.70710678F;
  bell = (-0.5F * x.square()).exp();
  const Eigen::Array<float, Eigen::Dynamic, 1, 0, kBlock, 1> t = (1.0F + (0.3275911F * kSqrtHalf) * x.abs()).inverse();
  phi = t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F)))) * bell *
        0.5F;
  phi = (x > 0.0F).select(1.0F - phi, phi);
}

void gelu(const float* x, float* y, Index count) {
  Eigen::Array<float, Eigen::Dynamic, 1, 0, kBlock, 1> bell, phi;
  for (Index first = 0; first < count; first += kBlock) {
    const Index size = count - first < kBlock ? count - first : kBlock;
    const In in(x + first, size);
    normal(in, bell, phi);
    Out(y + first, size) = in * phi;
  }
}

void gelu_gradient(const float* x, const float* dy, float* dx, Index count) {
  constexpr float kDensityAt0 = 0.39894228F; // 1 / sqrt(2 pi)
  Eigen::Array<float, Eigen::Dynamic, 1, 0, kBlock, 1> bell, phi;
  for (Index first = 0; first < count; first += kBlock) {
    const Index size = count - first < kBlock ? count - first : kBlock;
    const In in(x + first, size);
    normal(in, bell, phi);
    Out(dx + first, size) = In(dy + first, size) * (phi + in * bell * kDensityAt0);
  }
}

constexpr float kKeepScale = 1 / (1 - kDropShare);

void dropout(const float* x, float* y, std::uint8_t* mask, Index first, Index count) {
  constexpr auto kDropBelow = static_cast<std::uint32_t>(kDropShare * 4294967296.0F);
  for (Index i = 0; i < count; ++i) {
    auto bits = static_cast<std::uint32_t>(first + i) * 2654435769U; // a hash of the element's index
    bits = (bits ^ bits >> 15U) * 2246822519U;
    bits ^= bits >> 13U;
    const bool keep = bits >= kDropBelow;
    mask[i] = keep ? 1 : 0;
    y[i] = keep ? x[i] * kKeepScale : 0.0F;
  }
}

void dropout_gradient(const std::uint8_t* mask, const float* dy, float* dx, Index count) {
  for (Index i = 0; i < count; ++i) {
    dx[i] = dy[i] * (static_cast<float>(mask[i]) * kKeepScale);
  }
}

void layer_norm(const Rows& r, const float* scale, const float* shift, float* mean, float* inverse) {
  const In gain(scale, r.columns), bias(shift, r.columns);
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns);
    mean[row] = x.mean();
    const float variance = (x - mean[row]).square().mean();
    inverse[row] = 1 / Eigen::numext::sqrt(variance + kEpsilon);
    Out(r.y + row * r.stride, r.columns) = (x - mean[row]) * inverse[row] * gain + bias;
  }
}

void layer_norm_gradient(const Rows& r, const float* dy, const float* scale, const float* mean, const float* inverse,
                         float* d_scale, float* d_shift) {
  const In gain(scale, r.columns);
  Out gain_gradient(d_scale, r.columns), bias_gradient(d_shift, r.columns);
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns), d(dy + row * r.stride, r.columns);
    const float m = mean[row], s = inverse[row];
    const float along = (d * gain).mean(), across = (d * gain * (x - m)).mean() * s * s;
    Out(r.y + row * r.stride, r.columns) = s * (d * gain - along - (x - m) * across);
    gain_gradient += d * (x - m) * s;
    bias_gradient += d;
  }
}

void rms_norm(const Rows& r, const float* scale, float* inverse) {
  const In gain(scale, r.columns);
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns);
    inverse[row] = 1 / Eigen::numext::sqrt(x.square().mean() + kEpsilon);
    Out(r.y + row * r.stride, r.columns) = x * inverse[row] * gain;
  }
}

void rms_norm_gradient(const Rows& r, const float* dy, const float* scale, const float* inverse, float* d_scale) {
  const In gain(scale, r.columns);
  Out gain_gradient(d_scale, r.columns);
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns), d(dy + row * r.stride, r.columns);
    const float s = inverse[row], across = (d * gain * x).mean() * s * s;
    Out(r.y + row * r.stride, r.columns) = s * (d * gain - x * across);
    gain_gradient += d * x * s;
  }
}

void swiglu(const float* gate, const float* up, float* y, Index count) {
  const In g(gate, count);
  Out(y, count) = g / (1.0F + (-g).exp()) * In(up, count);
}

void swiglu_gradient(const float* gate, const float* up, const float* dy, float* d_gate, float* d_up, Index count) {
  Eigen::Array<float, Eigen::Dynamic, 1, 0, kBlock, 1> share;
  for (Index first = 0; first < count; first += kBlock) {
    const Index size = count - first < kBlock ? count - first : kBlock;
    const In g(gate + first, size), d(dy + first, size);
    share = (1.0F + (-g).exp()).inverse();
    Out(d_gate + first, size) = d * In(up + first, size) * share * (1.0F + g * (1.0F - share));
    Out(d_up + first, size) = d * g * share;
  }
}

void rotate(const float* x, const float* cosine, const float* sine, float direction, float* y, Index half) {
  const In left(x, half), right(x + half, half), c(cosine, half), s(sine, half);
  Out(y, half) = left * c - right * (direction * s);
  Out(y + half, half) = right * c + left * (direction * s);
}

void log_sums(const Rows& r, float* totals) {
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns);
    const float most = x.maxCoeff();
    totals[row] = most + Eigen::numext::log((x - most).exp().sum());
  }
}

void log_sums_gradient(const Rows& r, const float* totals, float share) {
  for (Index row = 0; row < r.rows; ++row) {
    Out(r.y + row * r.stride, r.columns) = (In(r.x + row * r.stride, r.columns) - totals[row]).exp() * share;
  }
}

void batch_norm(const Rows& r, const float* scale, const float* shift, float* mean, float* inverse) {
  const auto count = static_cast<float>(r.rows);
  Out sum(mean, r.columns), squares(inverse, r.columns);
  sum.setZero();
  squares.setZero();
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns);
    sum += x;
    squares += x.square();
  }
  sum /= count;
  squares = (squares / count - sum.square() + kEpsilon).rsqrt();
  const In gain(scale, r.columns), bias(shift, r.columns);
  for (Index row = 0; row < r.rows; ++row) {
    Out(r.y + row * r.stride, r.columns) = (In(r.x + row * r.stride, r.columns) - sum) * squares * gain + bias;
  }
}

void batch_norm_gradient(const Rows& r, const float* dy, const float* scale, const float* mean, const float* inverse,
                         float* d_scale, float* d_shift) {
  const In m(mean, r.columns), s(inverse, r.columns), gain(scale, r.columns);
  Out along(d_shift, r.columns), across(d_scale, r.columns);
  along.setZero();
  across.setZero();
  for (Index row = 0; row < r.rows; ++row) {
    const In d(dy + row * r.stride, r.columns);
    along += d;
    across += d * (In(r.x + row * r.stride, r.columns) - m) * s;
  }
  const float share = 1 / static_cast<float>(r.rows);
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns), d(dy + row * r.stride, r.columns);
    Out(r.y + row * r.stride, r.columns) = gain * s * (d - along * share - (x - m) * s * across * share);
  }
}

void softmax(const Rows& r) {
  for (Index row = 0; row < r.rows; ++row) {
    const In x(r.x + row * r.stride, r.columns);
    Out y(r.y + row * r.stride, r.columns);
    const float most = x.maxCoeff();
    y = (x - most).exp();
    y *= 1 / y.sum();
  }
}

void softmax_gradient(const Rows& r, const float* dy) {
  for (Index row = 0; row < r.rows; ++row) {
    const In y(r.x + row * r.stride, r.columns), d(dy + row * r.stride, r.columns);
    const float along = (y * d).sum();
    Out(r.y + row * r.stride, r.columns) = y * (d - along);
  }
}

float sum(const float* x, Index count) { return In(x, count).sum(); }

void adam(const float* gradient, float* weight, float* first, float* second, Index count) {
  constexpr float kRate = 1e-4F, kFirst = 0.9F, kSecond = 0.999F, kTiny = 1e-8F;
  const In g(gradient, count);
  Out w(weight, count), m(first, count), v(second, count);
  for (Index at = 0; at < count; at += kBlock) {
    const Index size = count - at < kBlock ? count - at : kBlock;
    const auto gs = g.segment(at, size);
    auto ms = m.segment(at, size);
    auto vs = v.segment(at, size);
    ms = kFirst * ms + (1 - kFirst) * gs;
    vs = kSecond * vs + (1 - kSecond) * gs.square();
    w.segment(at, size) -= kRate * ms / (vs.sqrt() + kTiny);
  }
}

} // namespace

extern const Routines STAGECRAFT_ROUTINES;
const Routines STAGECRAFT_ROUTINES = {STAGECRAFT_INSTRUCTIONS,
                                      product,
                                      add,
                                      relu,
                                      relu_gradient,
                                      gelu,
                                      gelu_gradient,
                                      dropout,
                                      dropout_gradient,
                                      layer_norm,
                                      layer_norm_gradient,
                                      rms_norm,
                                      rms_norm_gradient,
                                      swiglu,
                                      swiglu_gradient,
                                      rotate,
                                      batch_norm,
                                      batch_norm_gradient,
                                      softmax,
                                      softmax_gradient,
                                      log_sums,
                                      log_sums_gradient,
                                      sum,
                                      adam};

} // namespace stagecraft::cpu
