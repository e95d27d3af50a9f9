// What planners found for one schedule, kept for others that leave no more room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// What a schedule holds on each of some stages.
struct HeldBySchedule {
  std::vector<double> in_flight; ///< [stage]: micro-batches
  int versions = 1;              ///< of the weights

  bool is_no_less_than(const HeldBySchedule& other) const {
    return versions >= other.versions && std::equal(in_flight.begin(), in_flight.end(), other.in_flight.begin(),
                                                    other.in_flight.end(), std::greater_equal<>());
  }
};

inline HeldBySchedule held_by_schedule(const PlanRequest& request, int stages) {
  HeldBySchedule held{.versions = request.versions};
  for (int stage = 0; stage < stages; ++stage) {
    held.in_flight.push_back(request.in_flight(stage, stages));
  }
  return held;
}

/// Answers to one question under several schedules: the best of all that fit, ties decided alike under each. Where a
/// schedule holds no less than another, only answers drop out, so the best stays the best if it still fits.
template <class Answer> class KeptAnswers {
public:
  /// The answer that is kept, or that find() finds now. `stays`: whether an answer still fits; true of none at all.
  template <class Stays, class Find>
  const Answer& find_or_keep(HeldBySchedule held, const Stays& stays, const Find& find) {
    const auto known = std::find_if(known_.begin(), known_.end(), [&](const auto& one) {
      return held.is_no_less_than(one.first) && stays(one.second);
    });
    return known != known_.end() ? known->second : known_.emplace_back(std::move(held), find()).second;
  }

private:
  std::vector<std::pair<HeldBySchedule, Answer>> known_;
};

} // namespace stagecraft
