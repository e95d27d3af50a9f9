// What is measured, in groups, most telling points first: whatever time allows is spread over the whole range.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "calibrate/gpu/sweep/point.hpp"

namespace stagecraft::gpu {

/// What a sweep depends on.
struct Machine {
  int devices = 1;
  int processors = 132;
  int processors_apart = 8; ///< of which partitions are made; 0 where there can be none
  double memory = 80e9;     ///< of one device, free
};

struct Group {
  std::string name, help;
  double weight = 0; ///< its share of the time, in seconds of a full run
  std::vector<Point> points;
  int processors = 0; ///< of the partition it runs on; 0 is the whole device
};

/// Names and order of the groups; `partitions` stands for one group a size.
const std::vector<std::string>& group_names();

/// The whole sweep of a machine; `shapes` are measured first. Points that do not fit into memory are left out.
std::vector<Group> plan_sweep(const Machine& machine, const std::vector<Kernel>& shapes);

/// The few kernels that are measured at the start, in the middle and at the end.
std::vector<Kernel> sentinels();

/// Operators that the memory bounds, by what they have: a forward pass, and a gradient of their input.
inline constexpr std::array kElementwiseForward = {Op::copy,    Op::add,      Op::sum,        Op::relu,
                                                   Op::gelu,    Op::dropout,  Op::layer_norm, Op::batch_norm,
                                                   Op::softmax, Op::embedding};
inline constexpr std::array kElementwiseBackward = {Op::relu,       Op::gelu,       Op::dropout,
                                                    Op::layer_norm, Op::batch_norm, Op::softmax};

/// The order in which every prefix of 0 … size-1 is spread over the whole: by the reversed bits of the index.
std::vector<std::size_t> spread_order(std::size_t size);

/// Things in that order.
template <class Thing> std::vector<Thing> spread(const std::vector<Thing>& things) {
  std::vector<Thing> ordered;
  for (const std::size_t i : spread_order(things.size())) {
    ordered.push_back(things[i]);
  }
  return ordered;
}

} // namespace stagecraft::gpu
