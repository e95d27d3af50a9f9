// The points to measure, in groups, the most informative first: whatever time allows covers the whole range.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// The properties of a machine that a sweep depends on.
struct Machine {
  int devices = 1;
  int processors = 132;
  int processors_apart = 8; ///< unit in which partitions are made; 0: no partitions
  double memory = 80e9;     ///< free memory of one device in bytes
};

struct Group {
  std::string name, help;
  double weight = 0; ///< share of the time, in seconds of a full run
  std::vector<Point> points;
  int processors = 0; ///< size of the group's partition; 0: the whole device
};

/// Names of the groups in order; `partitions` stands for a group per size.
const std::vector<std::string>& group_names();

/// The whole sweep of a machine; `shapes` come first. Points that do not fit into memory are left out.
std::vector<Group> plan_sweep(const Machine& machine, const std::vector<Kernel>& shapes);

/// The kernels that are measured at the start, in the middle and at the end, to detect drift.
std::vector<Kernel> sentinels();

/// Memory-bound operators that have a forward pass, and those that have a gradient of the input.
inline constexpr std::array kElementwiseForward = {Op::copy,    Op::add,      Op::sum,        Op::relu,
                                                   Op::gelu,    Op::dropout,  Op::layer_norm, Op::batch_norm,
                                                   Op::softmax, Op::embedding};
inline constexpr std::array kElementwiseBackward = {Op::relu,       Op::gelu,       Op::dropout,
                                                    Op::layer_norm, Op::batch_norm, Op::softmax};

/// An order in which every prefix of 0 … size-1 is spread over the whole: by the reversed bits of the index.
std::vector<std::size_t> spread_order(std::size_t size);

/// The elements in that order.
template <class Thing> std::vector<Thing> spread(const std::vector<Thing>& things) {
  std::vector<Thing> ordered;
  for (const std::size_t i : spread_order(things.size())) {
    ordered.push_back(things[i]);
  }
  return ordered;
}

} // namespace stagecraft::gpu
