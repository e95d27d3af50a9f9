// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/alike_times.hpp"

#include <algorithm>

namespace stagecraft {

std::vector<OperatorId> first_alike(const CostModel& cost, OperatorId operators) {
  std::vector<OperatorId> first;
  std::vector<OperatorId> different;
  for (OperatorId op = 0; op < operators; ++op) {
    const auto same =
        std::find_if(different.begin(), different.end(), [&](OperatorId other) { return cost.alike(op, other); });
    first.push_back(same == different.end() ? op : *same);
    if (first.back() == op) {
      different.push_back(op);
    }
  }
  return first;
}

const std::optional<OperatorTime>& AlikeTimes::of(OperatorId op) { return find(op, std::nullopt); }

const std::optional<OperatorTime>& AlikeTimes::of_shard(OperatorId op, const Shard& shard) { return find(op, shard); }

const std::optional<OperatorTime>& AlikeTimes::find(OperatorId op, const std::optional<Shard>& shard) {
  constexpr std::size_t kMost = 32; // operators to compare with: more would cost more than they save
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& one) { return one.shard == shard && cost_.alike(one.op, op); });
  if (known != known_.end()) {
    return known->time;
  }
  last_ = shard ? cost_.time_of_shard(op, type_, samples_, precision_, *shard)
                : cost_.time(op, type_, samples_, precision_);
  if (known_.size() < kMost) {
    known_.push_back({op, shard, last_});
  }
  return last_;
}

} // namespace stagecraft
