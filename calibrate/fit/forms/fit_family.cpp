// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/fit_family.hpp"

#include <cmath>

#include "sim/platform/fits/kernel_features.hpp"

#include "calibrate/fit/forms/fit_grid.hpp"
#include "calibrate/fit/forms/least_squares.hpp"

namespace stagecraft::fit {

KernelFamily fit_family(const KernelSamples& samples, const std::vector<std::string_view>& features,
                        double processors) {
  constexpr double kSquaredUpTo = 0.03;
  constexpr int kReweightings = 4;
  const auto rows = static_cast<Eigen::Index>(samples.size());
  const auto columns = static_cast<Eigen::Index>(features.size());
  Eigen::MatrixXd relative(rows, columns);
  std::vector<FeatureId> ids;
  for (const std::string_view name : features) {
    ids.push_back(feature_called(name));
  }
  for (Eigen::Index i = 0; i < rows; ++i) {
    const KernelSample& sample = samples[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < columns; ++j) {
      const KernelFeature& feature = kernel_features()[static_cast<std::size_t>(ids[static_cast<std::size_t>(j)])];
      relative(i, j) = feature.value(sample.kernel, processors) / sample.time.value;
    }
  }
  Eigen::VectorXd trust = Eigen::VectorXd::Ones(rows), solution;
  for (int round = 0; round < kReweightings; ++round) {
    solution = solve_non_negative(trust.asDiagonal() * relative, trust);
    const Eigen::VectorXd errors = (relative * solution).array() - 1;
    trust = (kSquaredUpTo / errors.array().abs().max(kSquaredUpTo)).sqrt();
  }
  KernelFamily family;
  family.ways.emplace_back();
  for (Eigen::Index j = 0; j < columns; ++j) {
    if (solution[j] > 0) {
      family.ways.back().push_back({ids[static_cast<std::size_t>(j)], solution[j]});
    }
  }
  return family;
}

} // namespace stagecraft::fit
