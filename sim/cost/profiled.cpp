// Times as measured. Another micro-batch size interpolates between measured sizes or scales what is not launch
// overhead; another device type scales by the rates of the kernel's family (docs/model.md, "Profiles").
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/cost/cost_model.hpp"

namespace stagecraft {
namespace {

// Half of the backward time of an operator with parameters is its weight gradient: both gradients of a matrix product
// or convolution do the same work.
constexpr double kWeightGradientShare = 0.5;

class Profiled : public CostModel {
public:
  Profiled(const ModelGraph& model, const DeviceType* reference) : model_(model), reference_(reference) {
    for (const Profile& profile : model.profiles) {
      by_size_.push_back(&profile);
    }
    std::stable_sort(by_size_.begin(), by_size_.end(),
                     [](const Profile* a, const Profile* b) { return a->samples < b->samples; });
  }

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    const std::optional<double> factor = device_factor(op, type, precision);
    if (!factor) {
      return std::nullopt;
    }
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    const MeasuredTime measured = at_size(op, type, samples);
    const double weight_share = what.parameters > 0 ? kWeightGradientShare : 0;
    return OperatorTime{measured.forward * *factor, measured.backward * (*factor * (1 - weight_share)),
                        measured.backward * (*factor * weight_share)};
  }

private:
  // Relative duration on `type`: matrix kernels by their rates, the others by memory bandwidth.
  std::optional<double> device_factor(OperatorId op, const DeviceType& type, Precision precision) const {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    const auto rate = type.rate(what.kind, precision);
    if (!rate) {
      return std::nullopt;
    }
    if (reference_ == nullptr || reference_->name == type.name) {
      return 1.0;
    }
    const auto reference_rate = reference_->rate(what.kind, precision);
    if (!reference_rate || !row_of(what.kind).matrix) {
      return reference_->memory_bandwidth / type.memory_bandwidth;
    }
    return *reference_rate / *rate;
  }

  MeasuredTime at_size(OperatorId op, const DeviceType& type, double samples) const {
    const auto at = static_cast<std::size_t>(op);
    const auto above = std::find_if(by_size_.begin(), by_size_.end(),
                                    [&](const Profile* profile) { return profile->samples >= samples; });
    if (above != by_size_.end() && above != by_size_.begin()) {
      const Profile& low = **(above - 1);
      const Profile& high = **above;
      const double t = (samples - low.samples) / (high.samples - low.samples);
      return {low.times[at].forward * (1 - t) + high.times[at].forward * t,
              low.times[at].backward * (1 - t) + high.times[at].backward * t};
    }
    const Profile& nearest = above == by_size_.end() ? *by_size_.back() : *by_size_.front();
    const double scale = samples / nearest.samples;
    return {scaled(nearest.times[at].forward, scale, type), scaled(nearest.times[at].backward, scale, type)};
  }

  // A launch lasts as long for few samples as for many; the rest of the measured time is proportional.
  static Seconds scaled(Seconds measured, double scale, const DeviceType& type) {
    if (scale == 1) {
      return measured;
    }
    const Seconds launch = std::min(type.launch_overhead, measured);
    return launch + (measured - launch) * scale;
  }

  const ModelGraph& model_;
  const DeviceType* reference_;
  std::vector<const Profile*> by_size_;
};

} // namespace

CostModelResult make_profiled(const CostModelRequest& request) {
  if (request.model.profiles.empty()) {
    return Infeasible{"the model '" + request.model.name + "' has no profile; use the cost model roofline"};
  }
  for (const Profile& profile : request.model.profiles) {
    if (profile.device != request.model.profiles.front().device) {
      return Infeasible{"the model '" + request.model.name + "' has profiles of two device types, '" + profile.device +
                        "' and '" + request.model.profiles.front().device + "'; allowed: one"};
    }
  }
  return std::make_unique<Profiled>(request.model, request.reference);
}

} // namespace stagecraft
