// What the names in a plan file mean: operators, devices, and layers where a file only counts them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/yaml.hpp"
#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Operators and devices by name. Unknown names are located errors with the nearest known one.
class PlanNames {
public:
  PlanNames(const ModelGraph& model, const Platform& platform);

  OperatorId operator_of(const std::string& name, const Where& where) const;
  /// The operators of a list, ascending; nodes whose names nobody knows are added to `unknown` instead.
  std::vector<OperatorId> operators_of(const std::vector<const yaml::Node*>& list,
                                       std::vector<const yaml::Node*>& unknown) const;
  /// InputError for unknown operators, if there are any: at the first, the others by name and line.
  void refuse(const std::vector<const yaml::Node*>& unknown) const;
  /// A device by its name, or by its place on the platform as other tools count ranks: "3" or "cuda:3". A place beyond
  /// the last device is read; that the platform has no such device is a defect of the plan.
  DeviceId device_of(const std::string& name, const Where& where) const;
  DeviceId device_of(const yaml::Node& node) const { return device_of(yaml::scalar(node, "device"), node.where); }

private:
  std::unordered_map<std::string, int> operators_, devices_;
};

/// The operators of each of `count` layers, in order: operators one by one, else blocks, else the row of numbered
/// blocks with what stands before it in the first and what stands behind it in the last (blocks.hpp). A loss that ends
/// the model may go uncounted; it then belongs to the last. InputError naming all counts where none is `count`.
std::vector<std::vector<OperatorId>> layers_by_count(const ModelGraph& model, long long count, const Where& where);

/// Ranks given out by other tools are at most this.
inline constexpr int kMostRank = 1'000'000;

} // namespace stagecraft
