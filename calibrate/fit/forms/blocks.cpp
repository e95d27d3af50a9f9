// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/random.hpp"
#include "sim/base/statistics.hpp"

namespace stagecraft::fit {
namespace {

// The values of one column except the least and the largest, each with its number of rows, in random order.
std::vector<std::pair<double, std::size_t>> shuffled_values(const std::vector<std::vector<double>>& keys,
                                                            std::size_t column, Random& random) {
  std::map<double, std::size_t> counts;
  for (const std::vector<double>& row : keys) {
    ++counts[row[column]];
  }
  if (counts.size() < 3) {
    return {};
  }
  std::vector<std::pair<double, std::size_t>> values(std::next(counts.begin()), std::prev(counts.end()));
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
  }
  return values;
}

std::vector<std::size_t> columns_that_vary(const std::vector<std::vector<double>>& keys, Random& random) {
  std::vector<std::size_t> columns;
  for (std::size_t column = 0; !keys.empty() && column < keys.front().size(); ++column) {
    if (!shuffled_values(keys, column, random).empty()) {
      columns.push_back(column);
    }
  }
  return columns;
}

} // namespace

std::vector<bool> hold_back(const std::vector<std::vector<double>>& keys, double share, std::uint64_t seed) {
  std::vector<bool> held(keys.size(), false);
  Random random(seed);
  const std::vector<std::size_t> columns = columns_that_vary(keys, random);
  if (columns.empty()) {
    return held;
  }
  const auto hold = [&](std::size_t column, double value) {
    for (std::size_t row = 0; row < keys.size(); ++row) {
      held[row] = held[row] || keys[row][column] == value;
    }
  };
  // The blocks of several columns overlap: 1 - (1 - part)^columns = share.
  const double part = 1 - std::pow(1 - share, 1.0 / static_cast<double>(columns.size()));
  for (const std::size_t column : columns) {
    double wanted = part * static_cast<double>(keys.size());
    for (const auto& [value, count] : shuffled_values(keys, column, random)) {
      // If half a value's rows are wanted, hold it with the matching probability; so large blocks are drawn often
      // enough.
      if (wanted < static_cast<double>(count) * random.unit()) {
        break;
      }
      wanted -= static_cast<double>(count);
      hold(column, value);
    }
  }
  if (share > 0 && std::find(held.begin(), held.end(), true) == held.end()) { // hold at least one value
    const std::size_t column = columns[static_cast<std::size_t>(random.below(static_cast<int>(columns.size())))];
    hold(column, shuffled_values(keys, column, random).front().first);
  }
  return held;
}

std::vector<std::vector<double>> block_keys(const KernelSamples& samples) {
  std::vector<std::vector<double>> keys;
  for (const KernelSample& sample : samples) {
    keys.emplace_back(sample.kernel.shape.begin(), sample.kernel.shape.end());
  }
  return keys;
}

KernelSamples choose(const KernelSamples& samples, const std::vector<bool>& held, bool which) {
  KernelSamples chosen;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (held[i] == which) {
      chosen.push_back(samples[i]);
    }
  }
  return chosen;
}

FitError error_of(const std::vector<double>& errors, std::string_view scheme) {
  FitError error;
  error.points = static_cast<int>(errors.size());
  error.scheme = errors.empty() ? "none" : scheme;
  if (errors.empty()) {
    return error;
  }
  std::vector<double> sizes;
  for (const double one : errors) {
    sizes.push_back(std::abs(one));
    error.mean += std::abs(one) / static_cast<double>(errors.size());
    error.bias += one / static_cast<double>(errors.size());
  }
  error.median = quantile(sizes, 0.5);
  error.p90 = quantile(sizes, 0.9);
  return error;
}

std::string scheme_text(const CrossValidation& validation) {
  return "whole values of dimensions held back, " + std::to_string(validation.rounds) + " x " +
         percent(validation.share, 0);
}

std::vector<double> validate(const KernelSamples& samples, const CrossValidation& validation,
                             const std::function<Predictor(const KernelSamples&)>& fit) {
  std::vector<double> errors;
  const auto keys = block_keys(samples);
  for (int round = 0; round < validation.rounds; ++round) {
    const auto held = hold_back(keys, validation.share, validation.seed + static_cast<std::uint64_t>(round));
    const KernelSamples known = choose(samples, held, false), unknown = choose(samples, held, true);
    if (known.empty() || unknown.empty()) {
      continue;
    }
    const Predictor predictor = fit(known);
    for (const KernelSample& sample : unknown) {
      errors.push_back(predictor(sample) / sample.time.value - 1);
    }
  }
  return errors;
}

} // namespace stagecraft::fit
