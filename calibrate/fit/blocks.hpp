// Holding shapes back by blocks: whole values of a dimension, never single points, whose neighbours would tell them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sim/platform/kernel_fits.hpp"

#include "calibrate/fit/sample.hpp"

namespace stagecraft::fit {

/// Which of `keys` are held back: of each of its columns so many whole values, drawn by the seed, that together about
/// `share` of the rows go. The least and the largest value of a column stay: beyond them nothing is known, and a fit
/// that has to guess there says nothing of the shapes between. Every row has as many keys.
std::vector<bool> hold_back(const std::vector<std::vector<double>>& keys, double share, std::uint64_t seed);

/// The block keys of each sample: the values of its dimensions.
std::vector<std::vector<double>> block_keys(const KernelSamples& samples);

/// The samples of which `held` says `which`.
KernelSamples choose(const KernelSamples& samples, const std::vector<bool>& held, bool which);

/// Signed relative errors (predicted - measured) / measured as a FitError.
FitError error_of(const std::vector<double>& errors, std::string_view scheme);

/// Several holds one after the other, of which all errors count.
struct CrossValidation {
  double share = 0.2;
  int rounds = 4;
  std::uint64_t seed = 1;
};

/// What "whole values of dimensions, 4 x 20 % held back" reads.
std::string scheme_text(const CrossValidation& validation);

/// Predicts one kernel, in seconds.
using Predictor = std::function<double(const KernelSample&)>;

/// Signed errors at held-back samples of `fit`, which makes a predictor of the others.
std::vector<double> validate(const KernelSamples& samples, const CrossValidation& validation,
                             const std::function<Predictor(const KernelSamples&)>& fit);

} // namespace stagecraft::fit
