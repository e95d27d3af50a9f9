// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/work/perceptron.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/random.hpp"

namespace stagecraft::pipeline {
namespace {

using Eigen::MatrixXd;

MatrixXd normal_matrix(Random& random, int rows, int columns, double deviation) {
  return MatrixXd::NullaryExpr(rows, columns, [&] { return deviation * random.normal(); });
}

} // namespace

Layers make_perceptron(int layers, int width, std::uint64_t seed) {
  Random random(seed);
  Layers made;
  for (int i = 0; i < layers; ++i) {
    made.push_back({normal_matrix(random, width, width, 1 / std::sqrt(width)), Eigen::VectorXd::Zero(width)});
  }
  return made;
}

std::vector<MatrixXd> forward(const Layers& layers, const MatrixXd& input, bool last) {
  std::vector<MatrixXd> outputs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const MatrixXd& from = i == 0 ? input : outputs.back();
    MatrixXd sums = (layers[i].weights * from).colwise() + layers[i].bias;
    const bool linear = last && i + 1 == layers.size();
    outputs.push_back(linear ? std::move(sums) : MatrixXd(sums.array().tanh()));
  }
  return outputs;
}

Gradients backward(const Layers& layers, std::span<const MatrixXd> outputs, MatrixXd gradient, bool last) {
  Gradients gradients;
  gradients.sums.resize(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;) {
    const bool linear = last && i + 1 == layers.size();
    gradients.sums[i] = linear ? std::move(gradient) : MatrixXd(gradient.array() * (1 - outputs[i].array().square()));
    gradient = layers[i].weights.transpose() * gradients.sums[i];
  }
  gradients.input = std::move(gradient);
  return gradients;
}

void add_weight_gradients(Layers& total, const MatrixXd& input, std::span<const MatrixXd> outputs,
                          const Gradients& gradients) {
  for (std::size_t i = 0; i < total.size(); ++i) {
    const MatrixXd& from = i == 0 ? input : outputs[i - 1];
    total[i].weights += gradients.sums[i] * from.transpose();
    total[i].bias += gradients.sums[i].rowwise().sum();
  }
}

Layers zeros_like(const Layers& layers) {
  Layers zeros = layers;
  for (Layer& layer : zeros) {
    layer.weights.setZero();
    layer.bias.setZero();
  }
  return zeros;
}

Layers sum(const Layers& layers, double factor, const Layers& other) {
  Layers result = layers;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].weights += factor * other[i].weights;
    result[i].bias += factor * other[i].bias;
  }
  return result;
}

double largest_difference(const Layers& one, const Layers& other) {
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    largest = std::max(largest, (one[i].weights - other[i].weights).cwiseAbs().maxCoeff());
    largest = std::max(largest, (one[i].bias - other[i].bias).cwiseAbs().maxCoeff());
  }
  return largest;
}

Examples make_examples(int width, int samples, std::uint64_t seed, int number) {
  Random teacher(seed, 1), random(seed, 2 + static_cast<std::uint64_t>(number));
  const MatrixXd rule = normal_matrix(teacher, width, width, 1 / std::sqrt(width));
  const MatrixXd inputs = normal_matrix(random, width, samples, 1);
  return {inputs, (rule * inputs).array().tanh()};
}

} // namespace stagecraft::pipeline
