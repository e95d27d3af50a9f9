// Splits of a chain of layers as pure functions of numbers: the published algorithms themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// k parts of n layers as k+1 bounds, [0, …, n]: parts of floor(n/k), the first n mod k get one more; with n <= k one
/// layer each and the rest empty (DeepSpeed `uniform`).
std::vector<int> uniform_cuts(int layers, int parts);

/// k+1 bounds with the least (largest - smallest) part sum, by dynamic programming (DeepSpeed `partition_balanced`; the
/// recurrence keeps one maximum and minimum per cell, so it is not always optimal). O(k n^2).
std::vector<int> balanced_cuts(std::span<const double> weights, int parts);

/// Part sizes of the block partition of sequences (Bárány, Grinberg 2015, as torchgpipe runs it): costs are scaled to
/// [0, 1], then layers move from the largest block towards the smallest until they differ by at most 1. O(k n^3).
/// parts <= costs.size().
std::vector<int> block_partition(std::span<const double> costs, int parts);

/// Result of capability_cuts: bounds, and the device that still overflows after both repair passes, or -1.
struct CapabilityCuts {
  std::vector<int> bounds;
  int overflowing = -1;
};

/// Bounds whose cumulative loads follow the devices' cumulative power, then the memory repair forwards and backwards
/// (Wang et al. 2020). `fits(part, first, last)` says whether layers [first, last) fit on device `part`. Every device
/// gets at least one layer; loads.size() >= power.size(). O(L + N) plus the repair.
CapabilityCuts capability_cuts(std::span<const double> loads, std::span<const double> power,
                               const std::function<bool(int part, int first, int last)>& fits);

/// Moves single layers across boundaries while that lowers the largest load / power, best improvement first.
std::vector<int> refine_cuts(std::vector<int> bounds, std::span<const double> loads, std::span<const double> power,
                             const std::function<bool(int part, int first, int last)>& fits);

/// A plan of consecutive operators: part i is [bounds[i], bounds[i+1]) on devices[i]; empty parts are left out.
Plan make_chain_plan(const PlanRequest& request, std::span<const int> bounds, std::span<const DeviceId> devices);

/// The reason when the request asks for more stages than there are operators, or "".
std::string too_many_stages(const PlanRequest& request);

} // namespace stagecraft
