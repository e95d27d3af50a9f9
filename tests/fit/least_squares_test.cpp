// Non-negative least squares against trying every set of columns.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/random.hpp"
#include "tests/catch.hpp"

#include "calibrate/fit/forms/least_squares.hpp"

namespace stagecraft::fit {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// The least residual over all sets of columns whose unconstrained solution is not negative: the optimum is one of them.
double brute_force(const MatrixXd& a, const VectorXd& b) {
  double least = b.norm();
  for (int set = 1; set < 1 << a.cols(); ++set) {
    std::vector<int> columns;
    for (int j = 0; j < a.cols(); ++j) {
      if ((set >> j & 1) != 0) {
        columns.push_back(j);
      }
    }
    const MatrixXd part = a(Eigen::all, columns);
    const VectorXd x = part.completeOrthogonalDecomposition().solve(b);
    if (x.minCoeff() >= 0) {
      least = std::min(least, (part * x - b).norm());
    }
  }
  return least;
}

MatrixXd random_matrix(Random& random, int rows, int columns) {
  MatrixXd a(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      a(i, j) = 2 * random.unit() - 1;
    }
  }
  return a;
}

void check_optimal(const MatrixXd& a, const VectorXd& b) {
  const VectorXd x = solve_non_negative(a, b);
  CHECK(x.minCoeff() >= 0);
  CHECK((a * x - b).norm() <= brute_force(a, b) * (1 + 1e-8) + 1e-6 * b.norm());
}

TEST_CASE("non-negative least squares finds the best set of columns", "[fit][nnls]") {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const MatrixXd a = random_matrix(random, 12, 6);
    check_optimal(a, random_matrix(random, 12, 1).col(0));
  }
}

TEST_CASE("columns that depend on others, or nearly, do not mislead it", "[fit][nnls]") {
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    MatrixXd a = random_matrix(random, 10, 6).cwiseAbs();
    a.col(3) = a.col(0) + a.col(1);        // exactly
    a.col(4) = a.col(2) * 3;               // the same direction
    a.col(5) = a.col(0) + 1e-7 * a.col(5); // nearly
    check_optimal(a, random_matrix(random, 10, 1).col(0));
    check_optimal(a, a * random_matrix(random, 6, 1).cwiseAbs());
  }
}

TEST_CASE("units of columns do not matter", "[fit][nnls]") {
  Random random(3);
  MatrixXd a = random_matrix(random, 30, 3).cwiseAbs();
  a.col(0) *= 1e-12;
  a.col(2) *= 1e15;
  const VectorXd truth = (VectorXd(3) << 2e12, 0, 5e-15).finished();
  const VectorXd x = solve_non_negative(a, a * truth);
  CHECK(x[0] == Catch::Detail::Approx(2e12));
  CHECK(x[1] == Catch::Detail::Approx(0).margin(1e-9));
  CHECK(x[2] == Catch::Detail::Approx(5e-15));
  a.col(1).setZero();
  CHECK(solve_non_negative(a, a * truth)[1] == 0);
  CHECK(solve_non_negative(a, -(a * truth)).norm() == 0); // nothing helps
}

} // namespace
} // namespace stagecraft::fit
