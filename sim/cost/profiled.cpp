// Times as measured (docs/model.md, "Profiled"). For another micro-batch size they are interpolated between measured
// sizes, or scaled, except for launch overhead. For a device type without a profile they are scaled by the rates of the
// kernel's family.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/cost/cost_model.hpp"

namespace stagecraft {
namespace {

// The weight gradient takes half of an operator's backward time: both gradients of a matrix product or convolution are
// the same work.
constexpr double kWeightGradientShare = 0.5;

// The profiles of one device type, by micro-batch size.
struct Series {
  std::string device;
  int tensor_parallel = 1;
  std::vector<const Profile*> by_size;
};

class ProfiledModel : public CostModel {
public:
  ProfiledModel(const ModelGraph& model, const DeviceType* reference) : model_(model), reference_(reference) {
    for (const Profile& profile : model.profiles) {
      const auto same = std::find_if(series_.begin(), series_.end(), [&](const Series& one) {
        return one.device == profile.device && one.tensor_parallel == profile.tensor_parallel;
      });
      Series& series =
          same == series_.end() ? series_.emplace_back(Series{profile.device, profile.tensor_parallel, {}}) : *same;
      series.by_size.push_back(&profile);
    }
    for (Series& series : series_) {
      std::stable_sort(series.by_size.begin(), series.by_size.end(),
                       [](const Profile* a, const Profile* b) { return a->samples < b->samples; });
    }
  }

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    return time_in(*series_of(type, 1), op, type, samples, precision);
  }

  std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples, Precision precision,
                                            const Shard& shard) const override {
    const Series* measured = series_of(type, shard.degree);
    return measured != nullptr ? time_in(*measured, op, type, samples, precision)
                               : CostModel::time_of_shard(op, type, samples, precision, shard);
  }

  // Between two measured sizes, and beyond them, the time per sample goes one way; so it is least at a measured size or
  // at the whole, or it falls to nothing where the gaps outweigh the launch that every size takes. Degrees that were
  // not measured are extrapolated, which takes no less.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    std::optional<LeastTime> least;
    for (const Series& series : series_) {
      const Series* used = series_of(type, series.tensor_parallel);
      if (used != &series || (series.tensor_parallel > part.degree && series.tensor_parallel > 1)) {
        continue;
      }
      for (const double samples : sizes_up_to(part.samples, series)) {
        if (const auto time = time_in(series, op, type, samples, precision)) {
          lower(least, *time, part, series.tensor_parallel / samples);
        }
      }
    }
    return least && outweighed(op, type, precision, part) ? LeastTime{} : least;
  }

  OperatorError error(OperatorId op, const DeviceType& type, double /*samples*/,
                      Precision /*precision*/) const override {
    const bool at_home = reference_ == nullptr || series_of(type, 1)->device == type.name;
    const CostError error{row_of(model_.operators[static_cast<std::size_t>(op)].kind).name,
                          at_home ? kProfileSpread : kScaledProfileSpread,
                          at_home ? CostSource::profile : CostSource::scaled_profile};
    return {error, error, error};
  }

private:
  static std::vector<double> sizes_up_to(double samples, const Series& series) {
    std::vector<double> sizes = {samples};
    for (const Profile* profile : series.by_size) {
      if (profile->samples > 0 && profile->samples < samples) {
        sizes.push_back(profile->samples);
      }
    }
    return sizes;
  }

  // Takes each of the three passes, and their sum, where it is less than before.
  static void lower(std::optional<LeastTime>& least, const OperatorTime& time, const AnyPart& part, double factor) {
    const auto left = [&](Seconds seconds, Seconds gap) { return std::max(Seconds{0}, seconds - gap) * factor; };
    const OperatorTime one{left(time.forward, part.gaps.forward), left(time.backward_input, part.gaps.backward_input),
                           left(time.backward_weight, part.gaps.backward_weight)};
    const Seconds all = one.forward + one.backward_input + one.backward_weight;
    if (!least) {
      least = LeastTime{one, all};
      return;
    }
    least->each = {std::min(least->each.forward, one.forward), std::min(least->each.backward_input, one.backward_input),
                   std::min(least->each.backward_weight, one.backward_weight)};
    least->all = std::min(least->all, all);
  }

  // Whether the gaps are more than what a part of hardly any samples takes.
  bool outweighed(OperatorId op, const DeviceType& type, Precision precision, const AnyPart& part) const {
    const OperatorTime& gaps = part.gaps;
    if (gaps.forward.value == 0 && gaps.backward_input.value == 0 && gaps.backward_weight.value == 0) {
      return false;
    }
    constexpr double kHardlyAny = 1e-9;
    const auto time = time_in(*series_of(type, 1), op, type, part.samples * kHardlyAny, precision);
    constexpr double kRounding = 1e-6;
    const auto less = [&](Seconds seconds, Seconds gap) { return seconds < gap * (1 - kRounding); };
    return !time || less(time->forward, gaps.forward) || less(time->backward_input, gaps.backward_input) ||
           less(time->backward_weight, gaps.backward_weight);
  }

  std::optional<OperatorTime> time_in(const Series& series, OperatorId op, const DeviceType& type, double samples,
                                      Precision precision) const {
    const std::optional<double> factor = device_factor(op, series, type, precision);
    const MeasuredTime measured = at_size(op, series, type, samples);
    if (!factor || !std::isfinite(measured.forward.value)) {
      return std::nullopt;
    }
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    const double weight_share = what.parameters > 0 ? kWeightGradientShare : 0;
    return OperatorTime{measured.forward * *factor, measured.backward * (*factor * (1 - weight_share)),
                        measured.backward * (*factor * weight_share)};
  }

  // The profiles measured on this type, or else the first ones, from which the times of other types are scaled; nullptr
  // where none has this tensor-parallel degree.
  const Series* series_of(const DeviceType& type, int tensor_parallel) const {
    const Series* found = nullptr;
    for (const Series& series : series_) {
      if (series.tensor_parallel == tensor_parallel && (found == nullptr || series.device == type.name)) {
        found = &series;
      }
    }
    return found;
  }

  // Duration on `type` relative to the measured one: by rates for matrix kernels, by memory bandwidth for the others.
  std::optional<double> device_factor(OperatorId op, const Series& series, const DeviceType& type,
                                      Precision precision) const {
    const Operator& what = model_.operators[static_cast<std::size_t>(op)];
    const auto rate = type.rate(what.kind, precision);
    if (!rate) {
      return std::nullopt;
    }
    if (reference_ == nullptr || series.device == type.name) {
      return 1.0;
    }
    const auto reference_rate = reference_->rate(what.kind, precision);
    if (!reference_rate || !multiplies(what.kind)) {
      return reference_->memory_bandwidth / type.memory_bandwidth;
    }
    return *reference_rate / *rate;
  }

  static MeasuredTime at_size(OperatorId op, const Series& series, const DeviceType& type, double samples) {
    const std::vector<const Profile*>& by_size = series.by_size;
    const auto at = static_cast<std::size_t>(op);
    const auto above = std::find_if(by_size.begin(), by_size.end(),
                                    [&](const Profile* profile) { return profile->samples >= samples; });
    if (above != by_size.end() && above != by_size.begin()) {
      const Profile& low = **(above - 1);
      const Profile& high = **above;
      const double t = (samples - low.samples) / (high.samples - low.samples);
      return {low.times[at].forward * (1 - t) + high.times[at].forward * t,
              low.times[at].backward * (1 - t) + high.times[at].backward * t};
    }
    const Profile& nearest = above == by_size.end() ? *by_size.back() : *by_size.front();
    const double scale = samples / nearest.samples;
    return {scaled(nearest.times[at].forward, scale, type), scaled(nearest.times[at].backward, scale, type)};
  }

  // A launch takes the same time for any number of samples; the rest of the measured time is proportional to it.
  static Seconds scaled(Seconds measured, double scale, const DeviceType& type) {
    if (scale == 1) {
      return measured;
    }
    const Seconds launch = std::min(type.launch_overhead, measured);
    return launch + (measured - launch) * scale;
  }

  const ModelGraph& model_;
  const DeviceType* reference_;
  std::vector<Series> series_; ///< one per device type, in the order of the model's profiles
};

} // namespace

CostModelResult make_profiled(const CostModelRequest& request) {
  if (request.model.profiles.empty()) {
    return Infeasible{"the model '" + request.model.name + "' has no profile; use the cost model roofline"};
  }
  return std::make_unique<ProfiledModel>(request.model, request.reference);
}

} // namespace stagecraft
