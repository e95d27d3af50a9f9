// Days and money of a whole training, which follow from one iteration.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sim/result/run.hpp"

namespace stagecraft {

/// What training a number of tokens takes, without what fails and is done again.
struct WholeTraining {
  double tokens = 0;
  Seconds time;
  Dollars cost;         ///< 0: nothing has a price
  bool assumed = false; ///< part of the cost rests on an assumed price
  /// The range of the time of an iteration, as a part of it: of the time and, since machines are paid by the hour, of
  /// the cost. None where no range is known.
  std::optional<std::pair<double, double>> range{};
};

/// Of a feasible run; nothing where no tokens are asked for, or the model has none.
std::optional<WholeTraining> whole_training(const Run& run);

/// A long time in its own unit: "14.6 days", "3.2 hours".
std::string training_time_in_words(Seconds time);

/// "300 billion tokens take 14.6 days and cost 27,963 USD (8.0 to 26.0 days, 15,300 to 49,800 USD)".
std::string in_words(const WholeTraining& training);

} // namespace stagecraft
