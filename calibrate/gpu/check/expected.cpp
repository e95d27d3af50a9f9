// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/check/expected.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace stagecraft::gpu {
namespace {

constexpr double kEpsilon = 1e-5;

/// A kernel with its operands, which are read as numbers where they are needed.
struct Reader {
  const Kernel& kernel;
  const ElementwiseOperands& at;
  std::int64_t rows = kernel.shape[0], columns = kernel.shape[1], count = rows * columns;
  Stored stored = stored_as(kernel.precision);

  bool forward() const { return kernel.pass == Pass::forward; }
  Values tensor(const void* place) const { return read_values(stored, place, count); }
  static Values floats(const float* place, std::int64_t number) { return read_values(Stored::fp32, place, number); }
};

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

double normal_cumulative(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Expected> map_of(const Reader& in) {
  const Values x = in.tensor(in.at.x), y = in.tensor(in.at.y);
  const auto of = [&](const void* at, const std::function<double(double, double)>& function) {
    Expected expected{at, in.stored, {}};
    for (std::size_t i = 0; i < x.size(); ++i) {
      expected.values.push_back(function(x[i], y[i]));
    }
    return std::vector<Expected>{expected};
  };
  switch (in.kernel.op) {
  case Op::copy:
    return of(in.at.y, [](double a, double) { return a; });
  case Op::add:
    return of(in.at.z, [](double a, double b) { return a + b; });
  case Op::relu:
    return in.forward() ? of(in.at.y, [](double a, double) { return std::max(a, 0.0); })
                        : of(in.at.z, [](double a, double b) { return a > 0 ? b : 0; });
  default: { // gelu
    const auto gradient = [](double a, double b) {
      return b * (normal_cumulative(a) + a * std::exp(-a * a / 2) / std::sqrt(2 * std::acos(-1.0)));
    };
    return in.forward() ? of(in.at.y, [](double a, double) { return a * normal_cumulative(a); })
                        : of(in.at.z, gradient);
  }
  }
}

std::vector<Expected> sum_of(const Reader& in) {
  Expected expected{in.at.statistics, Stored::fp32, {0}};
  for (const double x : in.tensor(in.at.x)) {
    expected.values[0] += x;
    expected.scale += std::abs(x);
  }
  return {expected};
}

// Layer norm and RMS norm; the statistics of a gradient are those in memory.
std::vector<Expected> norm_of(const Reader& in) {
  const bool centred = in.kernel.op == Op::layer_norm;
  const std::int64_t each = centred ? 2 : 1;
  const Values x = in.tensor(in.at.x), dy = in.tensor(in.at.y);
  const Values gain = Reader::floats(in.at.weights, in.columns);
  Values statistics = Reader::floats(in.at.statistics, each * in.rows), result(x.size());
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const std::int64_t first = row * in.columns;
    double sum = 0, squares = 0;
    for (std::int64_t i = first; i < first + in.columns; ++i) {
      sum += x[index(i)];
      squares += x[index(i)] * x[index(i)];
    }
    const auto columns = static_cast<double>(in.columns);
    double& scale = statistics[index(each * row + each - 1)];
    if (in.forward()) {
      const double own_mean = centred ? sum / columns : 0;
      scale = 1 / std::sqrt(squares / columns - own_mean * own_mean + kEpsilon);
      statistics[index(each * row)] = centred ? own_mean : scale;
    }
    const double mean = centred ? statistics[index(each * row)] : 0;
    double gradients = 0, products = 0;
    for (std::int64_t i = 0; i < in.columns; ++i) {
      const double gradient = dy[index(first + i)] * gain[index(i)];
      gradients += centred ? gradient / columns : 0;
      products += gradient * (x[index(first + i)] - mean) * scale / columns;
    }
    for (std::int64_t i = 0; i < in.columns; ++i) {
      const double normal = (x[index(first + i)] - mean) * scale;
      result[index(first + i)] = in.forward()
                                     ? normal * gain[index(i)]
                                     : scale * (dy[index(first + i)] * gain[index(i)] - gradients - normal * products);
    }
  }
  if (!in.forward()) {
    return {{in.at.z, in.stored, result}};
  }
  return {{in.at.y, in.stored, result}, {in.at.statistics, Stored::fp32, statistics}};
}

std::vector<Expected> softmax_of(const Reader& in) {
  const Values x = in.tensor(in.at.x), dy = in.tensor(in.at.y);
  Values result(x.size());
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const auto first = x.begin() + row * in.columns;
    const double most = *std::max_element(first, first + in.columns);
    double sum = 0, products = 0;
    for (std::int64_t i = row * in.columns; i < (row + 1) * in.columns; ++i) {
      sum += std::exp(x[index(i)] - most);
      products += x[index(i)] * dy[index(i)];
    }
    for (std::int64_t i = row * in.columns; i < (row + 1) * in.columns; ++i) {
      result[index(i)] = in.forward() ? std::exp(x[index(i)] - most) / sum : x[index(i)] * (dy[index(i)] - products);
    }
  }
  return {{in.forward() ? in.at.y : in.at.z, in.stored, result}};
}

// The gradient takes its inputs as normal already.
std::vector<Expected> batch_norm_of(const Reader& in) {
  const Values x = in.tensor(in.at.x), dy = in.tensor(in.at.y);
  Values result(x.size());
  const auto rows = static_cast<double>(in.rows);
  for (std::int64_t column = 0; column < in.columns; ++column) {
    double sum = 0, squares = 0, gradients = 0, products = 0;
    for (std::int64_t i = column; i < in.count; i += in.columns) {
      sum += x[index(i)] / rows;
      squares += x[index(i)] * x[index(i)] / rows;
      gradients += dy[index(i)] / rows;
      products += dy[index(i)] * x[index(i)] / rows;
    }
    for (std::int64_t i = column; i < in.count; i += in.columns) {
      result[index(i)] = in.forward() ? (x[index(i)] - sum) / std::sqrt(squares - sum * sum + kEpsilon)
                                      : dy[index(i)] - gradients - x[index(i)] * products;
    }
  }
  return {{in.forward() ? in.at.y : in.at.z, in.stored, result}};
}

std::vector<Expected> embedding_of(const Reader& in) {
  const std::vector<int> indices = read_integers(in.at.indices, in.rows);
  const Stored stored = in.forward() ? in.stored : Stored::fp32;
  Values table = read_values(stored, in.at.table, kVocabulary * in.columns), result;
  const Values dy = in.tensor(in.at.x);
  for (std::int64_t row = 0; row < in.rows; ++row) {
    for (std::int64_t column = 0; column < in.columns; ++column) {
      double& cell = table[index(indices[index(row)] * in.columns + column)];
      result.push_back(cell);
      cell += in.forward() ? 0 : dy[index(row * in.columns + column)];
    }
  }
  return in.forward() ? std::vector<Expected>{{in.at.y, in.stored, result}}
                      : std::vector<Expected>{{in.at.table, Stored::fp32, table}};
}

std::vector<Expected> swiglu_of(const Reader& in) {
  const Values gate = in.tensor(in.at.x), up = in.tensor(in.at.y), dy = in.tensor(in.at.z);
  Values y, d_gate, d_up;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double share = sigmoid(gate[i]);
    y.push_back(gate[i] * share * up[i]);
    d_gate.push_back(dy[i] * up[i] * share * (1 + gate[i] * (1 - share)));
    d_up.push_back(dy[i] * gate[i] * share);
  }
  return in.forward() ? std::vector<Expected>{{in.at.z, in.stored, y}}
                      : std::vector<Expected>{{in.at.u, in.stored, d_gate}, {in.at.v, in.stored, d_up}};
}

std::vector<Expected> rotary_of(const Reader& in) {
  Values x = in.tensor(in.at.x);
  const std::int64_t half = in.columns / 2;
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const auto position = static_cast<double>(row / kRowsPerPosition % kPositions);
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = position * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      const double cosine = std::cos(angle), sine = (in.forward() ? 1 : -1) * std::sin(angle);
      double& left = x[index(row * in.columns + i)];
      double& right = x[index(row * in.columns + half + i)];
      const double one = left, other = right;
      left = one * cosine - other * sine;
      right = other * cosine + one * sine;
    }
  }
  return {{in.at.x, in.stored, x}};
}

std::vector<Expected> cross_entropy_of(const Reader& in) {
  Values x = in.tensor(in.at.x), totals, losses;
  const std::vector<int> targets = read_integers(in.at.indices, in.rows);
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const std::int64_t first = row * in.columns;
    double sum = 0;
    for (std::int64_t i = 0; i < in.columns; ++i) {
      sum += std::exp(x[index(first + i)]);
    }
    totals.push_back(std::log(sum));
    losses.push_back(std::log(sum) - x[index(first + targets[index(row)])]);
    for (std::int64_t i = 0; i < in.columns; ++i) {
      double& logit = x[index(first + i)];
      logit = (std::exp(logit) / sum - (i == targets[index(row)] ? 1 : 0)) / static_cast<double>(in.rows);
    }
  }
  return in.forward() ? std::vector<Expected>{{in.at.statistics, Stored::fp32, totals},
                                              {in.at.statistics + in.rows, Stored::fp32, losses}}
                      : std::vector<Expected>{{in.at.x, in.stored, x}};
}

std::vector<Expected> adam_of(const Reader& in) {
  constexpr double kRate = 1e-4, kFirst = 0.9, kSecond = 0.999, kSmall = 1e-8, kDecay = 0.01;
  const bool mixed = bytes_of(in.kernel.precision) == 2;
  const Values g = mixed ? in.tensor(in.at.x) : Reader::floats(in.at.gradients, in.count);
  Values w = Reader::floats(in.at.weights, in.count), m = Reader::floats(in.at.first, in.count),
         v = Reader::floats(in.at.second, in.count);
  for (std::size_t i = 0; i < w.size(); ++i) {
    m[i] = kFirst * m[i] + (1 - kFirst) * g[i];
    v[i] = kSecond * v[i] + (1 - kSecond) * g[i] * g[i];
    w[i] -= kRate * (m[i] / (std::sqrt(std::abs(v[i])) + kSmall) + kDecay * w[i]);
  }
  std::vector<Expected> expected = {
      {in.at.weights, Stored::fp32, w}, {in.at.first, Stored::fp32, m}, {in.at.second, Stored::fp32, v}};
  if (mixed) {
    expected.push_back({in.at.y, in.stored, w});
  }
  return expected;
}

std::vector<Expected> clip_of(const Reader& in) {
  Values x = in.tensor(in.at.x);
  double squares = 0;
  for (const double one : x) {
    squares += one * one;
  }
  for (double& one : x) {
    one *= std::min(1.0, static_cast<double>(kMostNorm) / (std::sqrt(squares) + 1e-6));
  }
  return {{in.at.statistics, Stored::fp32, {squares}}, {in.at.x, in.stored, x}};
}

std::vector<Expected> cast_of(const Reader& in) {
  Values x = read_values(stored_as(cast_from(in.kernel.precision)), in.at.x, in.count);
  const double scale = in.kernel.precision == Precision::fp8 ? Reader::floats(in.at.statistics, 1)[0] : 1;
  for (double& one : x) {
    one *= scale;
  }
  return {{in.at.y, in.stored, x}};
}

} // namespace

std::vector<Expected> expected_of(const Kernel& kernel, const ElementwiseOperands& operands) {
  const Reader in{kernel, operands};
  switch (kernel.op) {
  case Op::sum:
    return sum_of(in);
  case Op::layer_norm:
  case Op::rms_norm:
    return norm_of(in);
  case Op::softmax:
    return softmax_of(in);
  case Op::batch_norm:
    return batch_norm_of(in);
  case Op::embedding:
    return embedding_of(in);
  case Op::swiglu:
    return swiglu_of(in);
  case Op::rotary:
    return rotary_of(in);
  case Op::cross_entropy:
    return cross_entropy_of(in);
  case Op::adam:
    return adam_of(in);
  case Op::clip:
    return clip_of(in);
  case Op::cast:
    return cast_of(in);
  default:
    return map_of(in);
  }
}

std::vector<Expected> expected_of_dropout(const Kernel& kernel, const ElementwiseOperands& operands) {
  const Reader in{kernel, operands};
  Values x = in.tensor(operands.x);
  const std::vector<unsigned char> mask = read_bytes(operands.mask, in.count);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = mask[i] != 0 ? x[i] / kKept : 0;
  }
  return {{operands.y, in.stored, x}};
}

double kept_share(const Kernel& kernel, const ElementwiseOperands& operands) {
  const std::vector<unsigned char> mask = read_bytes(operands.mask, kernel.shape[0] * kernel.shape[1]);
  return static_cast<double>(std::count(mask.begin(), mask.end(), 1)) / static_cast<double>(mask.size());
}

Expected expected_product(const Kernel& kernel, const void* a, const void* b, const void* c) {
  const std::int64_t batch = kernel.shape[0], m = kernel.shape[1], n = kernel.shape[2], k = kernel.shape[3];
  const bool fp8 = kernel.precision == Precision::fp8;
  const bool a_by_depth = kernel.pass == Pass::backward_weight && !fp8;
  const bool b_by_depth = kernel.pass != Pass::forward && !fp8;
  const Stored of_a = fp8 && kernel.pass != Pass::forward ? Stored::e5m2 : stored_as(kernel.precision);
  const Values left = read_values(of_a, a, batch * m * k);
  const Values right = read_values(stored_as(kernel.precision), b, batch * k * n);
  Expected expected{c, stored_as(result_of(kernel.precision)), {}};
  for (std::int64_t one = 0; one < batch; ++one) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += left[index(one * m * k + (a_by_depth ? p * m + i : i * k + p))] *
                 right[index(one * k * n + (b_by_depth ? p * n + j : j * k + p))];
        }
        expected.values.push_back(sum);
      }
    }
  }
  return expected;
}

double error_of(const Expected& expected, const Values& got) {
  double scale = expected.scale;
  if (scale == 0) {
    double squares = 0, numbers = 0;
    for (const double value : expected.values) {
      squares += std::isfinite(value) ? value * value : 0;
      numbers += std::isfinite(value) ? 1 : 0;
    }
    scale = std::sqrt(squares / std::max(numbers, 1.0));
  }
  double worst = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double want = expected.values[i];
    if (!std::isfinite(want) || !std::isfinite(got.at(i))) {
      worst = std::isfinite(want) == std::isfinite(got[i]) ? worst : std::numeric_limits<double>::infinity();
      continue;
    }
    worst = std::max(worst, std::abs(got[i] - want) / std::max(std::abs(want) + scale, 1e-30));
  }
  return worst;
}

} // namespace stagecraft::gpu
