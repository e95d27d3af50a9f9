// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/alike_times.hpp"

#include <algorithm>

namespace stagecraft {
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
