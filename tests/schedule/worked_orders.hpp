// Worked orders of published schedules, one text per rank: micro-batch @ global stage.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace stagecraft::test {

struct WorkedOrder {
  std::string_view schedule;
  int ranks, micro_batches, chunks;
  std::vector<std::string_view> orders;
};

// clang-format off
inline const std::vector<WorkedOrder>& worked_orders() {
  static const std::vector<WorkedOrder> kOrders = {
    {"gpipe", 4, 8, 1,
     {"F0@0 F1@0 F2@0 F3@0 F4@0 F5@0 F6@0 F7@0 B7@0 B6@0 B5@0 B4@0 B3@0 B2@0 B1@0 B0@0",
      "F0@1 F1@1 F2@1 F3@1 F4@1 F5@1 F6@1 F7@1 B7@1 B6@1 B5@1 B4@1 B3@1 B2@1 B1@1 B0@1",
      "F0@2 F1@2 F2@2 F3@2 F4@2 F5@2 F6@2 F7@2 B7@2 B6@2 B5@2 B4@2 B3@2 B2@2 B1@2 B0@2",
      "F0@3 F1@3 F2@3 F3@3 F4@3 F5@3 F6@3 F7@3 B7@3 B6@3 B5@3 B4@3 B3@3 B2@3 B1@3 B0@3"}},
    {"1f1b", 4, 8, 1,
     {"F0@0 F1@0 F2@0 F3@0 B0@0 F4@0 B1@0 F5@0 B2@0 F6@0 B3@0 F7@0 B4@0 B5@0 B6@0 B7@0",
      "F0@1 F1@1 F2@1 B0@1 F3@1 B1@1 F4@1 B2@1 F5@1 B3@1 F6@1 B4@1 F7@1 B5@1 B6@1 B7@1",
      "F0@2 F1@2 B0@2 F2@2 B1@2 F3@2 B2@2 F4@2 B3@2 F5@2 B4@2 F6@2 B5@2 F7@2 B6@2 B7@2",
      "F0@3 B0@3 F1@3 B1@3 F2@3 B2@3 F3@3 B3@3 F4@3 B4@3 F5@3 B5@3 F6@3 B6@3 F7@3 B7@3"}},
    {"interleaved", 4, 8, 2,
     {"F0@0 F1@0 F2@0 F3@0 F0@4 F1@4 F2@4 F3@4 F4@0 F5@0 F6@0 B0@4 F7@0 B1@4 F4@4 B2@4 F5@4 B3@4 F6@4 B0@0"
         " F7@4 B1@0 B2@0 B3@0 B4@4 B5@4 B6@4 B7@4 B4@0 B5@0 B6@0 B7@0",
      "F0@1 F1@1 F2@1 F3@1 F0@5 F1@5 F2@5 F3@5 F4@1 B0@5 F5@1 B1@5 F6@1 B2@5 F7@1 B3@5 F4@5 B0@1 F5@5 B1@1"
         " F6@5 B2@1 F7@5 B3@1 B4@5 B5@5 B6@5 B7@5 B4@1 B5@1 B6@1 B7@1",
      "F0@2 F1@2 F2@2 F3@2 F0@6 F1@6 F2@6 B0@6 F3@6 B1@6 F4@2 B2@6 F5@2 B3@6 F6@2 B0@2 F7@2 B1@2 F4@6 B2@2"
         " F5@6 B3@2 F6@6 B4@6 F7@6 B5@6 B6@6 B7@6 B4@2 B5@2 B6@2 B7@2",
      "F0@3 F1@3 F2@3 F3@3 F0@7 B0@7 F1@7 B1@7 F2@7 B2@7 F3@7 B3@7 F4@3 B0@3 F5@3 B1@3 F6@3 B2@3 F7@3 B3@3"
         " F4@7 B4@7 F5@7 B5@7 F6@7 B6@7 F7@7 B7@7 B4@3 B5@3 B6@3 B7@3"}},
    {"gpipe", 2, 4, 1,
     {"F0@0 F1@0 F2@0 F3@0 B3@0 B2@0 B1@0 B0@0",
      "F0@1 F1@1 F2@1 F3@1 B3@1 B2@1 B1@1 B0@1"}},
    {"1f1b", 2, 4, 1,
     {"F0@0 F1@0 B0@0 F2@0 B1@0 F3@0 B2@0 B3@0",
      "F0@1 B0@1 F1@1 B1@1 F2@1 B2@1 F3@1 B3@1"}},
    {"interleaved", 2, 4, 2,
     {"F0@0 F1@0 F0@2 F1@2 F2@0 B0@2 F3@0 B1@2 F2@2 B0@0 F3@2 B1@0 B2@2 B3@2 B2@0 B3@0",
      "F0@1 F1@1 F0@3 B0@3 F1@3 B1@3 F2@1 B0@1 F3@1 B1@1 F2@3 B2@3 F3@3 B3@3 B2@1 B3@1"}},
    {"zb-h1", 2, 4, 1,
     {"F0@0 F1@0 B0@0 W0@0 F2@0 B1@0 W1@0 F3@0 B2@0 W2@0 B3@0 W3@0",
      "F0@1 B0@1 F1@1 B1@1 W0@1 F2@1 B2@1 W1@1 F3@1 B3@1 W2@1 W3@1"}},
    {"zb-h1", 4, 8, 1,
     {"F0@0 F1@0 F2@0 F3@0 B0@0 W0@0 F4@0 B1@0 W1@0 F5@0 B2@0 W2@0 F6@0 B3@0 W3@0 F7@0 B4@0 W4@0 B5@0 W5@0"
         " B6@0 W6@0 B7@0 W7@0",
      "F0@1 F1@1 F2@1 B0@1 F3@1 B1@1 W0@1 F4@1 B2@1 W1@1 F5@1 B3@1 W2@1 F6@1 B4@1 W3@1 F7@1 B5@1 W4@1 B6@1"
         " W5@1 B7@1 W6@1 W7@1",
      "F0@2 F1@2 B0@2 F2@2 B1@2 F3@2 B2@2 W0@2 F4@2 B3@2 W1@2 F5@2 B4@2 W2@2 F6@2 B5@2 W3@2 F7@2 B6@2 W4@2"
         " B7@2 W5@2 W6@2 W7@2",
      "F0@3 B0@3 F1@3 B1@3 F2@3 B2@3 F3@3 B3@3 W0@3 F4@3 B4@3 W1@3 F5@3 B5@3 W2@3 F6@3 B6@3 W3@3 F7@3 B7@3"
         " W4@3 W5@3 W6@3 W7@3"}},
    {"1f1b", 4, 2, 1,
     {"F0@0 F1@0 B0@0 B1@0",
      "F0@1 F1@1 B0@1 B1@1",
      "F0@2 F1@2 B0@2 B1@2",
      "F0@3 B0@3 F1@3 B1@3"}},
    {"gpipe", 4, 2, 1,
     {"F0@0 F1@0 B1@0 B0@0",
      "F0@1 F1@1 B1@1 B0@1",
      "F0@2 F1@2 B1@2 B0@2",
      "F0@3 F1@3 B1@3 B0@3"}},
    {"eager-1f1b", 4, 8, 1,
     {"F0@0 F1@0 F2@0 F3@0 F4@0 F5@0 F6@0 B0@0 F7@0 B1@0 B2@0 B3@0 B4@0 B5@0 B6@0 B7@0",
      "F0@1 F1@1 F2@1 F3@1 F4@1 B0@1 F5@1 B1@1 F6@1 B2@1 F7@1 B3@1 B4@1 B5@1 B6@1 B7@1",
      "F0@2 F1@2 F2@2 B0@2 F3@2 B1@2 F4@2 B2@2 F5@2 B3@2 F6@2 B4@2 F7@2 B5@2 B6@2 B7@2",
      "F0@3 B0@3 F1@3 B1@3 F2@3 B2@3 F3@3 B3@3 F4@3 B4@3 F5@3 B5@3 F6@3 B6@3 F7@3 B7@3"}},
    {"zb-h2", 4, 8, 1,
     {"F0@0 F1@0 F2@0 F3@0 F4@0 F5@0 F6@0 B0@0 W0@0 F7@0 B1@0 W1@0 B2@0 W2@0 B3@0 W3@0 B4@0 W4@0 B5@0 W5@0"
         " B6@0 W6@0 B7@0 W7@0",
      "F0@1 F1@1 F2@1 F3@1 F4@1 B0@1 F5@1 B1@1 F6@1 B2@1 W0@1 F7@1 B3@1 W1@1 B4@1 W2@1 B5@1 W3@1 B6@1 W4@1"
         " B7@1 W5@1 W6@1 W7@1",
      "F0@2 F1@2 F2@2 B0@2 F3@2 B1@2 F4@2 B2@2 F5@2 B3@2 F6@2 B4@2 W0@2 F7@2 B5@2 W1@2 B6@2 W2@2 B7@2 W3@2"
         " W4@2 W5@2 W6@2 W7@2",
      "F0@3 B0@3 F1@3 B1@3 F2@3 B2@3 F3@3 B3@3 F4@3 B4@3 F5@3 B5@3 F6@3 B6@3 W0@3 F7@3 B7@3 W1@3 W2@3 W3@3"
         " W4@3 W5@3 W6@3 W7@3"}},
    {"breadth-first", 2, 4, 2,
     {"F0@0 F1@0 F2@0 F3@0 F0@2 F1@2 F2@2 F3@2 B0@2 B1@2 B2@2 B3@2 B0@0 B1@0 B2@0 B3@0",
      "F0@1 F1@1 F2@1 F3@1 F0@3 F1@3 F2@3 F3@3 B0@3 B1@3 B2@3 B3@3 B0@1 B1@1 B2@1 B3@1"}},
    {"zb-h2", 2, 4, 1,
     {"F0@0 F1@0 F2@0 B0@0 W0@0 F3@0 B1@0 W1@0 B2@0 W2@0 B3@0 W3@0",
      "F0@1 B0@1 F1@1 B1@1 F2@1 B2@1 W0@1 F3@1 B3@1 W1@1 W2@1 W3@1"}},
    {"hanayo", 2, 2, 2,
     {"F0@0 F1@0 F0@3 B0@3 F1@3 B1@3 B0@0 B1@0",
      "F0@1 F0@2 F1@1 F1@2 B0@2 B0@1 B1@2 B1@1"}},
  };
  return kOrders;
}

/// The same with recompute: four ranks, eight micro-batches.
struct RecomputeOrder {
  std::string_view schedule;
  bool skip_after_own_forward, except_last_micro_batch;
  double makespan, lazy_makespan; ///< of stages with F 1, R 1, B 2; lazy 0: not given
  std::vector<std::string_view> orders;
};

inline const std::vector<RecomputeOrder>& recompute_orders() {
  static const std::vector<RecomputeOrder> kOrders = {
    {"gpipe", false, false, 41, 44,
     {"F0@0 F1@0 F2@0 F3@0 F4@0 F5@0 F6@0 F7@0 R7@0 B7@0 R6@0 B6@0 R5@0 B5@0 R4@0 B4@0 R3@0 B3@0 R2@0 B2@0"
         " R1@0 B1@0 R0@0 B0@0",
      "F0@1 F1@1 F2@1 F3@1 F4@1 F5@1 F6@1 F7@1 R7@1 B7@1 R6@1 B6@1 R5@1 B5@1 R4@1 B4@1 R3@1 B3@1 R2@1 B2@1"
         " R1@1 B1@1 R0@1 B0@1",
      "F0@2 F1@2 F2@2 F3@2 F4@2 F5@2 F6@2 F7@2 R7@2 B7@2 R6@2 B6@2 R5@2 B5@2 R4@2 B4@2 R3@2 B3@2 R2@2 B2@2"
         " R1@2 B1@2 R0@2 B0@2",
      "F0@3 F1@3 F2@3 F3@3 F4@3 F5@3 F6@3 F7@3 R7@3 B7@3 R6@3 B6@3 R5@3 B5@3 R4@3 B4@3 R3@3 B3@3 R2@3 B2@3"
         " R1@3 B1@3 R0@3 B0@3"}},
    {"gpipe", true, false, 40, 0,
     {"F0@0 F1@0 F2@0 F3@0 F4@0 F5@0 F6@0 F7@0 B7@0 R6@0 B6@0 R5@0 B5@0 R4@0 B4@0 R3@0 B3@0 R2@0 B2@0 R1@0"
         " B1@0 R0@0 B0@0",
      "F0@1 F1@1 F2@1 F3@1 F4@1 F5@1 F6@1 F7@1 B7@1 R6@1 B6@1 R5@1 B5@1 R4@1 B4@1 R3@1 B3@1 R2@1 B2@1 R1@1"
         " B1@1 R0@1 B0@1",
      "F0@2 F1@2 F2@2 F3@2 F4@2 F5@2 F6@2 F7@2 B7@2 R6@2 B6@2 R5@2 B5@2 R4@2 B4@2 R3@2 B3@2 R2@2 B2@2 R1@2"
         " B1@2 R0@2 B0@2",
      "F0@3 F1@3 F2@3 F3@3 F4@3 F5@3 F6@3 F7@3 B7@3 R6@3 B6@3 R5@3 B5@3 R4@3 B4@3 R3@3 B3@3 R2@3 B2@3 R1@3"
         " B1@3 R0@3 B0@3"}},
    {"gpipe", false, true, 40, 0,
     {"F0@0 F1@0 F2@0 F3@0 F4@0 F5@0 F6@0 F7@0 B7@0 R6@0 B6@0 R5@0 B5@0 R4@0 B4@0 R3@0 B3@0 R2@0 B2@0 R1@0"
         " B1@0 R0@0 B0@0",
      "F0@1 F1@1 F2@1 F3@1 F4@1 F5@1 F6@1 F7@1 B7@1 R6@1 B6@1 R5@1 B5@1 R4@1 B4@1 R3@1 B3@1 R2@1 B2@1 R1@1"
         " B1@1 R0@1 B0@1",
      "F0@2 F1@2 F2@2 F3@2 F4@2 F5@2 F6@2 F7@2 B7@2 R6@2 B6@2 R5@2 B5@2 R4@2 B4@2 R3@2 B3@2 R2@2 B2@2 R1@2"
         " B1@2 R0@2 B0@2",
      "F0@3 F1@3 F2@3 F3@3 F4@3 F5@3 F6@3 F7@3 B7@3 R6@3 B6@3 R5@3 B5@3 R4@3 B4@3 R3@3 B3@3 R2@3 B2@3 R1@3"
         " B1@3 R0@3 B0@3"}},
    {"1f1b", false, false, 41, 44,
     {"F0@0 F1@0 F2@0 F3@0 R0@0 B0@0 F4@0 R1@0 B1@0 F5@0 R2@0 B2@0 F6@0 R3@0 B3@0 F7@0 R4@0 B4@0 R5@0 B5@0"
         " R6@0 B6@0 R7@0 B7@0",
      "F0@1 F1@1 F2@1 R0@1 B0@1 F3@1 R1@1 B1@1 F4@1 R2@1 B2@1 F5@1 R3@1 B3@1 F6@1 R4@1 B4@1 F7@1 R5@1 B5@1"
         " R6@1 B6@1 R7@1 B7@1",
      "F0@2 F1@2 R0@2 B0@2 F2@2 R1@2 B1@2 F3@2 R2@2 B2@2 F4@2 R3@2 B3@2 F5@2 R4@2 B4@2 F6@2 R5@2 B5@2 F7@2"
         " R6@2 B6@2 R7@2 B7@2",
      "F0@3 R0@3 B0@3 F1@3 R1@3 B1@3 F2@3 R2@3 B2@3 F3@3 R3@3 B3@3 F4@3 R4@3 B4@3 F5@3 R5@3 B5@3 F6@3 R6@3"
         " B6@3 F7@3 R7@3 B7@3"}},
    {"1f1b", true, false, 39, 0,
     {"F0@0 F1@0 F2@0 F3@0 R0@0 B0@0 F4@0 R1@0 B1@0 F5@0 R2@0 B2@0 F6@0 R3@0 B3@0 F7@0 R4@0 B4@0 R5@0 B5@0"
         " R6@0 B6@0 R7@0 B7@0",
      "F0@1 F1@1 F2@1 R0@1 B0@1 F3@1 R1@1 B1@1 F4@1 R2@1 B2@1 F5@1 R3@1 B3@1 F6@1 R4@1 B4@1 F7@1 R5@1 B5@1"
         " R6@1 B6@1 R7@1 B7@1",
      "F0@2 F1@2 R0@2 B0@2 F2@2 R1@2 B1@2 F3@2 R2@2 B2@2 F4@2 R3@2 B3@2 F5@2 R4@2 B4@2 F6@2 R5@2 B5@2 F7@2"
         " R6@2 B6@2 R7@2 B7@2",
      "F0@3 B0@3 F1@3 B1@3 F2@3 B2@3 F3@3 B3@3 F4@3 B4@3 F5@3 B5@3 F6@3 B6@3 F7@3 B7@3"}},
    {"1f1b", false, true, 40, 0,
     {"F0@0 F1@0 F2@0 F3@0 R0@0 B0@0 F4@0 R1@0 B1@0 F5@0 R2@0 B2@0 F6@0 R3@0 B3@0 F7@0 R4@0 B4@0 R5@0 B5@0"
         " R6@0 B6@0 B7@0",
      "F0@1 F1@1 F2@1 R0@1 B0@1 F3@1 R1@1 B1@1 F4@1 R2@1 B2@1 F5@1 R3@1 B3@1 F6@1 R4@1 B4@1 F7@1 R5@1 B5@1"
         " R6@1 B6@1 B7@1",
      "F0@2 F1@2 R0@2 B0@2 F2@2 R1@2 B1@2 F3@2 R2@2 B2@2 F4@2 R3@2 B3@2 F5@2 R4@2 B4@2 F6@2 R5@2 B5@2 F7@2"
         " R6@2 B6@2 B7@2",
      "F0@3 R0@3 B0@3 F1@3 R1@3 B1@3 F2@3 R2@3 B2@3 F3@3 R3@3 B3@3 F4@3 R4@3 B4@3 F5@3 R5@3 B5@3 F6@3 R6@3"
         " B6@3 F7@3 B7@3"}},
  };
  return kOrders;
}
// clang-format on

} // namespace stagecraft::test
