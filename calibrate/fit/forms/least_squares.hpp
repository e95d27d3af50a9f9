// Least squares with non-negative coefficients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>

namespace stagecraft::fit {

/// The x >= 0 that minimises |A x - b| (Lawson and Hanson 1974, chapter 23). Columns are scaled to length 1 first, so
/// that units do not matter. Columns that depend on others, and columns of zeros, may get 0.
Eigen::VectorXd solve_non_negative(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

} // namespace stagecraft::fit
