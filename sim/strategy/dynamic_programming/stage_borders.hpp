// What crosses the borders of stages that are differences of two ideals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/strategy/dynamic_programming/antichains.hpp"

namespace stagecraft {

/// The same figures as Problem::cut_bytes() and Problem::border(), from the few operators at the borders.
class StageBorders {
public:
  StageBorders(const Problem& problem, const BitRows& ideals);

  Bytes cut_bytes(int ideal) const; ///< that leave an ideal
  /// Of the operators of `ideal` without those of `before`, which it holds.
  Problem::Border of_stage(int before, int ideal) const;

private:
  const Problem& problem_;
  const BitRows& ideals_;
  BitRows open_;    // [ideal]: operators inside with a user outside
  BitRows sources_; // one row: operators that read the model's input
};

} // namespace stagecraft
