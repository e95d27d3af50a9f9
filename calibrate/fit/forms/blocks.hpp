// Holding shapes back for validation, in blocks: whole values of a dimension, since a single point is easily predicted
// from its neighbours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sim/platform/fits/kernel_fits.hpp"

#include "calibrate/fit/forms/sample.hpp"

namespace stagecraft::fit {

/// Which rows of `keys` are held back. In each column whole values are drawn at random, by the seed, until together
/// they hold about `share` of the rows. The least and the largest value of a column are never held: a fit that must
/// extrapolate says nothing about the shapes between. All rows have the same length.
std::vector<bool> hold_back(const std::vector<std::vector<double>>& keys, double share, std::uint64_t seed);

/// The keys of each sample: the values of its dimensions.
std::vector<std::vector<double>> block_keys(const KernelSamples& samples);

/// The samples whose entry in `held` equals `which`.
KernelSamples choose(const KernelSamples& samples, const std::vector<bool>& held, bool which);

/// Summarises signed relative errors (predicted - measured) / measured.
FitError error_of(const std::vector<double>& errors, std::string_view scheme);

/// Several random holds, one after another, whose errors all count.
struct CrossValidation {
  double share = 0.2;
  int rounds = 4;
  std::uint64_t seed = 1;
};

/// The text for it, such as "whole values of dimensions, 4 x 20 % held back".
std::string scheme_text(const CrossValidation& validation);

/// Predicts the time of one kernel, in seconds.
using Predictor = std::function<double(const KernelSample&)>;

/// Signed relative errors at held-back samples. `fit` makes a predictor from the other samples.
std::vector<double> validate(const KernelSamples& samples, const CrossValidation& validation,
                             const std::function<Predictor(const KernelSamples&)>& fit);

} // namespace stagecraft::fit
