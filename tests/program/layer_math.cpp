// SPDX-License-Identifier: Apache-2.0
#include "tests/program/layer_math.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>

namespace stagecraft::testing {

// Sizes that do not fit are a finding about a program, never a crash.
inline void fit(bool holds) {
  if (!holds) {
    throw std::runtime_error("sizes do not fit a computation");
  }
}

} // namespace stagecraft::testing

// So are those that Eigen finds, in every build.
#define eigen_assert(condition) ::stagecraft::testing::fit(static_cast<bool>(condition))
#include <Eigen/Dense>

namespace stagecraft::testing {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;

// All leading dimensions as rows.
ConstView rows_of(const Numbers& numbers) {
  const std::int64_t columns = numbers.sizes.back();
  return {numbers.values.data(), static_cast<std::int64_t>(numbers.values.size()) / columns, columns};
}
View rows_of(Numbers& numbers) {
  const std::int64_t columns = numbers.sizes.back();
  return {numbers.values.data(), static_cast<std::int64_t>(numbers.values.size()) / columns, columns};
}

Numbers with_last(const Numbers& like, std::int64_t size) {
  auto sizes = like.sizes;
  sizes.back() = size;
  return zeros(sizes);
}

constexpr double kEpsilon = 1e-5;

// The logistic function, and the unit that weighs its argument with it.
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}

// Softmax of scores of one head: row i, of token `first` + i, sees the columns of tokens up to it.
Matrix causal_softmax(const Matrix& scores, std::int64_t first) {
  fit(first >= 0 && first + scores.rows() <= scores.cols());
  Matrix weights = Matrix::Zero(scores.rows(), scores.cols());
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const Eigen::Index seen = first + i + 1;
    const double top = scores.row(i).head(seen).maxCoeff();
    weights.row(i).head(seen) = (scores.row(i).head(seen).array() - top).exp();
    weights.row(i) /= weights.row(i).sum();
  }
  return weights;
}

// The heads of one sample: where queries, keys and values begin in a row. Keys and values stand behind the queries, or,
// where a second input has them, at the front of that.
struct Heads {
  std::int64_t width, shared, groups, tokens, samples, stride, keys_begin;
  const Numbers& others; // keys and values
  Heads(const Reads& reads, std::int64_t head_width, std::int64_t queries_per_key)
      : width(head_width), shared(queries_per_key), groups(0), tokens(0), samples(0), stride(0), keys_begin(0),
        others(*reads.inputs.at(reads.inputs.size() > 1 ? 1 : 0)) {
    const Numbers& input = *reads.inputs.at(0);
    fit(input.sizes.size() == 3 && others.sizes.size() == 3 && input.sizes[0] == others.sizes[0]);
    stride = input.sizes.back();
    groups = stride / (width * (shared + 2));
    tokens = input.sizes[1];
    samples = input.sizes[0];
    keys_begin = reads.inputs.size() > 1 ? 0 : heads() * width;
    fit(groups * width * (shared + 2) == stride && keys_begin + 2 * groups * width == others.sizes.back());
  }
  std::int64_t heads() const { return groups * shared; }
  std::int64_t all_tokens() const { return others.sizes[1]; }
  std::int64_t query(std::int64_t head) const { return head * width; }
  std::int64_t key(std::int64_t head) const { return keys_begin + head / shared * width; }
  std::int64_t value(std::int64_t head) const { return keys_begin + (groups + head / shared) * width; }
};

} // namespace

Math linear_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    const Numbers& x = *reads.inputs.at(0);
    const Numbers& w = *reads.parameters.at(0);
    fit(w.sizes.size() == 2 && x.sizes.back() == w.sizes[1]);
    Numbers y = with_last(x, w.sizes[0]);
    rows_of(y) = rows_of(x) * rows_of(w).transpose();
    return y;
  };
  math.backward_input = [](const Reads& reads, int) {
    const Numbers& w = *reads.parameters.at(0);
    fit(reads.gradient->sizes.back() == w.sizes[0]);
    Numbers dx = with_last(*reads.gradient, w.sizes[1]);
    rows_of(dx) = rows_of(*reads.gradient) * rows_of(w);
    return dx;
  };
  math.backward_weight = [](const Reads& reads, int) {
    const Numbers& x = *reads.inputs.at(0);
    fit(rows_of(x).rows() == rows_of(*reads.gradient).rows());
    Numbers dw = zeros({reads.gradient->sizes.back(), x.sizes.back()});
    rows_of(dw) = rows_of(*reads.gradient).transpose() * rows_of(x);
    return dw;
  };
  return math;
}

Math adapted_linear_math() {
  const Math plain = linear_math();
  Math math;
  math.forward = [=](const Reads& reads) {
    const Numbers &x = *reads.inputs.at(0), &a = *reads.parameters.at(1), &b = *reads.parameters.at(2);
    fit(a.sizes.size() == 2 && b.sizes.size() == 2 && a.sizes[1] == x.sizes.back() && b.sizes[1] == a.sizes[0]);
    Numbers y = plain.forward(reads);
    fit(y.sizes.back() == b.sizes[0]);
    rows_of(y) += rows_of(x) * rows_of(a).transpose() * rows_of(b).transpose();
    return y;
  };
  math.backward_input = [=](const Reads& reads, int index) {
    const Numbers &a = *reads.parameters.at(1), &b = *reads.parameters.at(2);
    Numbers dx = plain.backward_input(reads, index);
    fit(b.sizes[0] == reads.gradient->sizes.back() && a.sizes[1] == dx.sizes.back());
    rows_of(dx) += rows_of(*reads.gradient) * rows_of(b) * rows_of(a);
    return dx;
  };
  math.backward_weight = [](const Reads& reads, int index) {
    const Numbers &x = *reads.inputs.at(0), &a = *reads.parameters.at(1), &b = *reads.parameters.at(2);
    fit(rows_of(x).rows() == rows_of(*reads.gradient).rows() && a.sizes[1] == x.sizes.back() &&
        b.sizes[0] == reads.gradient->sizes.back());
    Numbers gradient = zeros(index == 1 ? a.sizes : b.sizes);
    if (index == 1) {
      rows_of(gradient) = (rows_of(*reads.gradient) * rows_of(b)).transpose() * rows_of(x);
    } else {
      rows_of(gradient) = rows_of(*reads.gradient).transpose() * (rows_of(x) * rows_of(a).transpose());
    }
    return gradient;
  };
  return math;
}

Math rms_norm_math() {
  const auto inverse_norms = [](const Numbers& x) {
    return Eigen::VectorXd((rows_of(x).rowwise().squaredNorm() / static_cast<double>(x.sizes.back())).array() +
                           kEpsilon)
        .array()
        .rsqrt()
        .matrix()
        .eval();
  };
  Math math;
  math.forward = [=](const Reads& reads) {
    const Numbers& x = *reads.inputs.at(0);
    fit(reads.parameters.at(0)->sizes.back() == x.sizes.back());
    Numbers y = zeros(x.sizes);
    rows_of(y) = inverse_norms(x).asDiagonal() * rows_of(x) * rows_of(*reads.parameters[0]).row(0).asDiagonal();
    return y;
  };
  math.backward_input = [=](const Reads& reads, int) {
    const Numbers& x = *reads.inputs.at(0);
    fit(reads.gradient->sizes == x.sizes);
    const Eigen::VectorXd r = inverse_norms(x);
    const Matrix g = rows_of(*reads.gradient) * rows_of(*reads.parameters.at(0)).row(0).asDiagonal();
    const Eigen::VectorXd dot = g.cwiseProduct(rows_of(x)).rowwise().sum() / static_cast<double>(x.sizes.back());
    Numbers dx = zeros(x.sizes);
    rows_of(dx) = r.asDiagonal() * g;
    rows_of(dx) -= (r.array().cube() * dot.array()).matrix().asDiagonal() * rows_of(x);
    return dx;
  };
  math.backward_weight = [=](const Reads& reads, int) {
    const Numbers& x = *reads.inputs.at(0);
    fit(reads.gradient->sizes == x.sizes);
    const Matrix normalized = inverse_norms(x).asDiagonal() * rows_of(x);
    Numbers dw = zeros({x.sizes.back()});
    rows_of(dw) = normalized.cwiseProduct(rows_of(*reads.gradient)).colwise().sum();
    return dw;
  };
  return math;
}

namespace {

// Columns of all rows, as numbers of their own.
Numbers columns_of(const Numbers& all, std::int64_t first, std::int64_t count) {
  Numbers part = with_last(all, count);
  rows_of(part) = rows_of(all).middleCols(first, count);
  return part;
}

// Calls action(first column, the reads of a group's features).
void for_each_group(const Reads& reads, std::int64_t width,
                    const std::function<void(std::int64_t, const Reads&)>& action) {
  const Numbers& x = *reads.inputs.at(0);
  fit(x.sizes.back() % width == 0);
  for (std::int64_t first = 0; first < x.sizes.back(); first += width) {
    const Numbers input = columns_of(x, first, width), weight = columns_of(*reads.parameters.at(0), first, width);
    const Numbers gradient = reads.gradient == nullptr ? Numbers{} : columns_of(*reads.gradient, first, width);
    Reads part = reads;
    part.inputs = {&input};
    part.parameters = {&weight};
    part.gradient = reads.gradient == nullptr ? nullptr : &gradient;
    action(first, part);
  }
}

} // namespace

Math grouped_rms_norm_math(std::int64_t width) {
  const Math plain = rms_norm_math();
  const auto of_groups = [=](const Reads& reads, Numbers result, const std::function<Numbers(const Reads&)>& compute) {
    for_each_group(reads, width, [&](std::int64_t first, const Reads& part) {
      rows_of(result).middleCols(first, width) = rows_of(compute(part));
    });
    return result;
  };
  Math math;
  math.forward = [=](const Reads& reads) { return of_groups(reads, zeros(reads.inputs.at(0)->sizes), plain.forward); };
  math.backward_input = [=](const Reads& reads, int) {
    return of_groups(reads, zeros(reads.inputs.at(0)->sizes),
                     [&](const Reads& part) { return plain.backward_input(part, 0); });
  };
  math.backward_weight = [=](const Reads& reads, int) {
    return of_groups(reads, zeros(reads.parameters.at(0)->sizes),
                     [&](const Reads& part) { return plain.backward_weight(part, 0); });
  };
  return math;
}

namespace {

// One head of a state space in one sample: y_t = sum over s <= t of decay^(t-s) step_s (C_t . B_s) v_s, + skip v_t.
struct StateHead {
  Matrix values, written, read; // v, B and C: [tokens, …]
  Eigen::VectorXd steps;
  double decay, skip;

  double power(Eigen::Index t, Eigen::Index s) const { return std::pow(decay, static_cast<double>(t - s)); }
  double score(Eigen::Index t, Eigen::Index s) const { return read.row(t).dot(written.row(s)); }
};

struct StateSpaceSizes {
  std::int64_t width, state, heads_of_group;
};

// Calls action(first row of the sample, head, it).
void for_each_head(const Reads& reads, const StateSpaceSizes& sizes,
                   const std::function<void(std::int64_t, std::int64_t, const StateHead&)>& action) {
  const Numbers &values = *reads.inputs.at(0), &vectors = *reads.inputs.at(1), &steps = *reads.inputs.at(2);
  const std::int64_t samples = values.sizes[0], tokens = values.sizes[1], heads = steps.sizes[2];
  const std::int64_t groups = heads / sizes.heads_of_group;
  fit(values.sizes[2] == heads * sizes.width && vectors.sizes[2] == 2 * groups * sizes.state &&
      reads.parameters.at(0)->sizes[0] == heads);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int64_t row = sample * tokens;
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t group = head / sizes.heads_of_group;
      const auto number = [&](int parameter) { return reads.parameters.at(parameter)->values.at(head); };
      action(row, head,
             {.values = rows_of(values).block(row, head * sizes.width, tokens, sizes.width),
              .written = rows_of(vectors).block(row, group * sizes.state, tokens, sizes.state),
              .read = rows_of(vectors).block(row, (groups + group) * sizes.state, tokens, sizes.state),
              .steps = rows_of(steps).block(row, head, tokens, 1).array() + number(2),
              .decay = number(0),
              .skip = number(1)});
    }
  }
}

// What the gradient of a head's output makes of all that it reads.
struct StateSlopes {
  Matrix values, written, read;
  Eigen::VectorXd steps;
  double decay = 0, skip = 0;
};

StateSlopes slopes_of(const StateHead& of, const Matrix& gradient) {
  StateSlopes slopes{of.skip * gradient, Matrix::Zero(of.written.rows(), of.written.cols()),
                     Matrix::Zero(of.read.rows(), of.read.cols()), Eigen::VectorXd::Zero(of.steps.size())};
  slopes.skip = gradient.cwiseProduct(of.values).sum();
  for (Eigen::Index t = 0; t < gradient.rows(); ++t) {
    for (Eigen::Index s = 0; s <= t; ++s) {
      const double along = of.values.row(s).dot(gradient.row(t)), power = of.power(t, s);
      slopes.values.row(s) += power * of.steps[s] * of.score(t, s) * gradient.row(t);
      slopes.steps[s] += power * of.score(t, s) * along;
      slopes.written.row(s) += power * of.steps[s] * along * of.read.row(t);
      slopes.read.row(t) += power * of.steps[s] * along * of.written.row(s);
      slopes.decay += t == s ? 0 : static_cast<double>(t - s) * power / of.decay * of.steps[s] * of.score(t, s) * along;
    }
  }
  return slopes;
}

} // namespace

Math state_space_math(std::int64_t width, std::int64_t state, std::int64_t heads_of_group) {
  const StateSpaceSizes sizes{width, state, heads_of_group};
  Math math;
  math.forward = [=](const Reads& reads) {
    Numbers y = zeros(reads.inputs.at(0)->sizes);
    for_each_head(reads, sizes, [&](std::int64_t row, std::int64_t head, const StateHead& of) {
      for (Eigen::Index t = 0; t < of.values.rows(); ++t) {
        auto out = rows_of(y).row(row + t).segment(head * width, width);
        out = of.skip * of.values.row(t);
        for (Eigen::Index s = 0; s <= t; ++s) {
          out += of.power(t, s) * of.steps[s] * of.score(t, s) * of.values.row(s);
        }
      }
    });
    return y;
  };
  math.backward_input = [=](const Reads& reads, int index) {
    Numbers dx = zeros(reads.inputs.at(static_cast<std::size_t>(index))->sizes);
    const std::int64_t groups = reads.inputs.at(2)->sizes[2] / heads_of_group;
    for_each_head(reads, sizes, [&](std::int64_t row, std::int64_t head, const StateHead& of) {
      const std::int64_t tokens = of.values.rows(), group = head / heads_of_group;
      const StateSlopes slopes = slopes_of(of, rows_of(*reads.gradient).block(row, head * width, tokens, width));
      if (index == 0) {
        rows_of(dx).block(row, head * width, tokens, width) += slopes.values;
      } else if (index == 1) {
        rows_of(dx).block(row, group * state, tokens, state) += slopes.written;
        rows_of(dx).block(row, (groups + group) * state, tokens, state) += slopes.read;
      } else {
        rows_of(dx).block(row, head, tokens, 1) += slopes.steps;
      }
    });
    return dx;
  };
  math.backward_weight = [=](const Reads& reads, int index) {
    Numbers dw = zeros(reads.parameters.at(static_cast<std::size_t>(index))->sizes);
    for_each_head(reads, sizes, [&](std::int64_t row, std::int64_t head, const StateHead& of) {
      const StateSlopes slopes =
          slopes_of(of, rows_of(*reads.gradient).block(row, head * width, of.values.rows(), width));
      dw.values.at(static_cast<std::size_t>(head)) += index == 0   ? slopes.decay
                                                      : index == 1 ? slopes.skip
                                                                   : slopes.steps.sum();
    });
    return dw;
  };
  return math;
}

Math gelu_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    Numbers y = *reads.inputs.at(0);
    rows_of(y) = rows_of(y).unaryExpr(&gelu).eval();
    return y;
  };
  math.backward_input = [](const Reads& reads, int) {
    fit(reads.gradient->sizes == reads.inputs.at(0)->sizes);
    Numbers dx = *reads.gradient;
    rows_of(dx).array() *= rows_of(*reads.inputs[0]).unaryExpr(&gelu_slope).array();
    return dx;
  };
  return math;
}

Math add_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    Numbers sum = *reads.inputs.at(0);
    for (std::size_t i = 1; i < reads.inputs.size(); ++i) {
      fit(sum.sizes == reads.inputs[i]->sizes);
      rows_of(sum) += rows_of(*reads.inputs[i]);
    }
    return sum;
  };
  math.backward_input = [](const Reads& reads, int) { return *reads.gradient; };
  return math;
}

Math multiply_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    Numbers product = *reads.inputs.at(0);
    fit(product.sizes == reads.inputs.at(1)->sizes);
    rows_of(product).array() *= rows_of(*reads.inputs[1]).array();
    return product;
  };
  math.backward_input = [](const Reads& reads, int index) {
    Numbers dx = *reads.gradient;
    fit(dx.sizes == reads.inputs.at(1 - index)->sizes);
    rows_of(dx).array() *= rows_of(*reads.inputs[1 - index]).array();
    return dx;
  };
  return math;
}

Math gated_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    const Numbers& x = *reads.inputs.at(0);
    const std::int64_t size = x.sizes.back() / 2;
    Numbers y = with_last(x, size);
    rows_of(y) = rows_of(x).leftCols(size).unaryExpr(&silu).cwiseProduct(rows_of(x).rightCols(size));
    return y;
  };
  math.backward_input = [](const Reads& reads, int) {
    const Numbers& x = *reads.inputs.at(0);
    const std::int64_t size = x.sizes.back() / 2;
    fit(reads.gradient->sizes.back() == size && rows_of(x).rows() == rows_of(*reads.gradient).rows());
    const Matrix gate = rows_of(x).leftCols(size);
    const Matrix value = rows_of(x).rightCols(size);
    Numbers dx = zeros(x.sizes);
    rows_of(dx).leftCols(size) = rows_of(*reads.gradient).cwiseProduct(value).cwiseProduct(gate.unaryExpr(&silu_slope));
    rows_of(dx).rightCols(size) = rows_of(*reads.gradient).cwiseProduct(gate.unaryExpr(&silu));
    return dx;
  };
  return math;
}

Math attention_math(std::int64_t width, std::int64_t queries_per_key) {
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  Math math;
  math.forward = [=](const Reads& reads) {
    const Numbers& x = *reads.inputs.at(0);
    const Heads at(reads, width, queries_per_key);
    Numbers y = with_last(x, at.heads() * width);
    for (std::int64_t sample = 0; sample < at.samples; ++sample) {
      const auto in = rows_of(x).middleRows(sample * at.tokens, at.tokens);
      const auto other = rows_of(at.others).middleRows(sample * at.all_tokens(), at.all_tokens());
      auto out = rows_of(y).middleRows(sample * at.tokens, at.tokens);
      for (std::int64_t head = 0; head < at.heads(); ++head) {
        const Matrix scores =
            scale * in.middleCols(at.query(head), width) * other.middleCols(at.key(head), width).transpose();
        out.middleCols(head * width, width) =
            causal_softmax(scores, reads.first_token) * other.middleCols(at.value(head), width);
      }
    }
    return y;
  };
  // The gradient of an input has what belongs to it: of keys and values only where it has these.
  math.backward_input = [=](const Reads& reads, int index) {
    const Numbers& x = *reads.inputs.at(0);
    const Heads at(reads, width, queries_per_key);
    fit(reads.gradient->sizes.back() == at.heads() * width && rows_of(*reads.gradient).rows() == rows_of(x).rows());
    const bool of_keys = reads.inputs.size() == 1 || index == 1, of_queries = index == 0;
    Numbers dx = zeros(reads.inputs.at(static_cast<std::size_t>(index))->sizes);
    const std::int64_t rows = dx.sizes[1];
    for (std::int64_t sample = 0; sample < at.samples; ++sample) {
      const auto in = rows_of(x).middleRows(sample * at.tokens, at.tokens);
      const auto other = rows_of(at.others).middleRows(sample * at.all_tokens(), at.all_tokens());
      const auto gradient = rows_of(*reads.gradient).middleRows(sample * at.tokens, at.tokens);
      auto out = rows_of(dx).middleRows(sample * rows, rows);
      for (std::int64_t head = 0; head < at.heads(); ++head) {
        const Matrix query = in.middleCols(at.query(head), width);
        const Matrix key = other.middleCols(at.key(head), width);
        const Matrix weights = causal_softmax(scale * query * key.transpose(), reads.first_token);
        const Matrix from = gradient.middleCols(head * width, width);
        const Matrix slope = from * other.middleCols(at.value(head), width).transpose();
        const Eigen::VectorXd mean = slope.cwiseProduct(weights).rowwise().sum();
        const Matrix scores = weights.cwiseProduct(slope.colwise() - mean) * scale;
        if (of_queries) {
          out.middleCols(at.query(head), width) += scores * key;
        }
        if (of_keys) {
          out.middleCols(at.key(head), width) += scores.transpose() * query;
          out.middleCols(at.value(head), width) += weights.transpose() * from;
        }
      }
    }
    return dx;
  };
  return math;
}

Math keys_math(std::int64_t width, std::int64_t queries_per_key) {
  Math math;
  math.forward = [=](const Reads& reads) {
    const Numbers& x = *reads.inputs.at(0);
    const std::int64_t groups = x.sizes.back() / (width * (queries_per_key + 2));
    fit(groups * width * (queries_per_key + 2) == x.sizes.back());
    return slice_math(groups * queries_per_key * width, x.sizes.back()).forward(reads);
  };
  math.backward_input = [=](const Reads& reads, int) {
    const std::int64_t keys = reads.gradient->sizes.back(), queries = keys / 2 * queries_per_key;
    Numbers dx = with_last(*reads.gradient, queries + keys);
    rows_of(dx).rightCols(keys) = rows_of(*reads.gradient);
    return dx;
  };
  return math;
}

namespace {

// One head of latent attention in one sample.
struct LatentHead {
  Matrix query, key, value, query_rotary, key_rotary;
  Matrix weights(double scale, std::int64_t first_token) const {
    return causal_softmax(scale * (query * key.transpose() + query_rotary * key_rotary.transpose()), first_token);
  }
};

} // namespace

Math latent_attention_math(std::int64_t without_rotary, std::int64_t rotary, std::int64_t value) {
  const std::int64_t d = without_rotary, r = rotary, e = value;
  const double scale = 1 / std::sqrt(static_cast<double>(d + r));
  const auto head_of = [=](const Reads& reads, std::int64_t sample, std::int64_t head) {
    const auto part = [&](int input, std::int64_t begin, std::int64_t width) -> Matrix {
      const std::int64_t tokens = reads.inputs.at(input)->sizes.at(1);
      return rows_of(*reads.inputs.at(input)).block(sample * tokens, begin, tokens, width);
    };
    return LatentHead{part(0, head * (d + r), d), part(1, head * (d + e), d), part(1, head * (d + e) + d, e),
                      part(0, head * (d + r) + d, r), part(2, 0, r)};
  };
  const auto heads_of = [=](const Reads& reads) {
    const Numbers &query = *reads.inputs.at(0), &key_value = *reads.inputs.at(1);
    const std::int64_t heads = query.sizes.back() / (d + r);
    fit(heads * (d + r) == query.sizes.back() && heads * (d + e) == key_value.sizes.back() &&
        reads.inputs.at(2)->sizes.back() == r && key_value.sizes[1] == reads.inputs[2]->sizes[1]);
    return heads;
  };
  Math math;
  math.forward = [=](const Reads& reads) {
    const std::int64_t heads = heads_of(reads);
    const std::int64_t tokens = reads.inputs[0]->sizes[1];
    Numbers y = with_last(*reads.inputs[0], heads * e);
    for (std::int64_t sample = 0; sample < y.sizes[0]; ++sample) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const LatentHead one = head_of(reads, sample, head);
        rows_of(y).block(sample * tokens, head * e, tokens, e) = one.weights(scale, reads.first_token) * one.value;
      }
    }
    return y;
  };
  math.backward_input = [=](const Reads& reads, int index) {
    const std::int64_t heads = heads_of(reads);
    const std::int64_t tokens = reads.inputs[0]->sizes[1];
    fit(reads.gradient->sizes.back() == heads * e && reads.gradient->sizes[1] == tokens);
    Numbers dx = zeros(reads.inputs.at(static_cast<std::size_t>(index))->sizes);
    for (std::int64_t sample = 0; sample < dx.sizes[0]; ++sample) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const LatentHead one = head_of(reads, sample, head);
        const Matrix from = rows_of(*reads.gradient).block(sample * tokens, head * e, tokens, e);
        const Matrix weights = one.weights(scale, reads.first_token);
        const Matrix slope = from * one.value.transpose();
        const Eigen::VectorXd mean = slope.cwiseProduct(weights).rowwise().sum();
        const Matrix scores = weights.cwiseProduct(slope.colwise() - mean) * scale;
        const std::int64_t rows = dx.sizes[1];
        const auto into = [&](std::int64_t begin, std::int64_t width) {
          return rows_of(dx).block(sample * rows, begin, rows, width);
        };
        if (index == 0) {
          into(head * (d + r), d) = scores * one.key;
          into(head * (d + r) + d, r) = scores * one.key_rotary;
        } else if (index == 1) {
          into(head * (d + e), d) = scores.transpose() * one.query;
          into(head * (d + e) + d, e) = weights.transpose() * from;
        } else {
          into(0, r) += scores.transpose() * one.query_rotary;
        }
      }
    }
    return dx;
  };
  return math;
}

Math slice_math(std::int64_t begin, std::int64_t end) {
  Math math;
  math.forward = [=](const Reads& reads) {
    const Numbers& x = *reads.inputs.at(0);
    fit(end <= x.sizes.back());
    Numbers y = with_last(x, end - begin);
    rows_of(y) = rows_of(x).middleCols(begin, end - begin);
    return y;
  };
  math.backward_input = [=](const Reads& reads, int) {
    Numbers dx = zeros(reads.inputs.at(0)->sizes);
    fit(end <= dx.sizes.back() && reads.gradient->sizes.back() == end - begin &&
        rows_of(*reads.gradient).rows() == rows_of(dx).rows());
    rows_of(dx).middleCols(begin, end - begin) = rows_of(*reads.gradient);
    return dx;
  };
  return math;
}

Math concat_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    const Numbers &one = *reads.inputs.at(0), &other = *reads.inputs.at(1);
    fit(rows_of(one).rows() == rows_of(other).rows());
    Numbers y = with_last(one, one.sizes.back() + other.sizes.back());
    rows_of(y) << rows_of(one), rows_of(other);
    return y;
  };
  math.backward_input = [](const Reads& reads, int index) {
    Numbers dx = zeros(reads.inputs.at(static_cast<std::size_t>(index))->sizes);
    const std::int64_t begin = index == 0 ? 0 : reads.inputs.at(0)->sizes.back();
    fit(begin + dx.sizes.back() <= reads.gradient->sizes.back() &&
        rows_of(*reads.gradient).rows() == rows_of(dx).rows());
    rows_of(dx) = rows_of(*reads.gradient).middleCols(begin, dx.sizes.back());
    return dx;
  };
  return math;
}

namespace {

// A choice is the number of an expert plus its weight.
std::int64_t expert_of(double choice) { return static_cast<std::int64_t>(std::floor(choice)); }
double weight_of(double choice) { return choice - std::floor(choice); }

Matrix probabilities_of(const Reads& reads) {
  const Numbers& x = *reads.inputs.at(0);
  const Numbers& w = *reads.parameters.at(0);
  fit(w.sizes.size() == 2 && x.sizes.back() == w.sizes[1]);
  Matrix result = rows_of(x) * rows_of(w).transpose();
  for (Eigen::Index token = 0; token < result.rows(); ++token) {
    result.row(token) = (result.row(token).array() - result.row(token).maxCoeff()).exp().eval();
    result.row(token) /= result.row(token).sum();
  }
  return result;
}

// The experts of largest probability, the larger first.
std::vector<std::int64_t> chosen(const Matrix& probabilities, Eigen::Index token, std::int64_t top) {
  std::vector<std::int64_t> experts(static_cast<std::size_t>(probabilities.cols()));
  std::iota(experts.begin(), experts.end(), 0);
  std::sort(experts.begin(), experts.end(),
            [&](auto a, auto b) { return probabilities(token, a) > probabilities(token, b); });
  experts.resize(static_cast<std::size_t>(top));
  return experts;
}

// The gradient of each token's logits: only weights that were chosen have one.
Matrix logit_gradient(const Reads& reads, std::int64_t top) {
  const Matrix probabilities = probabilities_of(reads);
  fit(reads.gradient->sizes.back() == top && rows_of(*reads.gradient).rows() == probabilities.rows());
  Matrix gradient = Matrix::Zero(probabilities.rows(), probabilities.cols());
  for (Eigen::Index token = 0; token < probabilities.rows(); ++token) {
    const auto experts = chosen(probabilities, token, top);
    for (std::size_t j = 0; j < experts.size(); ++j) {
      gradient(token, experts[j]) = rows_of(*reads.gradient)(token, static_cast<Eigen::Index>(j));
    }
    const double mean = gradient.row(token).dot(probabilities.row(token));
    gradient.row(token) = ((gradient.row(token).array() - mean) * probabilities.row(token).array()).eval();
  }
  return gradient;
}

// Rows of each token, from sizes of rows [samples, rows, …] and choices [samples, tokens, top].
void fit_rows(const Numbers& rows, const Numbers& choices) {
  fit(rows.sizes.size() == 3 && choices.sizes.size() == 3 && rows.sizes[1] == choices.sizes[1] * choices.sizes[2]);
}

Numbers with_rows(const Numbers& like, std::int64_t rows) { return zeros({like.sizes[0], rows, like.sizes[2]}); }

// Adds up `top` rows after each other.
Numbers summed_rows(const Numbers& rows, std::int64_t top) {
  fit(rows.sizes.size() == 3 && rows.sizes[1] % top == 0);
  Numbers sum = with_rows(rows, rows.sizes[1] / top);
  for (Eigen::Index row = 0; row < rows_of(rows).rows(); ++row) {
    rows_of(sum).row(row / top) += rows_of(rows).row(row);
  }
  return sum;
}

Numbers repeated_rows(const Numbers& tokens, std::int64_t top) {
  Numbers rows = with_rows(tokens, tokens.sizes[1] * top);
  for (Eigen::Index row = 0; row < rows_of(rows).rows(); ++row) {
    rows_of(rows).row(row) = rows_of(tokens).row(row / top);
  }
  return rows;
}

// The weights [out, in] of one expert of a parameter [experts, out, in].
ConstView weights_of(const Numbers& parameter, std::int64_t expert) {
  fit(parameter.sizes.size() == 3 && expert >= 0 && expert < parameter.sizes[0]);
  return {parameter.values.data() + expert * parameter.sizes[1] * parameter.sizes[2], parameter.sizes[1],
          parameter.sizes[2]};
}

} // namespace

Math router_math(std::int64_t top) {
  Math math;
  math.forward = [=](const Reads& reads) {
    const Matrix probabilities = probabilities_of(reads);
    Numbers choices = with_last(*reads.inputs[0], top);
    for (Eigen::Index token = 0; token < probabilities.rows(); ++token) {
      const auto experts = chosen(probabilities, token, top);
      for (std::size_t j = 0; j < experts.size(); ++j) {
        rows_of(choices)(token, static_cast<Eigen::Index>(j)) =
            static_cast<double>(experts[j]) + probabilities(token, experts[j]);
      }
    }
    return choices;
  };
  math.backward_input = [=](const Reads& reads, int) {
    Numbers dx = zeros(reads.inputs.at(0)->sizes);
    rows_of(dx) = logit_gradient(reads, top) * rows_of(*reads.parameters.at(0));
    return dx;
  };
  math.backward_weight = [=](const Reads& reads, int) {
    Numbers dw = zeros(reads.parameters.at(0)->sizes);
    rows_of(dw) = logit_gradient(reads, top).transpose() * rows_of(*reads.inputs.at(0));
    return dw;
  };
  return math;
}

Math dispatch_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    fit(reads.inputs.at(0)->sizes[1] == reads.inputs.at(1)->sizes[1]);
    return repeated_rows(*reads.inputs[0], reads.inputs[1]->sizes[2]);
  };
  math.backward_input = [](const Reads& reads, int) {
    fit_rows(*reads.gradient, *reads.inputs.at(1));
    return summed_rows(*reads.gradient, reads.inputs[1]->sizes[2]);
  };
  return math;
}

namespace {

// The place of a row's expert among those of the rank; nothing for a row that is elsewhere.
std::optional<std::int64_t> expert_here(const Reads& reads, std::int64_t row, std::int64_t experts) {
  const double choice = reads.inputs.at(1)->values[static_cast<std::size_t>(row)];
  if (choice < 0) {
    return std::nullopt;
  }
  const std::int64_t expert = expert_of(choice) - reads.first_expert;
  fit(expert >= 0 && expert < experts);
  return expert;
}

} // namespace

Math expert_linear_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    const Numbers &x = *reads.inputs.at(0), &choices = *reads.inputs.at(1), &w = *reads.parameters.at(0);
    fit_rows(x, choices);
    fit(w.sizes.size() == 3 && x.sizes.back() == w.sizes[2]);
    Numbers y = with_last(x, w.sizes[1]);
    for (Eigen::Index row = 0; row < rows_of(x).rows(); ++row) {
      if (const auto expert = expert_here(reads, row, w.sizes[0])) {
        rows_of(y).row(row) = rows_of(x).row(row) * weights_of(w, *expert).transpose();
      }
    }
    return y;
  };
  math.backward_input = [](const Reads& reads, int) {
    const Numbers &choices = *reads.inputs.at(1), &w = *reads.parameters.at(0);
    fit_rows(*reads.gradient, choices);
    fit(w.sizes.size() == 3 && reads.gradient->sizes.back() == w.sizes[1]);
    Numbers dx = with_last(*reads.gradient, w.sizes[2]);
    for (Eigen::Index row = 0; row < rows_of(dx).rows(); ++row) {
      if (const auto expert = expert_here(reads, row, w.sizes[0])) {
        rows_of(dx).row(row) = rows_of(*reads.gradient).row(row) * weights_of(w, *expert);
      }
    }
    return dx;
  };
  math.backward_weight = [](const Reads& reads, int) {
    const Numbers &x = *reads.inputs.at(0), &choices = *reads.inputs.at(1);
    fit_rows(x, choices);
    Numbers dw = zeros(reads.parameters.at(0)->sizes);
    const std::int64_t out = dw.sizes[1], in = dw.sizes[2];
    fit_rows(*reads.gradient, choices);
    fit(reads.gradient->sizes.back() == out && x.sizes.back() == in);
    for (Eigen::Index row = 0; row < rows_of(x).rows(); ++row) {
      if (const auto expert = expert_here(reads, row, dw.sizes[0])) {
        View weights(dw.values.data() + *expert * out * in, out, in);
        weights += rows_of(*reads.gradient).row(row).transpose() * rows_of(x).row(row);
      }
    }
    return dw;
  };
  return math;
}

Math weighted_gated_math() {
  const Math plain = gated_math();
  const auto weigh = [](Numbers rows, const Numbers& choices) {
    fit_rows(rows, choices);
    for (Eigen::Index row = 0; row < rows_of(rows).rows(); ++row) {
      const double choice = choices.values[static_cast<std::size_t>(row)];
      rows_of(rows).row(row) *= choice < 0 ? 0 : weight_of(choice);
    }
    return rows;
  };
  Math math;
  math.forward = [=](const Reads& reads) { return weigh(plain.forward(reads), *reads.inputs.at(1)); };
  math.backward_input = [=](const Reads& reads, int index) {
    const Numbers& choices = *reads.inputs.at(1);
    if (index == 0) {
      const Numbers weighed = weigh(*reads.gradient, choices);
      Reads of_rows = reads;
      of_rows.gradient = &weighed;
      return plain.backward_input(of_rows, 0);
    }
    const Numbers rows = plain.forward(reads);
    fit(rows.sizes == reads.gradient->sizes);
    fit_rows(rows, choices);
    Numbers gradient = zeros(choices.sizes);
    for (Eigen::Index row = 0; row < rows_of(rows).rows(); ++row) {
      if (choices.values[static_cast<std::size_t>(row)] >= 0) {
        gradient.values[static_cast<std::size_t>(row)] = rows_of(rows).row(row).dot(rows_of(*reads.gradient).row(row));
      }
    }
    return gradient;
  };
  return math;
}

Math combine_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    fit_rows(*reads.inputs.at(0), *reads.inputs.at(1));
    return summed_rows(*reads.inputs[0], reads.inputs[1]->sizes[2]);
  };
  math.backward_input = [](const Reads& reads, int) {
    return repeated_rows(*reads.gradient, reads.inputs.at(1)->sizes[2]);
  };
  return math;
}

Math embedding_math() {
  Math math;
  math.forward = [](const Reads& reads) {
    const Numbers& words = *reads.inputs.at(0);
    const Numbers& table = *reads.parameters.at(0);
    Numbers y = zeros({words.sizes[0], words.sizes[1], table.sizes[1]});
    for (std::size_t i = 0; i < words.values.size(); ++i) {
      const auto word = static_cast<std::int64_t>(words.values[i]) - reads.first_word;
      if (word >= 0 && word < table.sizes[0]) {
        rows_of(y).row(static_cast<Eigen::Index>(i)) = rows_of(table).row(word);
      }
    }
    return y;
  };
  math.backward_weight = [](const Reads& reads, int) {
    const Numbers& words = *reads.inputs.at(0);
    fit(rows_of(*reads.gradient).rows() == static_cast<Eigen::Index>(words.values.size()));
    Numbers dw = zeros(reads.parameters.at(0)->sizes);
    for (std::size_t i = 0; i < words.values.size(); ++i) {
      const auto word = static_cast<std::int64_t>(words.values[i]) - reads.first_word;
      if (word >= 0 && word < dw.sizes[0]) {
        rows_of(dw).row(word) += rows_of(*reads.gradient).row(static_cast<Eigen::Index>(i));
      }
    }
    return dw;
  };
  return math;
}

Math cross_entropy_math() {
  // The label's column among the words that this rank has; -1: another rank has it.
  const auto column = [](const Reads& reads, std::size_t token) {
    const auto word = static_cast<std::int64_t>(reads.inputs.at(1)->values[token]) - reads.first_word;
    return word >= 0 && word < reads.inputs[0]->sizes.back() ? word : -1;
  };
  Math math;
  math.reduced = [=](const Reads& reads, int index) {
    const Numbers& logits = *reads.inputs.at(0);
    fit(rows_of(logits).rows() == static_cast<Eigen::Index>(reads.inputs.at(1)->values.size()));
    Numbers result = zeros(reads.inputs[1]->sizes);
    for (std::size_t token = 0; token < result.values.size(); ++token) {
      const auto row = rows_of(logits).row(static_cast<Eigen::Index>(token));
      if (index == 0) {
        result.values[token] = row.maxCoeff();
      } else if (index == 1) {
        result.values[token] = (row.array() - reads.reductions.at(0)->values[token]).exp().sum();
      } else {
        const auto word = column(reads, token);
        result.values[token] = word < 0 ? 0 : row(word);
      }
    }
    return result;
  };
  math.forward = [=](const Reads& reads) {
    const Numbers& labels = *reads.inputs.at(1);
    Numbers loss = zeros({labels.sizes[0]});
    for (std::size_t token = 0; token < labels.values.size(); ++token) {
      loss.values[token / static_cast<std::size_t>(labels.sizes[1])] +=
          reads.reductions.at(0)->values[token] + std::log(reads.reductions.at(1)->values[token]) -
          reads.reductions.at(2)->values[token];
    }
    return loss;
  };
  math.backward_input = [=](const Reads& reads, int) {
    const Numbers& logits = *reads.inputs.at(0);
    fit(reads.gradient->sizes[0] == logits.sizes[0]);
    Numbers dx = zeros(logits.sizes);
    for (std::size_t token = 0; token < reads.inputs.at(1)->values.size(); ++token) {
      const auto row = static_cast<Eigen::Index>(token);
      rows_of(dx).row(row) = (rows_of(logits).row(row).array() - reads.reductions.at(0)->values[token]).exp() /
                             reads.reductions.at(1)->values[token];
      if (const auto word = column(reads, token); word >= 0) {
        rows_of(dx)(row, word) -= 1;
      }
      rows_of(dx).row(row) *= reads.gradient->values[token / static_cast<std::size_t>(logits.sizes[1])];
    }
    return dx;
  };
  return math;
}

} // namespace stagecraft::testing
