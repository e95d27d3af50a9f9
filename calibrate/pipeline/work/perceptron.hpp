// A multilayer perceptron in double precision, small enough to train in a test: tanh between layers, none after the
// last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include <cstdint>
#include <span>
#include <vector>

namespace stagecraft::pipeline {

/// A layer. Samples are columns of its input.
struct Layer {
  Eigen::MatrixXd weights;
  Eigen::VectorXd bias;
};
using Layers = std::vector<Layer>;

/// `layers` layers of `width`, with random weights of variance 1 / width, by the seed.
Layers make_perceptron(int layers, int width, std::uint64_t seed);

/// The output of each of some consecutive layers for an input. `last`: they end the perceptron.
std::vector<Eigen::MatrixXd> forward(const Layers& layers, const Eigen::MatrixXd& input, bool last);

/// Gradients that backward makes from the gradient of the last output: for each layer the gradient before its tanh, and
/// that of the input.
struct Gradients {
  std::vector<Eigen::MatrixXd> sums;
  Eigen::MatrixXd input;
};
Gradients backward(const Layers& layers, std::span<const Eigen::MatrixXd> outputs, Eigen::MatrixXd gradient, bool last);

/// Adds the gradients of weights and biases to `total`, which has the shapes of the layers.
void add_weight_gradients(Layers& total, const Eigen::MatrixXd& input, std::span<const Eigen::MatrixXd> outputs,
                          const Gradients& gradients);

/// Layers of the same shapes with only zeros.
Layers zeros_like(const Layers& layers);
/// layers + factor * other.
Layers sum(const Layers& layers, double factor, const Layers& other);
/// The largest absolute difference of corresponding numbers.
double largest_difference(const Layers& one, const Layers& other);

/// A micro-batch to learn: a random function of random inputs, the same for the same seed and number.
struct Examples {
  Eigen::MatrixXd inputs, targets;
};
Examples make_examples(int width, int samples, std::uint64_t seed, int number);

} // namespace stagecraft::pipeline
