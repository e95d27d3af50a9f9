// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/profile.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace stagecraft::cpu {
namespace {

using stagecraft::Kernel;

Kernel product_of(double m, double n, double k, Precision precision) {
  const auto whole = [](double value) { return std::max(1.0, std::round(value)); };
  return {KernelOp::gemm, KernelPass::forward, precision, {1, whole(m), whole(n), whole(k)}};
}

std::string text_of(const StandIn& stand_in) {
  if (stand_in.kernel.op == KernelOp::copy) {
    return "a copy of as many bytes";
  }
  return stand_in.times == 1 ? "a product of as many operations" : "products of as many operations";
}

bool empty(const Pass& pass) {
  return pass.calls.empty() && (pass.kernels == 0 || (pass.flops.value == 0 && pass.moved_elements == 0));
}

const Pass& pass_of(const Operator& op, KernelPass pass) {
  return pass == KernelPass::forward          ? op.forward
         : pass == KernelPass::backward_input ? op.backward_input
                                              : op.backward_weight;
}

// Whether the weight's gradient comes with the input's: kernels of normalizations compute all gradients at once.
bool goes_with_input(const Operator& op, KernelPass pass) {
  return pass == KernelPass::backward_weight && op.kind == KernelKind::normalization &&
         !op.backward_input.calls.empty();
}

struct Parts {
  std::vector<KernelRun> forward, backward;
};

Parts parts_of(const Operator& op, double samples) {
  Parts parts{kernels_of_pass(op, KernelPass::forward, samples),
              kernels_of_pass(op, KernelPass::backward_input, samples)};
  const std::vector<KernelRun> weight = kernels_of_pass(op, KernelPass::backward_weight, samples);
  parts.backward.insert(parts.backward.end(), weight.begin(), weight.end());
  return parts;
}

// Times of kernels, each measured when it is first needed.
class Times {
public:
  Times(const MeasureKernel& measure, const std::function<void(std::size_t, std::size_t)>& told, std::size_t all)
      : measure_(measure), told_(told), all_(all) {}

  const KernelTiming& of(const Kernel& kernel) {
    const auto [at, fresh] = known_.try_emplace(to_text(kernel));
    if (fresh) {
      at->second = measure_(kernel);
      if (told_) {
        told_(known_.size(), all_);
      }
    }
    return at->second;
  }

  /// Sum of the times of `parts`; `variance` gets the variance of the sum.
  Seconds sum(const std::vector<KernelRun>& parts, double& variance) {
    Seconds all;
    for (const KernelRun& part : parts) {
      const KernelTiming& timing = of(part.kernel);
      const Seconds time = timing.time * part.times;
      const double deviation = time.value * std::max(timing.spread, part.stands_in ? kStandInSpread : 0);
      variance += deviation * deviation;
      all += time;
    }
    return all;
  }

private:
  const MeasureKernel& measure_;
  const std::function<void(std::size_t, std::size_t)>& told_;
  std::size_t all_;
  std::map<std::string, KernelTiming> known_;
};

std::size_t count_kernels(const ModelGraph& model, const std::vector<double>& sizes) {
  std::set<std::string> kernels;
  for (const double samples : sizes) {
    for (const Operator& op : model.operators) {
      const Parts parts = parts_of(op, samples);
      for (const auto* list : {&parts.forward, &parts.backward}) {
        for (const KernelRun& part : *list) {
          kernels.insert(to_text(part.kernel));
        }
      }
    }
  }
  return kernels.size();
}

std::vector<std::string> stand_ins_of(const ModelGraph& model) {
  std::vector<std::string> texts;
  for (const Operator& op : model.operators) {
    for (const KernelPassRow& row : kKernelPasses) {
      const Pass& pass = pass_of(op, row.pass);
      if (pass.calls.empty() && !empty(pass) && !goes_with_input(op, row.pass)) {
        texts.push_back(op.name + ": " + text_of(stand_in(op, pass, 1)));
        break;
      }
    }
  }
  return texts;
}

} // namespace

StandIn stand_in(const Operator& op, const Pass& pass, double samples, Precision precision) {
  const double multiplications = pass.flops.value * samples / 2;
  if (multiplies(op.kind) && multiplications >= 1) {
    if (op.kind == KernelKind::recurrent) {
      const int times = std::max(1, pass.kernels);
      const double side = std::sqrt(multiplications / times / samples);
      return {product_of(samples, side, side, precision), times};
    }
    const double side = std::cbrt(multiplications);
    return {product_of(side, side, side, precision), 1};
  }
  constexpr double kColumns = 1024;
  const double cells = std::max(1.0, std::ceil((pass.moved_elements * samples + pass.moved_parameters) / 2));
  const double columns = std::min(cells, kColumns);
  return {{KernelOp::copy, KernelPass::forward, precision, {std::ceil(cells / columns), columns}}, 1};
}

std::vector<KernelRun> kernels_of_pass(const Operator& op, KernelPass which, double samples, Precision precision) {
  const Pass& pass = pass_of(op, which);
  std::vector<KernelRun> runs;
  if (goes_with_input(op, which)) {
    return runs;
  }
  for (const KernelCall& call : pass.calls) {
    runs.push_back({kernel_of(call, which, precision, samples)});
  }
  if (runs.empty() && !empty(pass)) {
    const StandIn other = stand_in(op, pass, samples, precision);
    runs.push_back({other.kernel, other.times, true});
  }
  return runs;
}

MeasuredModel measure_model(const ModelGraph& model, const std::vector<double>& sizes, const MeasureKernel& measure,
                            const std::function<void(std::size_t done, std::size_t all)>& told) {
  Times times(measure, told, count_kernels(model, sizes));
  MeasuredModel measured{.profiles = {}, .stand_ins = stand_ins_of(model)};
  for (const double samples : sizes) {
    Profile profile{.samples = samples};
    for (const Operator& op : model.operators) {
      const Parts parts = parts_of(op, samples);
      double variance = 0;
      MeasuredTime time;
      time.forward = times.sum(parts.forward, variance);
      time.backward = times.sum(parts.backward, variance);
      const double both = (time.forward + time.backward).value;
      time.spread = both > 0 ? std::sqrt(variance) / both : 0;
      profile.times.push_back(time);
    }
    measured.profiles.push_back(std::move(profile));
  }
  return measured;
}

} // namespace stagecraft::cpu
