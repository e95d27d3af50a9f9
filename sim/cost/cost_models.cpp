// The table of cost models, and what cost models share: shards, and errors by default.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/base/named_table.hpp"
#include "sim/cost/cost_model.hpp"

namespace stagecraft {

std::optional<OperatorTime> CostModel::time_of_shard(OperatorId op, const DeviceType& type, double samples,
                                                     Precision precision, const Shard& shard) const {
  auto whole = time(op, type, samples, precision);
  if (!whole || shard.degree == 1) {
    return whole;
  }
  const auto part = [&](Seconds seconds) {
    const Seconds launch = std::min(type.launch_overhead, seconds);
    return launch + (seconds - launch) / shard.degree;
  };
  return OperatorTime{part(whole->forward), part(whole->backward_input), part(whole->backward_weight)};
}

std::optional<LeastTime> least_of_whole(const CostModel& cost, OperatorId op, const DeviceType& type,
                                        Precision precision, const AnyPart& part) {
  const auto time = cost.time(op, type, part.samples, precision);
  if (!time) {
    return std::nullopt;
  }
  const auto per_sample = [&](Seconds seconds, Seconds gap) {
    return std::max(Seconds{0}, seconds - gap) / part.samples;
  };
  LeastTime least{{per_sample(time->forward, part.gaps.forward),
                   per_sample(time->backward_input, part.gaps.backward_input),
                   per_sample(time->backward_weight, part.gaps.backward_weight)},
                  {}};
  least.all = least.each.forward + least.each.backward_input + least.each.backward_weight;
  return least;
}

OperatorError CostModel::error(OperatorId /*op*/, const DeviceType& /*type*/, double /*samples*/,
                               Precision /*precision*/) const {
  return {};
}

std::span<const CostModelRow> cost_models() {
  static constexpr std::array kRows = {
      CostModelRow{"roofline", "launches + max(FLOPs / rate, bytes / bandwidth), from shapes and device types",
                   make_roofline},
      CostModelRow{"calibrated", "kernel by kernel from fits to measurements in the device files, roofline elsewhere",
                   make_calibrated},
      CostModelRow{"profiled", "times measured per operator, scaled to other sizes and device types", make_profiled},
      CostModelRow{"constant", "every operator takes one second forward and two backward, for trying things out",
                   make_constant},
  };
  return kRows;
}

CostModelResult make_cost_model(std::string_view name, const CostModelRequest& request, const Where& where) {
  if (name == "auto") {
    return request.model.profiles.empty() ? make_calibrated(request) : make_profiled(request);
  }
  return find_by_name(cost_models(), name, "cost model", where).make(request);
}

} // namespace stagecraft
