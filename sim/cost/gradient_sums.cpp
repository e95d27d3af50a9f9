// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/gradient_sums.hpp"

#include <algorithm>
#include <utility>

#include "sim/cost/memory.hpp"
#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {
namespace {

class WithGradientSums : public CostModel {
public:
  // A product alone writes each gradient in the precision of weights. With a sum it reads and writes that of sums. A
  // kernel behind it reads the gradient, too.
  WithGradientSums(std::unique_ptr<CostModel> cost, const ModelGraph& model, const Training& training)
      : cost_(std::move(cost)), model_(model), fused_(training.fused_gradient_sums),
        kernel_speed_(training.kernel_speed.other) {
    const ParameterBytes bytes = parameter_bytes(training);
    more_bytes_ = 2 * bytes.gradient + (fused_ ? -1 : 1) * bytes.weight;
  }

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    return added(op, type, cost_->time(op, type, samples, precision), {});
  }

  std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples, Precision precision,
                                            const Shard& shard) const override {
    return added(op, type, cost_->time_of_shard(op, type, samples, precision, shard), shard);
  }

  // Sums make nothing faster.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    return cost_->least_time(op, type, precision, part);
  }

  bool alike(OperatorId a, OperatorId b) const override { return cost_->alike(a, b); }

  OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const override {
    return cost_->error(op, type, samples, precision);
  }

private:
  static double shown_part(const DeviceType& type) {
    if (type.fits) {
      for (const PassRatio& ratio : type.fits->passes) {
        if (ratio.op == KernelOp::gemm && ratio.pass == KernelPass::backward_weight) {
          return ratio.sums;
        }
      }
    }
    return PassRatio{}.sums;
  }

  std::optional<OperatorTime> added(OperatorId op, const DeviceType& type, std::optional<OperatorTime> time,
                                    const Shard& shard) const {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    if (time && (what.kind == KernelKind::matmul || !fused_)) {
      const double gradients = pass_of_shard(what.backward_weight, shard).moved_parameters;
      time->backward_weight +=
          Bytes{gradients * more_bytes_} / type.memory_bandwidth * (fused_ ? shown_part(type) : 1 / kernel_speed_);
    }
    return time;
  }

  std::unique_ptr<CostModel> cost_;
  const ModelGraph& model_;
  bool fused_;
  double kernel_speed_;
  double more_bytes_ = 0; // of a parameter
};

} // namespace

std::unique_ptr<CostModel> with_gradient_sums(std::unique_ptr<CostModel> cost, const ModelGraph& model,
                                              const Training& training) {
  const bool separate = training.separate_gradient_sums && !training.sharding.parts_gradients();
  if (!training.fused_gradient_sums && !separate) {
    return cost;
  }
  return std::make_unique<WithGradientSums>(std::move(cost), model, training);
}

} // namespace stagecraft
