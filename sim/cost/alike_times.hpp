// Times of many operators of which most are alike, as the layers of a model are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/cost/cost_model.hpp"

namespace stagecraft {

/// [operator]: the first of those that are alike (CostModel::alike()).
std::vector<OperatorId> first_alike(const CostModel& cost, OperatorId operators);

/// The times of operators on one device type at one size. The cost model is asked once for those that are alike. All
/// that is given must outlive this.
class AlikeTimes {
public:
  AlikeTimes(const CostModel& cost, const DeviceType& type, double samples, Precision precision)
      : cost_(cost), type_(type), samples_(samples), precision_(precision) {}

  /// CostModel::time(), valid until the next call.
  const std::optional<OperatorTime>& of(OperatorId op);
  /// CostModel::time_of_shard(), valid until the next call.
  const std::optional<OperatorTime>& of_shard(OperatorId op, const Shard& shard);

private:
  struct Known {
    OperatorId op;
    std::optional<Shard> shard; ///< none: of a whole operator
    std::optional<OperatorTime> time;
  };
  const std::optional<OperatorTime>& find(OperatorId op, const std::optional<Shard>& shard);

  const CostModel& cost_;
  const DeviceType& type_;
  double samples_;
  Precision precision_;
  std::vector<Known> known_; ///< no two alike
  std::optional<OperatorTime> last_;
};

} // namespace stagecraft
