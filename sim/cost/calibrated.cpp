// Times from fits to measurements of a device (docs/model.md, "Calibrated"): kernel by kernel where the device's file
// has fits and the operator names its kernels, else by a roofline.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/cost/passes.hpp"
#include "sim/platform/kernel_fits.hpp"
#include "sim/workload/layer/kernel_list.hpp"

namespace stagecraft {
namespace {

// Time of one pass, with the error of its longest kernel.
struct PassTime {
  Seconds time, longest;
  CostError error;
};

// The dimension that a tensor-parallel group divides: columns of a weight, filters or heads.
int divided_dimension(KernelOp op) {
  switch (op) {
  case KernelOp::gemm:
    return 2;
  case KernelOp::convolution:
    return 4;
  case KernelOp::attention:
    return 2;
  default:
    return 0;
  }
}

void divide(Kernel& kernel, const Shard& shard) {
  const bool matrix = row_of(row_of(kernel.op).kind).matrix;
  if (shard.degree == 1 || (!matrix && !shard.splits_activations)) {
    return;
  }
  const auto divided = [&](int dimension) {
    double& extent = kernel.shape[static_cast<std::size_t>(dimension)];
    extent = std::max(1.0, extent / shard.degree);
  };
  divided(divided_dimension(kernel.op));
  if (kernel.op == KernelOp::attention) {
    divided(3); // heads of keys and values
  }
}

class Calibrated : public CostModel {
public:
  explicit Calibrated(const ModelGraph& model) : model_(model) {}

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    return time_of_shard(op, type, samples, precision, {});
  }

  std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples, Precision precision,
                                            const Shard& shard) const override {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    return time_of_passes(what, [&](const Pass& pass, KernelPass which) {
      const auto fitted = predicted(pass, which, type, samples, precision, shard);
      return fitted ? std::optional(fitted->time)
                    : roofline_time(pass_of_shard(pass, shard), what.kind, type, samples, precision);
    });
  }

  OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const override {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    const auto error_of = [&](const Pass& pass, KernelPass which) {
      const auto fitted = predicted(pass, which, type, samples, precision, {});
      return fitted ? fitted->error : CostError{row_of(what.kind).name, kRooflineSpread, CostSource::roofline};
    };
    return {error_of(what.forward, KernelPass::forward), error_of(what.backward_input, KernelPass::backward_input),
            error_of(what.backward_weight, KernelPass::backward_weight)};
  }

private:
  // The sum over the kernels of a pass; nothing where there is no fit for one of them.
  static std::optional<PassTime> predicted(const Pass& pass, KernelPass which, const DeviceType& type, double samples,
                                           Precision precision, const Shard& shard) {
    if (!type.fits || pass.calls.empty()) {
      return std::nullopt;
    }
    PassTime sum;
    for (const KernelCall& call : pass.calls) {
      Kernel kernel = kernel_of(call, which, precision, samples);
      divide(kernel, shard);
      const auto one = predict(*type.fits, kernel);
      if (!one) {
        return std::nullopt;
      }
      sum.time += one->time;
      if (one->time > sum.longest) {
        sum.longest = one->time;
        sum.error = {one->family, one->spread, CostSource::fits};
      }
    }
    return sum;
  }

  const ModelGraph& model_;
};

} // namespace

CostModelResult make_calibrated(const CostModelRequest& request) {
  CostModelResult shapes = make_roofline(request); // fails for the same models
  if (std::holds_alternative<Infeasible>(shapes)) {
    return shapes;
  }
  return std::make_unique<Calibrated>(request.model);
}

} // namespace stagecraft
