// Sentences about where measurements of a run would lie.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/result/run.hpp"

namespace stagecraft {

/// The least lead from which on the order of two plans on one machine is known, as a part of the time, by the median
/// error of predictions like theirs: half of it, since errors of the two are mostly the same error.
constexpr double least_sure_lead(double median_error) { return median_error / 2; }

/// The part of measurements that a range is to hold.
inline constexpr double kRangeLevel = 0.9;

/// "times of dense models on one node, 18 models, median error 7 %".
std::string basis_of(const RunExpected& expected);

/// What says how far off the run's time may be: runs that were measured, or else draws of what costs may be off by; ""
/// where neither is known.
std::string basis_of_range(const MeasuredRun& run);

/// "Measured, it would take between 0.9 s and 1.4 s nine times out of ten, as predictions of others were off: …".
std::string in_words(const RunExpected& expected);

/// "Its fullest device, 'x', needs 70.0 of 80.0 GiB; measured, between … nine times out of ten, so that it may not fit:
/// …".
std::string in_words(const RunExpectedMemory& expected);

/// Both, a sentence each, as far as they are known.
std::string expected_in_words(const MeasuredRun& run);

} // namespace stagecraft
