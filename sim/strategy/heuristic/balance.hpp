// Dynamic load balancing (a 2022 patent): waiting times give weights per device, and the weights give the next split,
// until nothing changes. The balancer proposes plans and is told what they measured; it measures nothing itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// The devices that each operator may run on: those present, with its kernel and room for it.
std::vector<Candidates> candidate_devices(const PlanRequest& request);

/// The loop as a state machine: propose(), run, observe(), again. It holds the best plan once the load is balanced, the
/// plan has stayed the same three times, steps have become too small, or the rounds are used up. It searches again if
/// the plan that it holds measures differently than before, or if devices come or go. docs/model.md has the rules one
/// by one.
class Balancer {
public:
  /// The request's devices are those present; its problem must outlive the balancer.
  explicit Balancer(PlanRequest request, const BalanceOptions& options = {});

  /// The plan of the next round. Infeasible if no placement works, or if the only plan does not run.
  PlanResult propose();
  /// Takes the measurements of the proposed plan.
  void observe(const Evaluation& measured);
  /// Devices that are present from the next round on. Weights of those that stay are kept.
  void set_devices(std::vector<DeviceId> devices);

  bool holds() const { return holding_; }
  /// The best plan of the present search, and its time; nullptr before the first round.
  const Plan* best() const { return best_ ? &best_->plan : nullptr; }
  Seconds best_iteration() const { return best_->iteration; }
  const std::vector<BalanceRound>& rounds() const { return rounds_; }

private:
  struct Measured {
    Plan plan;
    std::vector<double> weights;
    Seconds iteration;
    std::vector<Seconds> waiting;
  };

  void forget();
  bool differs_from_record(const BalanceRound& round, double noise) const;
  void search_on(const BalanceRound& round, std::string& action);
  bool halve_step();
  void restart_from_best(std::string why, std::string& action);
  std::vector<double> updated(const Measured& base) const;
  bool was_seen(const Plan& plan) const;

  PlanRequest request_;
  BalanceOptions options_;
  std::vector<Candidates> candidates_;
  std::vector<double> weights_;
  double step_ = 1;
  std::optional<Measured> best_;
  std::vector<std::vector<Stage>> seen_; ///< plans measured in this search
  std::vector<Stage> previous_;
  int unchanged_ = 0; ///< successive rounds with the same plan as the one before
  int searched_ = 0;  ///< rounds of this search
  bool holding_ = false;
  std::string failure_; ///< why the only plan there is fails
  Plan proposed_;
  std::vector<double> proposed_weights_; ///< weights of the proposed plan
  std::vector<BalanceRound> rounds_;
};

} // namespace stagecraft
