// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/least_squares.hpp"

#include <vector>

namespace stagecraft::fit {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// Unconstrained least squares over the active columns, 0 elsewhere; the shortest solution where columns are dependent.
VectorXd solve_on(const MatrixXd& a, const VectorXd& b, const std::vector<bool>& active) {
  std::vector<int> columns;
  for (int j = 0; j < a.cols(); ++j) {
    if (active[static_cast<std::size_t>(j)]) {
      columns.push_back(j);
    }
  }
  const MatrixXd part = a(Eigen::all, columns);
  const VectorXd solution = part.completeOrthogonalDecomposition().solve(b);
  VectorXd whole = VectorXd::Zero(a.cols());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    whole[columns[i]] = solution[static_cast<Eigen::Index>(i)];
  }
  return whole;
}

// The column at 0 with the largest positive gradient, or -1.
int most_helpful(const VectorXd& gradient, const std::vector<bool>& active, double tolerance) {
  int best = -1;
  for (int j = 0; j < gradient.size(); ++j) {
    if (!active[static_cast<std::size_t>(j)] && gradient[j] > tolerance && (best < 0 || gradient[j] > gradient[best])) {
      best = j;
    }
  }
  return best;
}

// Moves from the feasible x towards `target` until a value would become negative, and makes values that reach 0
// inactive. Returns whether `target` was reached.
bool step_towards(VectorXd& x, const VectorXd& target, std::vector<bool>& active) {
  double step = 1;
  for (int j = 0; j < x.size(); ++j) {
    if (active[static_cast<std::size_t>(j)] && target[j] <= 0) {
      step = std::min(step, x[j] / (x[j] - target[j]));
    }
  }
  if (step >= 1) {
    x = target;
    return true;
  }
  x += step * (target - x);
  for (int j = 0; j < x.size(); ++j) {
    if (active[static_cast<std::size_t>(j)] && x[j] <= 1e-14 * x.maxCoeff() && target[j] <= 0) {
      active[static_cast<std::size_t>(j)] = false;
      x[j] = 0;
    }
  }
  return false;
}

} // namespace

VectorXd solve_non_negative(const MatrixXd& a, const VectorXd& b) {
  VectorXd lengths = a.colwise().norm();
  const MatrixXd scaled = a * lengths.unaryExpr([](double l) { return l > 0 ? 1 / l : 0; }).asDiagonal();
  std::vector<bool> active(static_cast<std::size_t>(a.cols()), false);
  VectorXd x = VectorXd::Zero(a.cols());
  const double tolerance = 1e-10 * b.norm();
  const Eigen::Index rounds = 10 * a.cols() + 10;
  for (Eigen::Index round = 0; round < rounds; ++round) {
    const int entering = most_helpful(scaled.transpose() * (b - scaled * x), active, tolerance);
    if (entering < 0) {
      break;
    }
    active[static_cast<std::size_t>(entering)] = true;
    while (!step_towards(x, solve_on(scaled, b, active), active)) {
    }
  }
  return x.cwiseQuotient(lengths.unaryExpr([](double l) { return l > 0 ? l : 1; }));
}

} // namespace stagecraft::fit
