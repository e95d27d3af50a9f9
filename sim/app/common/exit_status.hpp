// How the program ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stagecraft {

/// Exit statuses, docs/formats/results.md.
enum ExitStatus {
  kDone = 0,
  kNothingFeasible = 1,
  kBadInput = 2,
  kSomeFailed = 3,
  kNoHardware = 4,
  kBug = 70,
  kInterrupted = 130
};

} // namespace stagecraft
