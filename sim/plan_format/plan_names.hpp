// What the names in a plan file mean: operators, devices, and layers in files that only count them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Finds operators and devices by name. Unknown names are located errors that suggest the nearest known one.
class PlanNames {
public:
  PlanNames(const ModelGraph& model, const Platform& platform);

  OperatorId operator_of(const std::string& name, const Where& where) const;
  /// The operators of a list, ascending; nodes with unknown names are added to `unknown` instead.
  std::vector<OperatorId> operators_of(const std::vector<const yaml::Node*>& list,
                                       std::vector<const yaml::Node*>& unknown) const;
  /// Throws InputError if there are unknown operators, placed at the first; the message gives the others by name and
  /// line.
  void refuse(const std::vector<const yaml::Node*>& unknown) const;
  /// A device by its name, or by its index on the platform, as other tools count ranks: "3" or "cuda:3". An index
  /// beyond the last device is accepted here, and is later reported as a defect of the plan.
  DeviceId device_of(const std::string& name, const Where& where) const;
  DeviceId device_of(const yaml::Node& node) const { return device_of(yaml::scalar(node, "device"), node.where); }

private:
  std::unordered_map<std::string, int> operators_, devices_;
};

/// Splits the model's operators into `count` layers, in order. Layers are single operators, blocks, or the row of
/// numbered blocks (blocks.hpp), tried in this order until one has `count` layers. In the row, the first and last layer
/// include what stands before and after it. A loss at the end need not be counted; it then belongs to the last layer.
/// InputError with all possible counts if none matches.
std::vector<std::vector<OperatorId>> layers_by_count(const ModelGraph& model, long long count, const Where& where);

/// The largest rank that a file of another tool may name.
inline constexpr int kMostRank = 1'000'000;

} // namespace stagecraft
