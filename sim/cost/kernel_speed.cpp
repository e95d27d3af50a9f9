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
  AtKernelSpeed(std::unique_ptr<CostModel> cost, const ModelGraph& model, KernelSpeed speed,
                std::vector<SlowestDevice> slowest)
      : cost_(std::move(cost)), model_(model), speed_(std::move(speed)), slowest_(std::move(slowest)) {
    for (const Operator& op : model_.operators) {
      speeds_.push_back({speed_of(op, op.forward), speed_of(op, op.backward_input), speed_of(op, op.backward_weight),
                         values_of_rows(op)});
    }
  }

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    return slowed(op, cost_->time(op, type, samples, precision), type, precision, casts_of(op, type, samples, {}));
  }

  std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples, Precision precision,
                                            const Shard& shard) const override {
    return slowed(op, cost_->time_of_shard(op, type, samples, precision, shard), type, precision,
                  casts_of(op, type, samples, shard));
  }

  // A time less its gap, then slowed, is no more than the slowed time less the gap: speeds are at most 1. How much of
  // it are casts is not known, so all of it has the higher of both speeds.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    auto least = cost_->least_time(op, type, precision, part);
    if (!least) {
      return least;
    }
    const Speeds& speeds = speeds_[static_cast<std::size_t>(op)];
    const double rows = speed_of_rows(speeds, precision), longer = longer_on(type);
    const auto highest = [&](const Pass& pass, const Speed& speed) {
      return std::max(speed.value * rows / (speed.of_products ? longer : 1), pass.casts > 0 ? speed_.other : 0.0);
    };
    const Operator& what = operator_of(op);
    const double forward = highest(what.forward, speeds.forward);
    const double input = highest(what.backward_input, speeds.backward_input);
    const double weight = highest(what.backward_weight, speeds.backward_weight);
    return LeastTime{
        {least->each.forward / forward, least->each.backward_input / input, least->each.backward_weight / weight},
        least->all / std::max({forward, input, weight})};
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

  struct Speed {
    double value;
    bool of_products; // clocks bound it, which differ between devices, and not memory
  };
  // Of the passes of an operator, but for its rows.
  struct Speeds {
    Speed forward, backward_input, backward_weight;
    std::int64_t row_values; // all rows of a product have a multiple of so many; 0: not a product
  };

  // Attention by separate kernels is bound by its matrix of scores, which each of them reads or writes.
  Speed speed_of(const Operator& op, const Pass& pass) const {
    const bool separate = op.kind == KernelKind::attention && pass.calls.size() > 1 &&
                          std::none_of(pass.calls.begin(), pass.calls.end(),
                                       [](const KernelCall& call) { return call.op == KernelOp::attention; });
    const bool of_products = row_of(op.kind).matrix && !separate;
    const auto own = speed_.types.find(op.type);
    return {own != speed_.types.end() ? own->second : of_products ? speed_.matrix : speed_.other, of_products};
  }

  // How many times as long products take on the slowest device of a type.
  double longer_on(const DeviceType& type) const {
    const auto found = std::find_if(slowest_.begin(), slowest_.end(),
                                    [&](const SlowestDevice& slowest) { return slowest.type == type.name; });
    return found == slowest_.end() ? 1 : found->longer;
  }

  // Rows of weights and of the activations on both sides have as many values as there are features: the two dimensions
  // of the forward product that do not grow with the samples.
  static std::int64_t values_of_rows(const Operator& op) {
    std::int64_t values = 0;
    for (const KernelCall& call : op.forward.calls) {
      for (std::size_t dimension = 1; op.kind == KernelKind::matmul && call.op == KernelOp::gemm && dimension < 4;
           ++dimension) {
        if (static_cast<int>(dimension) != call.grows) {
          values = std::gcd(values, std::llround(call.shape[dimension]));
        }
      }
    }
    return values;
  }

  double speed_of_rows(const Speeds& speeds, Precision precision) const {
    constexpr std::int64_t kLoaded = 16; // bytes
    const std::int64_t bytes = std::llround(static_cast<double>(speeds.row_values) * row_of(precision).bytes);
    const std::int64_t aligned = std::gcd(kLoaded, bytes); // 0 is a multiple of all
    return aligned == kLoaded ? 1 : aligned >= 4 ? speed_.rows_of_4_bytes : speed_.rows_of_2_bytes;
  }

  // Casts of products in 8 bits, of which the passes' times consist in part.
  OperatorTime casts_of(OperatorId op, const DeviceType& type, double samples, const Shard& shard) const {
    const Operator& what = operator_of(op);
    const auto of = [&](const Pass& pass) { return cast_time(pass_of_shard(pass, shard), type, samples); };
    return {of(what.forward), of(what.backward_input), of(what.backward_weight)};
  }

  // Memory bounds casts, as all other kernels that do not multiply.
  std::optional<OperatorTime> slowed(OperatorId op, std::optional<OperatorTime> time, const DeviceType& type,
                                     Precision precision, const OperatorTime& casts) const {
    if (time) {
      const Speeds& speeds = speeds_[static_cast<std::size_t>(op)];
      const double of_rows = speed_of_rows(speeds, precision), longer = longer_on(type);
      const auto pass = [&](Seconds whole, Seconds counted, const Speed& speed) {
        const Seconds cast = std::min(whole, counted); // a profile may have none
        return (whole - cast) * (speed.of_products ? longer : 1) / (speed.value * of_rows) + cast / speed_.other;
      };
      time->forward = pass(time->forward, casts.forward, speeds.forward);
      time->backward_input = pass(time->backward_input, casts.backward_input, speeds.backward_input);
      time->backward_weight = pass(time->backward_weight, casts.backward_weight, speeds.backward_weight);
    }
    return time;
  }

  std::unique_ptr<CostModel> cost_;
  const ModelGraph& model_;
  KernelSpeed speed_;
  std::vector<SlowestDevice> slowest_;
  std::vector<Speeds> speeds_; // [operator]
};

} // namespace

std::unique_ptr<CostModel> at_kernel_speed(std::unique_ptr<CostModel> cost, const ModelGraph& model,
                                           const KernelSpeed& speed, std::vector<SlowestDevice> slowest) {
  return speed == KernelSpeed{} && slowest.empty()
             ? std::move(cost)
             : std::make_unique<AtKernelSpeed>(std::move(cost), model, speed, std::move(slowest));
}

} // namespace stagecraft
