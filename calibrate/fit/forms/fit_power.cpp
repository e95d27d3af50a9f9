// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/fit_power.hpp"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/forms/blocks.hpp"
#include "calibrate/fit/forms/least_squares.hpp"

namespace stagecraft::fit {
namespace {

// Above this share of the cap the clock is lowered, and power no longer depends on the work.
constexpr double kBelowCap = 0.97;

PowerFit fit_busy(const std::vector<MeasuredPower>& busy, Watts idle, Watts cap) {
  std::vector<MeasuredPower> free;
  std::copy_if(busy.begin(), busy.end(), std::back_inserter(free),
               [&](const MeasuredPower& state) { return state.power.value < kBelowCap * cap.value; });
  PowerFit fit{.idle = idle, .base = idle, .cap = cap};
  const std::vector<MeasuredPower>& used = free.empty() ? busy : free;
  const auto rows = static_cast<Eigen::Index>(used.size());
  // Power above idle: a constant, a part per FLOP/s and a part per B/s.
  Eigen::MatrixXd work(rows, 3);
  Eigen::VectorXd above(rows);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const MeasuredPower& state = used[static_cast<std::size_t>(i)];
    work.row(i) << 1, state.flops.value, state.bandwidth.value;
    above[i] = std::max(0.0, (state.power - idle).value);
    work.row(i) /= state.power.value;
    above[i] /= state.power.value;
  }
  const Eigen::VectorXd solution = solve_non_negative(work, above);
  fit.base = idle + Watts{solution[0]};
  fit.per_flops = solution[1];
  fit.per_bytes = solution[2];
  return fit;
}

} // namespace

std::optional<PowerFit> fit_power(const std::vector<MeasuredPower>& states) {
  std::vector<MeasuredPower> busy;
  std::optional<Watts> idle;
  Watts cap;
  for (const MeasuredPower& state : states) {
    cap = std::max(cap, state.power);
    if (state.state == "idle") {
      idle = idle ? std::min(*idle, state.power) : state.power;
    } else if (state.state != "blocked") { // a device that waits does no work
      busy.push_back(state);
    }
  }
  if (!idle || busy.empty()) {
    return std::nullopt;
  }
  PowerFit fit = fit_busy(busy, *idle, cap);
  std::vector<double> errors;
  for (std::size_t left_out = 0; busy.size() >= 3 && left_out < busy.size(); ++left_out) {
    std::vector<MeasuredPower> others = busy;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    const MeasuredPower& state = busy[left_out];
    errors.push_back(fit_busy(others, *idle, cap).power(state.flops, state.bandwidth) / state.power - 1);
  }
  fit.error = error_of(errors, "each state by the others");
  return fit;
}

} // namespace stagecraft::fit
