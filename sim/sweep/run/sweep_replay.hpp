// Runs one point of a sweep again, from the inputs that its results keep.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/study/scenario.hpp"
#include "sim/sweep/run/sweep_evaluate.hpp"
#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {

/// A run, the study that it points into, and what a sweep would store of it.
struct ReplayedPoint {
  std::unique_ptr<Study> study;
  Prepared prepared; ///< not replayed where the point is by closed forms
  PointResult result;
};

/// Runs a point again by its engine, in full, with names and bounds. Writes its files below `folder`, which must exist
/// and be empty. Throws InputError, also where a file was too large to keep.
ReplayedPoint replay_point(const SweepStore::Found& point, const std::filesystem::path& folder);

} // namespace stagecraft
