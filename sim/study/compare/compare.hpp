// The main job: every strategy under every schedule, replayed on one platform and ranked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>

#include "sim/replay/what_if/sensitivities.hpp"
#include "sim/study/compare/prepare.hpp"

namespace stagecraft {

/// A comparison and, for each ranked run, what was replayed. Equal runs share one graph.
struct ComparisonResult {
  Comparison comparison;
  std::vector<Prepared> prepared;  ///< in the order they were made
  std::vector<std::size_t> of_run; ///< [ranked run]: index into `prepared` of the entry with its graph and timeline
};

/// What a study combines: strategies and plans, each under every schedule, with every number of micro-batches and every
/// choice of recompute. They point into the study.
std::vector<Scenario> scenarios_of(const Study& study);

/// How a comparison is made. What comes out depends on `changes` alone.
struct CompareOptions {
  ProgressCall progress =
      {};          ///< hears how many plans of how many are made, then how many changes of how many are found
  int workers = 1; ///< processes that plan and replay
  /// Of the first so many infeasible runs the change that would make them fit is looked for, and of the next ones until
  /// one is found, which the verdict names.
  std::size_t changes = std::numeric_limits<std::size_t>::max();
};

/// Every scenario, prepared, replayed, ranked and judged. All runs of a block have the same lower bound: the least of
/// theirs, which differ in what they may overlap.
ComparisonResult compare(StudyMemo& memo, const CompareOptions& options = {});

/// Sentences on a ranked comparison, every number computed: what won, against the naive choice and the bound, what
/// would make it faster, and what would let the others fit. `sensitivities` are the winner's, the most helpful first;
/// without them nothing is said of faster parts. `without_barrier` is the winner's period if it stepped without a
/// barrier; none where it does, or where nobody asked.
std::vector<std::string> make_verdict(const Comparison& comparison, const std::vector<Sensitivity>& sensitivities = {},
                                      std::optional<Seconds> without_barrier = {});

/// The ranked run to compare the winner with, of the winner's block: the best run of `uniform`, the split without
/// planning; where there is none, the slowest; -1 when nothing is feasible.
int naive_run(const Comparison& comparison);

/// The fastest asynchronous run, where it is ranked after a winner of exact training; -1 where there is none.
int best_asynchronous(const Comparison& comparison);

} // namespace stagecraft
