// A multilayer perceptron in double, small enough to train in a test: tanh between its layers, none after the last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include <cstdint>
#include <span>
#include <vector>

namespace stagecraft::pipeline {

/// Samples are columns.
struct Layer {
  Eigen::MatrixXd weights;
  Eigen::VectorXd bias;
};
using Layers = std::vector<Layer>;

/// So many layers of `width`, drawn by the seed; weights of variance 1 / width.
Layers make_perceptron(int layers, int width, std::uint64_t seed);

/// What some layers in a row made of an input: an output each. `last`: they end the perceptron.
std::vector<Eigen::MatrixXd> forward(const Layers& layers, const Eigen::MatrixXd& input, bool last);

/// What backward makes of the gradient of the last output: of each layer the gradient before its tanh, and that of the
/// input.
struct Gradients {
  std::vector<Eigen::MatrixXd> sums;
  Eigen::MatrixXd input;
};
Gradients backward(const Layers& layers, std::span<const Eigen::MatrixXd> outputs, Eigen::MatrixXd gradient, bool last);

/// Adds the gradients of weights and biases to `total`, of the same shapes.
void add_weight_gradients(Layers& total, const Eigen::MatrixXd& input, std::span<const Eigen::MatrixXd> outputs,
                          const Gradients& gradients);

/// The same shapes, all 0.
Layers zeros_like(const Layers& layers);
/// layers + factor * other.
Layers sum(const Layers& layers, double factor, const Layers& other);
/// The largest absolute difference of two numbers in the same place.
double largest_difference(const Layers& one, const Layers& other);

/// A micro-batch of what there is to learn: a random function of random inputs, the same for the same seed and number.
struct Examples {
  Eigen::MatrixXd inputs, targets;
};
Examples make_examples(int width, int samples, std::uint64_t seed, int number);

} // namespace stagecraft::pipeline
