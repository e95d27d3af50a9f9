// Training over time in a world that changes: a plan that stays, dynamic balancing, and the best plan for the true
// speeds, side by side. docs/model.md, "Adapting".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/result/run.hpp"
#include "sim/study/planning/study_memo.hpp"

namespace stagecraft {

/// Consecutive iterations under one plan.
struct AdaptRound {
  int first = 0, iterations = 0;
  Seconds iteration; ///< mean
  Seconds largest_waiting, mean_waiting;
  bool new_plan = false;
  Bytes migrated;     ///< parameters and optimiser states moved before the round
  Seconds migration;  ///< how long the move took
  std::string action; ///< what the policy did after the round
};

struct AdaptPolicy {
  std::string name;
  std::vector<AdaptRound> rounds;
  std::vector<RunRound> balancing; ///< of `dynamic`: the balancer's own record of each round
  std::string why_not;             ///< why it stopped before the end, or ""
  int replays = 0;                 ///< different pairs of plan and speeds that the engine ran
  int searching = 0;               ///< rounds that tried a plan rather than kept one

  int iterations() const;
  Seconds total() const; ///< iterations and migrations
  Bytes migrated() const;
  Seconds migration() const;
  /// Mean iteration time of the last round that ends before or with iteration `end`; 0 where there is none.
  Seconds iteration_before(int end) const;
};

/// The time from one change of the world to the next.
struct AdaptPhase {
  int first = 0, end = 0; ///< iterations
  std::string what;       ///< the events at its start, in words
  /// Rounds of `dynamic` until one is within 5 and 2 % of `oracle` at the end of the phase; 0 where none is.
  int rounds_to_5_percent = 0, rounds_to_2_percent = 0;
};

struct Adaptation {
  std::string model, platform, schedule, engine;
  std::string placement, update; ///< of `dynamic`, and the placement of `never`'s only plan
  int micro_batches = 1;
  std::vector<std::string> devices;
  std::vector<AdaptPolicy> policies; ///< never, dynamic, oracle
  std::vector<AdaptPhase> phases;
  std::vector<std::string> inputs = {}; ///< files, for readers to find
};

/// Runs key `adapt` of the study, which must have it.
Adaptation adapt(StudyMemo& memo);

/// What moving from one plan to another takes: each operator's weights and optimiser state go from the nearest device
/// that had it to every device that newly has it, over the route between them. All routes are used at once, but a
/// device sends one operator after the other, and receives likewise. The host of a device that left still has its copy;
/// the time is as if the device itself sent it.
struct Migration {
  Bytes bytes;
  Seconds time;
};
Migration migration(const Problem& problem, const Plan& from, const Plan& to);

/// Documents: a table of policies and phases, the rounds as a picture, JSON, a CSV line per policy and round.
std::string to_text(const Adaptation& adaptation, bool color);
std::string to_json(const Adaptation& adaptation);
std::string to_csv(const Adaptation& adaptation);

} // namespace stagecraft
