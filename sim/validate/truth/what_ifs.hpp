// Pairs of measured runs that differ in one setting, and groups of runs that are ranked:
// docs/validation/what-ifs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/report/what_ifs.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"

namespace stagecraft {

/// A measured run beside what is predicted of the parts that were timed.
struct ComparedRun {
  const TruthRow* row = nullptr;
  PredictedRun run;
};

/// The row's machine, model and settings in words: equal for rows that measured the same configuration.
std::string configuration_of(const TruthRow& row);

/// All pairs that differ in one setting, of one model, table, release and machine. A batch may follow a setting: it has
/// the same samples, tokens, or micro-batches of a replica. What was measured several times is its median. `noise`: of
/// tables, by which measurements of one configuration differ. Also the pairs of device types that did the same work, in
/// device time of a token.
std::vector<WhatIf> what_ifs_of(const std::vector<ComparedRun>& runs, const std::map<std::string, double>& noise);

/// Groups of at least five configurations of one model, table and device type, by device time per token.
std::vector<Ranking> rankings_of(const std::vector<ComparedRun>& runs);

} // namespace stagecraft
