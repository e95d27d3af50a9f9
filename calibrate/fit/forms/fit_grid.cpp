// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/fit_grid.hpp"

#include <Eigen/SparseCholesky>

#include <algorithm>
#include <cmath>

#include "sim/platform/fits/kernel_features.hpp"

namespace stagecraft::fit {
namespace {

using Triplets = std::vector<Eigen::Triplet<double>>;
using Sparse = Eigen::SparseMatrix<double>;

// Up to this error errors count squared, beyond it in proportion, so that outliers do not distort the grid.
constexpr double kGridSquaredUpTo = 0.015;
constexpr int kGridReweightings = 4;
// Pull nodes that no sample touches towards the roofline, and corrections towards 0.
constexpr double kRidge = 1e-6, kCorrectionRidge = 0.3;

double feature(FeatureId id, const Kernel& kernel, double processors) {
  return kernel_features()[static_cast<std::size_t>(id)].value(kernel, processors);
}

// At most `count` nodes from the least to the largest value, evenly spaced in logarithms, then moved to the nearest
// value, so that measured values are met exactly.
std::vector<double> nodes_of(std::vector<double> values, int count) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (static_cast<std::size_t>(count) >= values.size()) {
    return values;
  }
  std::vector<double> nodes;
  for (int i = 0; i < count; ++i) {
    const double even = values.front() + (values.back() - values.front()) * i / std::max(1, count - 1);
    const auto nearer = [&](double a, double b) { return std::abs(a - even) < std::abs(b - even); };
    nodes.push_back(*std::min_element(values.begin(), values.end(), nearer));
  }
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

struct Weight {
  int unknown;
  double weight;
};
using Weights = std::vector<Weight>;

// A linear system whose unknowns are the grid's nodes and corrections.
class System {
public:
  System(const KernelSamples& samples, const GridForm& form, const Roofline& base, double processors) {
    grid_.base = base;
    for (const AxisForm& axis : form.axes) {
      const FeatureId id = feature_called(axis.feature);
      std::vector<double> values;
      for (const KernelSample& sample : samples) {
        values.push_back(std::log(feature(id, sample.kernel, processors)));
      }
      grid_.axes.push_back({id, nodes_of(std::move(values), axis.nodes)});
      nodes_ *= static_cast<int>(grid_.axes.back().nodes.size());
    }
    for (const std::string_view name : form.corrections) {
      grid_.corrections.push_back({feature_called(name), 0});
    }
    unknowns_ = nodes_ + static_cast<int>(grid_.corrections.size());
    for (const KernelSample& sample : samples) {
      rows_.push_back(weights_of(sample.kernel, processors));
      targets_.push_back(std::log(sample.time.value / roofline_time(sample.kernel)));
    }
    smooth(form.smoothness);
  }

  ResidualGrid solve() {
    Eigen::VectorXd solution = Eigen::VectorXd::Zero(unknowns_);
    std::vector<double> trust(rows_.size(), 1);
    Eigen::SimplicialLDLT<Sparse> solver;
    for (int round = 0; round < kGridReweightings; ++round) {
      Eigen::VectorXd right = Eigen::VectorXd::Zero(unknowns_);
      const Sparse matrix = normal_equations(trust, right);
      if (round == 0) {
        solver.analyzePattern(matrix);
      }
      solver.factorize(matrix);
      solution = solver.solve(right);
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        // |predicted / measured - 1| grows faster above the truth than below; its slope in the logarithm is predicted /
        // measured.
        const double error = value(rows_[i], solution) - targets_[i];
        trust[i] =
            kGridSquaredUpTo / std::max(kGridSquaredUpTo, std::abs(error)) * std::clamp(std::exp(error), 0.5, 2.0);
      }
    }
    grid_.values.assign(solution.data(), solution.data() + nodes_);
    for (std::size_t j = 0; j < grid_.corrections.size(); ++j) {
      grid_.corrections[j].coefficient = solution[nodes_ + static_cast<Eigen::Index>(j)];
    }
    return grid_;
  }

private:
  double roofline_time(const Kernel& kernel) const {
    return (grid_.base.launch + std::max(flops_of(kernel) / grid_.base.flops, bytes_of(kernel) / grid_.base.bandwidth))
        .value;
  }

  // Weights of the nodes for multilinear interpolation: products of the shares along each axis.
  Weights weights_of(const Kernel& kernel, double processors) const {
    Weights weights = {{0, 1}};
    for (const GridAxis& axis : grid_.axes) {
      const int count = static_cast<int>(axis.nodes.size());
      const double at =
          std::clamp(std::log(feature(axis.feature, kernel, processors)), axis.nodes.front(), axis.nodes.back());
      const auto above = std::upper_bound(axis.nodes.begin() + 1, axis.nodes.end() - (count > 1 ? 1 : 0), at);
      const int below = count > 1 ? static_cast<int>(above - axis.nodes.begin()) - 1 : 0;
      const double low = axis.nodes[static_cast<std::size_t>(below)];
      const double share = count > 1 ? (at - low) / (axis.nodes[static_cast<std::size_t>(below) + 1] - low) : 0;
      Weights next;
      for (const Weight& weight : weights) {
        if (share < 1) {
          next.push_back({weight.unknown * count + below, weight.weight * (1 - share)});
        }
        if (share > 0) {
          next.push_back({weight.unknown * count + below + 1, weight.weight * share});
        }
      }
      weights = std::move(next);
    }
    for (std::size_t j = 0; j < grid_.corrections.size(); ++j) {
      const double value = feature(grid_.corrections[j].feature, kernel, processors);
      if (value != 0) {
        weights.push_back({nodes_ + static_cast<int>(j), value});
      }
    }
    return weights;
  }

  static double value(const Weights& weights, const Eigen::VectorXd& solution) {
    double sum = 0;
    for (const Weight& weight : weights) {
      sum += weight.weight * solution[weight.unknown];
    }
    return sum;
  }

  // Adds second differences along each axis, like the bending of a cubic spline; nodes need not be evenly spaced.
  void smooth(double smoothness) {
    const double strength = std::sqrt(smoothness);
    int stride = 1;
    for (std::size_t d = grid_.axes.size(); d-- > 0;) {
      const std::vector<double>& nodes = grid_.axes[d].nodes;
      const int count = static_cast<int>(nodes.size());
      for (int node = 0; node < nodes_; ++node) {
        const int at = node / stride % count;
        if (at > 0 && at < count - 1) {
          const double before = nodes[static_cast<std::size_t>(at)] - nodes[static_cast<std::size_t>(at) - 1];
          const double after = nodes[static_cast<std::size_t>(at) + 1] - nodes[static_cast<std::size_t>(at)];
          penalties_.push_back({{node - stride, strength * 2 * after / (before + after)},
                                {node, -2 * strength},
                                {node + stride, strength * 2 * before / (before + after)}});
        }
      }
      stride *= count;
    }
    for (int unknown = 0; unknown < unknowns_; ++unknown) {
      penalties_.push_back({{unknown, unknown < nodes_ ? std::sqrt(kRidge) : std::sqrt(kCorrectionRidge)}});
    }
  }

  Sparse normal_equations(const std::vector<double>& trust, Eigen::VectorXd& right) const {
    Triplets entries;
    const auto add = [&](const Weights& row, double scale) {
      for (const Weight& a : row) {
        for (const Weight& b : row) {
          entries.emplace_back(a.unknown, b.unknown, scale * a.weight * b.weight);
        }
      }
    };
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      add(rows_[i], trust[i]);
      for (const Weight& weight : rows_[i]) {
        right[weight.unknown] += trust[i] * weight.weight * targets_[i];
      }
    }
    for (const Weights& penalty : penalties_) {
      add(penalty, 1);
    }
    Sparse matrix(unknowns_, unknowns_);
    matrix.setFromTriplets(entries.begin(), entries.end());
    return matrix;
  }

  ResidualGrid grid_;
  int nodes_ = 1, unknowns_ = 0;
  std::vector<Weights> rows_, penalties_;
  std::vector<double> targets_;
};

} // namespace

FeatureId feature_called(std::string_view name) {
  const auto features = kernel_features();
  const auto found = std::find_if(features.begin(), features.end(), [&](auto& row) { return row.name == name; });
  check(found != features.end(), "a fit asks for a kernel feature that is not in the table");
  return static_cast<FeatureId>(found - features.begin());
}

ResidualGrid fit_grid(const KernelSamples& samples, const GridForm& form, const Roofline& base, double processors) {
  return System(samples, form, base, processors).solve();
}

} // namespace stagecraft::fit
