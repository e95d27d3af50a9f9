// Times from fits to measurements of a device (docs/model.md, "Calibrated"): kernel by kernel where the device's file
// has fits and the operator names its kernels, else by a roofline.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "sim/cost/depthwise.hpp"
#include "sim/cost/least_over_parts.hpp"
#include "sim/cost/passes.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/fits/least_time.hpp"
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

// The same of a product in 8 bits, which few columns make much slower: the dimension that it really is, of [m, n, k].
// Of a weight's columns: n forward, k of its input's gradient, n of its own. Of its rows, which are summed over: k, n,
// m.
int divided_dimension(const Kernel& kernel, bool sums, bool eight_bits) {
  constexpr int kRows = 1, kColumns = 2, kDepth = 3;
  if (kernel.op != KernelOp::gemm || !eight_bits) {
    return divided_dimension(kernel.op);
  }
  switch (kernel.pass) {
  case KernelPass::forward:
    return sums ? kDepth : kColumns;
  case KernelPass::backward_input:
    return sums ? kColumns : kDepth;
  default:
    return sums ? kRows : kColumns;
  }
}

// Bounds of a pass by the range that they hold for: sizes and degrees, from low to high.
using KnownBounds = std::map<std::tuple<double, double, int, int>, double>;

// A grouped product of a mixture, whose experts several replicas share: fewer of them, each with the rows of all.
// `grows`: the dimension of rows.
void share_experts(Kernel& kernel, const Shard& shard, int grows) {
  constexpr int kBatch = 0;
  const double experts = static_cast<double>(shard.replicas) * (shard.by_expert ? shard.degree : 1);
  kernel.shape[kBatch] = std::max(1.0, kernel.shape[kBatch] / experts);
  kernel.shape[static_cast<std::size_t>(grows)] *= shard.replicas;
}

void divide(Kernel& kernel, const Shard& shard, bool eight_bits, KernelKind kind = KernelKind::other) {
  if (shard.by_expert) {
    return;
  }
  if (kind == KernelKind::attention && kernel.op != KernelOp::attention) { // the heads of one kernel among several
    kernel.shape[0] = std::max(1.0, kernel.shape[0] / shard.degree);
    return;
  }
  const bool matrix = row_of(row_of(kernel.op).kind).matrix;
  if (kernel.op == KernelOp::attention) { // every rank that shares its heads has the samples of all of them
    kernel.shape[0] *= shard.heads;
    for (const int heads : {2, 3}) {
      kernel.shape[heads] = std::max(1.0, kernel.shape[heads] / shard.heads);
    }
  }
  if (shard.degree == 1 || (!matrix && shard.activations == 1)) {
    return;
  }
  const auto divided = [&](int dimension) {
    double& extent = kernel.shape[static_cast<std::size_t>(dimension)];
    extent = std::max(1.0, extent / shard.degree);
  };
  divided(divided_dimension(kernel, shard.sums, eight_bits));
  if (kernel.op == KernelOp::attention) {
    divided(3); // heads of keys and values
  }
}

// Attention by kernels that a training names: those of fits without a name bound nothing of it.
bool asks_for_kernels(const Operator& what, const Pass& pass) {
  return what.kind == KernelKind::attention && (pass.calls.size() > 1 || !pass.calls.front().variant.empty());
}

// Whether fits of the device may tell of a pass.
bool has_fits(const Operator& what, const Pass& pass, const DeviceType& type) {
  return type.fits && !pass.calls.empty() && !is_depthwise(what, pass);
}

// How grouped products compare with as many side by side, where it is one.
GroupedRatio grouped_by(const Operator& what, KernelPass which, const DeviceType& type, Precision precision) {
  return is_grouped_product(what) ? grouped_ratio(*type.fits, which, what.products.value_or(precision))
                                  : GroupedRatio{};
}

// One kernel of several of an operator.
std::optional<KernelTime> roofline_of(const Kernel& kernel, const DeviceType& type) {
  const std::optional<FlopsPerSecond> rate = type.rate(row_of(kernel.op).kind, kernel.precision);
  if (!rate) {
    return std::nullopt;
  }
  const Seconds time =
      type.launch_overhead + std::max(flops_of(kernel) / *rate, bytes_of(kernel) / type.memory_bandwidth);
  return KernelTime{time, kRooflineSpread, row_of(row_of(kernel.op).kind).name};
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
    if (lacks_format(what, type)) {
      return std::nullopt;
    }
    return time_of_passes(what, [&](const Pass& pass, KernelPass which) {
      const auto fitted = predicted(what, pass, which, type, samples, precision, shard);
      return fitted ? std::optional(fitted->time + cast_time(pass_of_shard(pass, shard), type, samples))
                    : time_from_shapes(what, pass, which, type, samples, precision, shard);
    });
  }

  // A fit's time per sample may rise and fall, so it is searched. Where gaps are taken off, nothing is left of a fitted
  // pass: a fit may say less than a launch for the smallest parts.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    if (lacks_format(what, type)) {
      return std::nullopt;
    }
    const PartRange all{0, part.samples, 1, part.degree};
    const auto on = [&](const Pass& pass, KernelPass which, Seconds gap, const PartRange& range) {
      return least_of_pass(what, pass, which, type, precision, gap, range);
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
      const auto fitted = predicted(what, pass, which, type, samples, precision, {});
      return fitted ? fitted->error : CostError{row_of(what.kind).name, kRooflineSpread, CostSource::roofline};
    };
    return {error_of(what.forward, KernelPass::forward), error_of(what.backward_input, KernelPass::backward_input),
            error_of(what.backward_weight, KernelPass::backward_weight)};
  }

private:
  // Whether the device cannot multiply in the operator's own format, even where a fit of another one would lend a time.
  static bool lacks_format(const Operator& what, const DeviceType& type) {
    return what.products && !type.rate(what.kind, *what.products);
  }

  // The same of a mixture's experts, which any number of devices may share, each with the rows of all: how efficient
  // such products are, no size says. No device multiplies faster than its nominal peak.
  static double least_of_experts(const Pass& pass, const DeviceType& type, Precision format, Seconds gap,
                                 const PartRange& range) {
    const auto rate = type.peak[static_cast<std::size_t>(format)] ? type.peak[static_cast<std::size_t>(format)]
                                                                  : type.rate(KernelKind::matmul, format);
    if (!rate) {
      return std::numeric_limits<double>::infinity();
    }
    const Seconds computed = pass.flops * (range.high / range.least_degree) / *rate;
    return std::max(0.0, (computed - gap).value) * range.least_degree / range.high;
  }

  // Device seconds per sample of a pass, at least, anywhere in the range; infinite if the type lacks the kernel.
  static double least_of_pass(const Operator& what, const Pass& pass, KernelPass which, const DeviceType& type,
                              Precision precision, Seconds gap, const PartRange& range) {
    // A group that divides all of it, whichever tensor it casts.
    const Shard shard{.degree = range.least_degree, .activations = 1.0 / range.least_degree, .by_expert = true};
    if (what.active < 1 && type.fits && what.kind == KernelKind::matmul) {
      return least_of_experts(pass, type, what.products.value_or(precision), gap, range);
    }
    const Pass part = pass_of_shard(pass, shard);
    const auto roofline = [&] {
      const auto shapes = time_from_shapes(what, pass, which, type, range.high, precision, shard);
      return shapes ? std::max(0.0, (*shapes - gap).value) * range.least_degree / range.high
                    : std::numeric_limits<double>::infinity();
    };
    const auto fitted = least_fitted(what, pass, which, type, precision, range);
    if (!fitted) {
      return roofline();
    }
    const double casts = cast_time(part, type, range.high).value * range.least_degree / range.high;
    const double left = gap.value > 0 ? 0 : fitted->per_size + casts;
    return fitted->everywhere ? left : std::min(left, roofline());
  }

  // The sum over the kernels of a pass; nothing where one of them has no fit anywhere in the range.
  static std::optional<LeastKernelTime> least_fitted(const Operator& what, const Pass& pass, KernelPass which,
                                                     const DeviceType& type, Precision precision,
                                                     const PartRange& range) {
    if (!has_fits(what, pass, type)) {
      return std::nullopt;
    }
    if (asks_for_kernels(what, pass)) {
      return LeastKernelTime{};
    }
    const double factor = grouped_by(what, which, type, precision).factor;
    LeastKernelTime sum;
    for (const KernelCall& call : pass.calls) {
      const auto columns = least_of_call(what, call, which, type, precision, range, false);
      const auto sums = what.products ? least_of_call(what, call, which, type, precision, range, true) : columns;
      if (!columns || !sums) {
        return std::nullopt;
      }
      sum.per_size += factor * std::min(columns->per_size, sums->per_size); // whichever a group divides
      sum.everywhere = sum.everywhere && columns->everywhere && sums->everywhere;
    }
    return sum;
  }

  static std::optional<LeastKernelTime> least_of_call(const Operator& what, const KernelCall& call, KernelPass which,
                                                      const DeviceType& type, Precision precision,
                                                      const PartRange& range, bool sums) {
    const Precision format = what.products.value_or(precision);
    KernelRange kernels{kernel_of(call, which, format, range.low), kernel_of(call, which, format, range.high)};
    divide(kernels.low, {range.most_degree, 1.0 / range.most_degree, sums}, what.products.has_value());
    divide(kernels.high, {range.least_degree, 1.0 / range.least_degree, sums}, what.products.has_value());
    const double size = range.high / range.least_degree;
    auto least = stagecraft::least_time(*type.fits, kernels, range.low / range.most_degree, size);
    if (least) {
      least->per_size = std::max(least->per_size, at_peak(kernels.high, type).value / size);
    }
    return least;
  }

  // Seconds of a product or an attention at the device's nominal peak, which none beats, whatever fits say of sizes
  // that nobody measured; 0 of other kernels, and where no peak is known.
  static Seconds at_peak(const Kernel& kernel, const DeviceType& type) {
    const bool multiplies = kernel.op == KernelOp::gemm || kernel.op == KernelOp::attention;
    const auto peak = type.peak[static_cast<std::size_t>(kernel.precision)];
    return multiplies && peak ? flops_of(kernel) / *peak : Seconds{0};
  }

  // An attention in rounds over parts of the tokens: a causal one has as many pairs in all as so many causal ones of a
  // part. It is never faster than in one kernel, where fits may say so.
  static std::optional<KernelTime> predicted(const KernelFits& fits, const Kernel& kernel, int rounds,
                                             std::string_view variant) {
    std::optional<KernelTime> whole = variant.empty() ? std::nullopt : predict(fits, kernel, variant);
    whole = whole ? whole : predict(fits, kernel);
    if (whole && kernel.op == KernelOp::attention && rounds > 1) {
      Kernel part = kernel;
      part.shape[0] *= rounds;
      part.shape[1] = std::max(1.0, part.shape[1] / rounds);
      if (const auto one = predicted(fits, part, 1, variant)) {
        whole->time = std::max(whole->time, one->time * rounds); // attention has no cast
      }
    }
    return whole;
  }

  // The sum over the kernels of a pass; nothing where there is no fit for one of them.
  static std::optional<PassTime> predicted(const Operator& what, const Pass& pass, KernelPass which,
                                           const DeviceType& type, double samples, Precision precision,
                                           const Shard& shard) {
    if (!has_fits(what, pass, type)) {
      return std::nullopt;
    }
    const GroupedRatio grouped = grouped_by(what, which, type, precision);
    PassTime sum;
    for (const KernelCall& call : pass.calls) {
      Kernel kernel = kernel_of(call, which, what.products.value_or(precision), samples);
      if (call.op == KernelOp::gemm && (shard.replicas > 1 || shard.by_expert)) {
        share_experts(kernel, shard, call.grows);
      }
      divide(kernel, shard, what.products.has_value(), what.kind);
      auto one = predicted(*type.fits, kernel, shard.rounds, call.variant);
      CostSource source = one && one->source == FitSource::exact ? CostSource::table : CostSource::fit;
      if (!one && what.kind == KernelKind::attention && pass.calls.size() > 1) {
        one = roofline_of(kernel, type);
        source = CostSource::roofline;
      }
      if (!one) {
        return std::nullopt;
      }
      // Casts are a cost of their own (cast_time()).
      const Seconds alone = std::max(one->time - one->cast, at_peak(kernel, type)) * grouped.factor;
      sum.time += alone;
      if (alone > sum.longest) {
        sum.longest = alone;
        sum.error = {one->family, std::hypot(one->spread, grouped.spread), source};
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
