// Which of some task graphs takes least.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/improves.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// Graphs replayed one after another, of which only the fastest counts.
class Race {
public:
  explicit Race(const Study& study) : study_(study) {}

  /// Seconds of an iteration, as measure_graph() measures it with the study's engine; infinite where memory overflows,
  /// and where the graph surely takes more than a millionth longer than an earlier one, so that it need not be
  /// replayed.
  double seconds_of(const TaskGraph& graph);

private:
  const Study& study_;
  double best_ = kInfinity;
};

} // namespace stagecraft
