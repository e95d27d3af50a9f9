// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernel_speed.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

class AtKernelSpeed : public CostModel {
public:
  AtKernelSpeed(std::unique_ptr<CostModel> cost, const ModelGraph& model, const KernelSpeed& speed)
      : cost_(std::move(cost)), model_(model), speed_(speed) {}

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    return slowed(op, cost_->time(op, type, samples, precision));
  }

  std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples, Precision precision,
                                            const Shard& shard) const override {
    return slowed(op, cost_->time_of_shard(op, type, samples, precision, shard));
  }

  // A time less its gap, then slowed, is no more than the slowed time less the gap: speeds are at most 1.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    auto least = cost_->least_time(op, type, precision, part);
    if (!least) {
      return least;
    }
    const Operator& what = operator_of(op);
    const auto slowed_least = slowed(op, least->each);
    const double all = std::max(
        {speed_of(what, what.forward), speed_of(what, what.backward_input), speed_of(what, what.backward_weight)});
    return LeastTime{*slowed_least, least->all / all};
  }

  bool alike(OperatorId a, OperatorId b) const override { return cost_->alike(a, b); }

  OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const override {
    return cost_->error(op, type, samples, precision);
  }

private:
  const Operator& operator_of(OperatorId op) const { return model_.operators[static_cast<std::size_t>(op)]; }

  // Attention by separate kernels is bound by its matrix of scores, which each of them reads or writes.
  double speed_of(const Operator& op, const Pass& pass) const {
    const bool separate = op.kind == KernelKind::attention && pass.calls.size() > 1;
    return row_of(op.kind).matrix && !separate ? speed_.matrix : speed_.other;
  }

  std::optional<OperatorTime> slowed(OperatorId op, std::optional<OperatorTime> time) const {
    if (time) {
      const Operator& what = operator_of(op);
      time->forward = time->forward / speed_of(what, what.forward);
      time->backward_input = time->backward_input / speed_of(what, what.backward_input);
      time->backward_weight = time->backward_weight / speed_of(what, what.backward_weight);
    }
    return time;
  }

  std::unique_ptr<CostModel> cost_;
  const ModelGraph& model_;
  KernelSpeed speed_;
};

} // namespace

std::unique_ptr<CostModel> at_kernel_speed(std::unique_ptr<CostModel> cost, const ModelGraph& model,
                                           const KernelSpeed& speed) {
  return speed == KernelSpeed{} ? std::move(cost) : std::make_unique<AtKernelSpeed>(std::move(cost), model, speed);
}

} // namespace stagecraft
