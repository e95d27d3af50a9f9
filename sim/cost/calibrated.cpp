// Times from fits to measurements of a device (docs/model.md, "Calibrated"): kernel by kernel where the device's file
// has fits and the operator names its kernels, else by a roofline.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "sim/cost/least_over_parts.hpp"
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

// Bounds of a pass by the range that they hold for: sizes and degrees, from low to high.
using KnownBounds = std::map<std::tuple<double, double, int, int>, double>;

void divide(Kernel& kernel, const Shard& shard) {
  const bool matrix = row_of(row_of(kernel.op).kind).matrix;
  if (shard.degree == 1 || (!matrix && shard.activations == 1)) {
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

  // A fit's time per sample may rise and fall, so it is searched. Where gaps are taken off, nothing is left of a fitted
  // pass: a fit may say less than a launch for the smallest parts.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    const PartRange all{0, part.samples, 1, part.degree};
    const auto on = [&](const Pass& pass, KernelPass which, Seconds gap, const PartRange& range) {
      return least_of_pass(pass, which, what.kind, type, precision, gap, range);
    };
    if (std::isinf(on(what.forward, KernelPass::forward, {}, all)) ||
        std::isinf(on(what.backward_input, KernelPass::backward_input, {}, all)) ||
        std::isinf(on(what.backward_weight, KernelPass::backward_weight, {}, all))) {
      return std::nullopt;
    }
    std::array<KnownBounds, kKernelPasses.size()> known; // the search of the sum looks where those of the passes look
    const auto remembered = [&](const Pass& pass, KernelPass which, Seconds gap, const PartRange& range) {
      const auto [found, fresh] = known[static_cast<std::size_t>(which)].try_emplace(
          {range.low, range.high, range.least_degree, range.most_degree});
      if (fresh) {
        found->second = on(pass, which, gap, range);
      }
      return found->second;
    };
    const auto forward = [&](const PartRange& range) {
      return remembered(what.forward, KernelPass::forward, part.gaps.forward, range);
    };
    const auto input = [&](const PartRange& range) {
      return remembered(what.backward_input, KernelPass::backward_input, part.gaps.backward_input, range);
    };
    const auto weight = [&](const PartRange& range) {
      return remembered(what.backward_weight, KernelPass::backward_weight, part.gaps.backward_weight, range);
    };
    const auto sum = [&](const PartRange& range) { return forward(range) + input(range) + weight(range); };
    const auto least = [&](const auto& bound_of) { return Seconds{least_over_parts(all, bound_of)}; };
    return LeastTime{{least(forward), least(input), least(weight)}, least(sum)};
  }

  bool alike(OperatorId a, OperatorId b) const override {
    return same_passes(model_.operators[static_cast<std::size_t>(a)], model_.operators[static_cast<std::size_t>(b)]);
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
  // Device seconds per sample of a pass, at least, anywhere in the range; infinite if the type lacks the kernel.
  static double least_of_pass(const Pass& pass, KernelPass which, KernelKind kind, const DeviceType& type,
                              Precision precision, Seconds gap, const PartRange& range) {
    const Shard shard{range.least_degree, 1.0 / range.least_degree};
    const auto shapes = roofline_time(pass_of_shard(pass, shard), kind, type, range.high, precision);
    const double roofline = shapes ? std::max(0.0, (*shapes - gap).value) * range.least_degree / range.high
                                   : std::numeric_limits<double>::infinity();
    const auto fitted = least_fitted(pass, which, type, precision, range);
    if (!fitted) {
      return roofline;
    }
    const double left = gap.value > 0 ? 0 : fitted->per_size;
    return fitted->everywhere ? left : std::min(left, roofline);
  }

  // The sum over the kernels of a pass; nothing where one of them has no fit anywhere in the range.
  static std::optional<LeastKernelTime> least_fitted(const Pass& pass, KernelPass which, const DeviceType& type,
                                                     Precision precision, const PartRange& range) {
    if (!type.fits || pass.calls.empty()) {
      return std::nullopt;
    }
    LeastKernelTime sum;
    for (const KernelCall& call : pass.calls) {
      KernelRange kernels{kernel_of(call, which, precision, range.low), kernel_of(call, which, precision, range.high)};
      divide(kernels.low, {range.most_degree, 1.0 / range.most_degree});
      divide(kernels.high, {range.least_degree, 1.0 / range.least_degree});
      const auto one =
          stagecraft::least_time(*type.fits, kernels, range.low / range.most_degree, range.high / range.least_degree);
      if (!one) {
        return std::nullopt;
      }
      sum.per_size += one->per_size;
      sum.everywhere = sum.everywhere && one->everywhere;
    }
    return sum;
  }

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
