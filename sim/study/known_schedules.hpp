// Schedules whose orders follow from numbers alone, made once for all the plans that a planner tries under them; and
// those whose orders follow from a plan's times, made once for all strategies that find the plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/plan/problem.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What a schedule whose orders follow from numbers alone is asked for: an iteration of the problem on so many ranks.
ScheduleRequest request_by_numbers(const Problem& problem, int ranks, int chunks);

/// Remembers what make_schedule() answered, from the second time on that it is asked: a run alone asks once. It holds
/// about a million actions of the former at most, and then starts anew; of the latter as many as are asked for.
class KnownSchedules {
public:
  /// make_schedule() of a row that is neither timed nor in_turn, by the numbers of a request alone.
  ScheduleResult find_or_make(const ScheduleRow& row, const ScheduleRequest& request);

  /// What make() returned for a row that is timed and these stages when it was first asked.
  template <class Make>
  ScheduleResult find_or_make(const ScheduleRow& row, const Problem& problem, const std::vector<Stage>& stages,
                              const Make& make) {
    for (const OfPlan& known : of_plans_) {
      if (known.row == &row && known.problem == &problem && known.stages == stages) {
        return known.made;
      }
    }
    return of_plans_.emplace_back(OfPlan{&row, &problem, stages, make()}).made;
  }

private:
  struct OfPlan {
    const ScheduleRow* row;
    const Problem* problem;
    std::vector<Stage> stages;
    ScheduleResult made;
  };

  using Numbers = std::tuple<const ScheduleRow*, int, int, int, int>;
  std::map<Numbers, std::optional<ScheduleResult>> known_; // nothing: asked once
  std::size_t actions_ = 0;                                // of all that is known
  std::vector<OfPlan> of_plans_;
};

} // namespace stagecraft
