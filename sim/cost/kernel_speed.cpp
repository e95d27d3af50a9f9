// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernel_speed.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace stagecraft {
namespace {

class AtKernelSpeed : public CostModel {
public:
  AtKernelSpeed(std::unique_ptr<CostModel> cost, const ModelGraph& model, KernelSpeed speed)
      : cost_(std::move(cost)), model_(model), speed_(std::move(speed)) {}

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    return slowed(op, cost_->time(op, type, samples, precision), precision);
  }

  std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples, Precision precision,
                                            const Shard& shard) const override {
    return slowed(op, cost_->time_of_shard(op, type, samples, precision, shard), precision);
  }

  // A time less its gap, then slowed, is no more than the slowed time less the gap: speeds are at most 1.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    auto least = cost_->least_time(op, type, precision, part);
    if (!least) {
      return least;
    }
    const Operator& what = operator_of(op);
    const auto slowed_least = slowed(op, least->each, precision);
    const double all =
        std::max({speed_of(what, what.forward, precision), speed_of(what, what.backward_input, precision),
                  speed_of(what, what.backward_weight, precision)});
    return LeastTime{*slowed_least, least->all / all};
  }

  bool alike(OperatorId a, OperatorId b) const override {
    const bool same = speed_.types.empty() || operator_of(a).type == operator_of(b).type;
    return same && cost_->alike(a, b);
  }

  OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const override {
    return cost_->error(op, type, samples, precision);
  }

private:
  const Operator& operator_of(OperatorId op) const { return model_.operators[static_cast<std::size_t>(op)]; }

  // Attention by separate kernels is bound by its matrix of scores, which each of them reads or writes.
  double speed_of(const Operator& op, const Pass& pass, Precision precision) const {
    const bool separate = op.kind == KernelKind::attention && pass.calls.size() > 1;
    const auto own = speed_.types.find(op.type);
    const double speed = own != speed_.types.end()             ? own->second
                         : row_of(op.kind).matrix && !separate ? speed_.matrix
                                                               : speed_.other;
    return op.kind == KernelKind::matmul ? speed * speed_of_rows(op, precision) : speed;
  }

  // Rows of weights and of the activations on both sides have as many values as there are features: the two dimensions
  // of the forward product that do not grow with the samples.
  double speed_of_rows(const Operator& op, Precision precision) const {
    constexpr std::int64_t kLoaded = 16; // bytes
    std::int64_t aligned = kLoaded;
    for (const KernelCall& call : op.forward.calls) {
      for (std::size_t dimension = 1; call.op == KernelOp::gemm && dimension < 4; ++dimension) {
        if (static_cast<int>(dimension) != call.grows) {
          aligned = std::gcd(aligned, std::llround(call.shape[dimension] * row_of(precision).bytes));
        }
      }
    }
    return aligned == kLoaded ? 1 : aligned >= 4 ? speed_.rows_of_4_bytes : speed_.rows_of_2_bytes;
  }

  std::optional<OperatorTime> slowed(OperatorId op, std::optional<OperatorTime> time, Precision precision) const {
    if (time) {
      const Operator& what = operator_of(op);
      time->forward = time->forward / speed_of(what, what.forward, precision);
      time->backward_input = time->backward_input / speed_of(what, what.backward_input, precision);
      time->backward_weight = time->backward_weight / speed_of(what, what.backward_weight, precision);
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
