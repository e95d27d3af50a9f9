// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/balance.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/strategy/heuristic/placement.hpp"
#include "sim/strategy/heuristic/placements.hpp"

namespace stagecraft {
namespace {
constexpr double kLeastStep = 1.0 / 64;
constexpr double kLeastWeight = 0.2;
constexpr double kLargestWeight = 5;
constexpr int kUnchangedRounds = 2; // the same plan three times over
constexpr double kNoiseMargin = 4;  // standard errors that a change must exceed

Seconds sum_of(const std::vector<Seconds>& times) { return std::accumulate(times.begin(), times.end(), Seconds{0}); }

void scale_to_mean_one(std::vector<double>& weights) {
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  for (double& weight : weights) {
    weight /= mean;
  }
}

// Seconds of each device in `devices`, `otherwise` for those that the plan does not use.
std::vector<Seconds> per_device(const std::vector<DeviceId>& devices, const Evaluation& measured,
                                const std::vector<Seconds>& values, Seconds otherwise) {
  std::vector<Seconds> result(devices.size(), otherwise);
  for (std::size_t i = 0; i < measured.devices.size(); ++i) {
    const auto at = std::find(devices.begin(), devices.end(), measured.devices[i]);
    if (at != devices.end()) {
      result[at - devices.begin()] = values[i];
    }
  }
  return result;
}

// Of an iteration that takes no time nothing is a part.
double part_of(Seconds part, Seconds iteration) { return iteration.value > 0 ? part / iteration : 0; }

} // namespace

Seconds BalanceRound::largest_waiting() const {
  return waiting.empty() ? Seconds{0} : *std::max_element(waiting.begin(), waiting.end());
}

Seconds BalanceRound::mean_waiting() const {
  return waiting.empty() ? Seconds{0} : sum_of(waiting) / static_cast<double>(waiting.size());
}

std::vector<double> BalanceRound::waiting_shares() const {
  const Seconds all = sum_of(waiting);
  std::vector<double> shares;
  for (const Seconds one : waiting) {
    shares.push_back(all.value > 0 ? one / all : 0);
  }
  return shares;
}

bool BalanceRound::operator==(const BalanceRound&) const = default;

std::vector<Candidates> candidate_devices(const PlanRequest& request) {
  const Problem& problem = request.problem;
  std::map<std::vector<DeviceId>, std::vector<OperatorId>> operators;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    std::vector<DeviceId> able;
    for (const DeviceId device : request.devices) {
      if (!std::isinf(problem.seconds(problem.type_index(device), op)) &&
          placed_bytes(request, op, 1) <= problem.platform.type_of(device).memory) {
        able.push_back(device);
      }
    }
    operators[able].push_back(op);
  }
  std::vector<Candidates> candidates;
  for (auto& [devices, ops] : operators) {
    candidates.push_back({std::move(ops), devices});
  }
  return candidates;
}

Balancer::Balancer(PlanRequest request, const BalanceOptions& options)
    : request_(std::move(request)), options_(options), candidates_(candidate_devices(request_)),
      weights_(request_.devices.size(), 1.0) {}

void Balancer::set_devices(std::vector<DeviceId> devices) {
  std::vector<double> weights;
  for (const DeviceId device : devices) {
    const auto at = std::find(request_.devices.begin(), request_.devices.end(), device);
    weights.push_back(at != request_.devices.end() ? weights_[at - request_.devices.begin()] : 1.0);
  }
  weights_ = std::move(weights);
  if (!weights_.empty()) {
    scale_to_mean_one(weights_);
  }
  request_.devices = std::move(devices);
  candidates_ = candidate_devices(request_);
  failure_.clear();
  forget();
}

// Starts a new search with the present weights.
void Balancer::forget() {
  best_.reset();
  seen_.clear();
  previous_.clear();
  step_ = 1;
  unchanged_ = 0;
  searched_ = 0;
  holding_ = false;
}

PlanResult Balancer::propose() {
  if (request_.devices.empty()) {
    return Infeasible{"no device is left"};
  }
  if (!failure_.empty()) {
    return Infeasible{failure_};
  }
  while (!holding_) {
    PlanResult placed = row_of(options_.placement).place(request_, weights_);
    std::string reason;
    if (const Plan* plan = std::get_if<Plan>(&placed)) {
      const auto lacks = plan_shortage(request_.problem, *plan, request_.chunks, request_.in_flight, request_.versions,
                                       request_.stage_placement);
      if (!lacks) {
        proposed_ = *plan;
        proposed_weights_ = weights_;
        return placed;
      }
      reason = to_text(*lacks, request_.problem.platform);
    } else {
      reason = std::get<Infeasible>(placed).reason;
    }
    if (!best_) {
      return Infeasible{reason};
    }
    holding_ = !halve_step();
    weights_ = updated(*best_);
  }
  proposed_ = best_->plan;
  proposed_weights_ = best_->weights;
  return proposed_;
}

void Balancer::observe(const Evaluation& measured) {
  BalanceRound round{.stages = proposed_.stages, .devices = request_.devices, .weights = proposed_weights_};
  round.candidates = candidates_;
  round.step = step_;
  round.held = holding_;
  round.why_not = measured.why_not;
  if (!measured.why_not.empty()) {
    if (best_ && best_->plan.stages != proposed_.stages) {
      restart_from_best("the plan does not run: " + measured.why_not, round.action);
    } else {
      failure_ = measured.why_not;
      round.action = "no plan that runs";
    }
    rounds_.push_back(std::move(round));
    return;
  }
  round.iteration = measured.iteration;
  const std::vector<Seconds> busy = per_device(round.devices, measured, measured.busy, Seconds{0});
  for (const Seconds one : busy) {
    round.waiting.push_back(measured.iteration - one);
  }
  round.tail = per_device(round.devices, measured, measured.tail, measured.iteration);
  if (best_ && best_->plan.stages == proposed_.stages && differs_from_record(round, measured.noise)) {
    round.action = "the world changed: ";
    forget();
  }
  if (holding_) {
    round.action = "hold";
  } else {
    search_on(round, round.action);
  }
  rounds_.push_back(std::move(round));
}

// Whether T or a device's busy time differs from what was measured before.
bool Balancer::differs_from_record(const BalanceRound& round, double noise) const {
  const Seconds most = std::max(options_.changed, kNoiseMargin * noise) * best_->iteration;
  const auto differ = [&](Seconds a, Seconds b) { return std::max(a - b, b - a) > most; };
  bool any = differ(round.iteration, best_->iteration);
  for (std::size_t d = 0; d < round.waiting.size(); ++d) {
    any = any || differ(round.iteration - round.waiting[d], best_->iteration - best_->waiting[d]);
  }
  return any;
}

// Decides what follows from a round that ran: hold, step back, or go on from here.
void Balancer::search_on(const BalanceRound& round, std::string& action) {
  const Measured now{proposed_, proposed_weights_, round.iteration, round.waiting};
  unchanged_ = !previous_.empty() && previous_ == proposed_.stages ? unchanged_ + 1 : 0;
  const bool repeated = unchanged_ == 0 && was_seen(proposed_);
  const bool better = !best_ || improves(now.iteration.value, best_->iteration.value);
  if (better) {
    best_ = now;
  }
  seen_.push_back(proposed_.stages);
  previous_ = proposed_.stages;
  ++searched_;
  const double excess = part_of(round.largest_waiting() - round.mean_waiting(), round.iteration);
  const bool balanced = excess <= options_.balanced;
  if (balanced || unchanged_ >= kUnchangedRounds || searched_ >= options_.rounds) {
    holding_ = true;
    action += balanced                         ? "balanced, hold"
              : unchanged_ >= kUnchangedRounds ? "the plan no longer changes, hold the best"
                                               : "rounds used up, hold the best";
    return;
  }
  if (repeated || now.iteration > (1 + kTie) * best_->iteration) {
    restart_from_best(repeated ? "a plan comes back" : "slower than the best", action);
    return;
  }
  weights_ = updated(now);
  action += "new weights, the largest waiting is " + percent(excess, 1) + " above the mean";
}

// Returns false, and leaves the step as it is, if it would become too small to matter.
bool Balancer::halve_step() {
  if (step_ / 2 < kLeastStep) {
    return false;
  }
  step_ /= 2;
  return true;
}

void Balancer::restart_from_best(std::string why, std::string& action) {
  holding_ = !halve_step();
  weights_ = updated(*best_);
  action += std::move(why) + (holding_ ? ", hold the best" : ", half the step from the best");
}

std::vector<double> Balancer::updated(const Measured& base) const {
  const auto count = static_cast<double>(base.waiting.size());
  const Seconds all = sum_of(base.waiting);
  std::vector<double> weights = base.weights;
  for (std::size_t d = 0; d < weights.size(); ++d) {
    const double above = options_.update == WeightUpdate::mean ? part_of(base.waiting[d] - all / count, base.iteration)
                         : all.value > 0                       ? base.waiting[d] / all - 1 / count
                                                               : 0;
    weights[d] = std::clamp(weights[d] * (1 + step_ * above), kLeastWeight, kLargestWeight);
  }
  scale_to_mean_one(weights);
  return weights;
}

bool Balancer::was_seen(const Plan& plan) const {
  return std::find(seen_.begin(), seen_.end(), plan.stages) != seen_.end();
}

} // namespace stagecraft
