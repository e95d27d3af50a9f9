// A graph for measuring transfers alone: only one thing happens at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

/// A chain of computations and transfers in turn, made of the works and channels of a run and of works of its own.
class PartChain {
public:
  /// The setting must outlive the chain.
  explicit PartChain(const Setting& setting);

  struct Transfer {
    TaskId before, transfer, after; ///< the sending computation, the transfer, and the computation that waits for it
  };
  /// Adds a transfer between two computations, given by their works.
  Transfer add(std::int32_t before, std::int32_t transfer, std::int32_t after);
  /// Adds a task of this work.
  TaskId add(std::int32_t work);

  /// Makes a new work: a computation on a device.
  std::int32_t computation(int device, Seconds seconds);
  /// Makes a new work: a transfer of `bytes` on a channel.
  std::int32_t transfer(int channel, double bytes);
  /// The device at the end of a channel; the sender if the channel does not end at a device.
  int receiver(int channel) const;

  /// The graph of everything added so far.
  const TaskGraph& finish();
  const Channels& channels() const { return channels_; }

private:
  const Setting& setting_;
  TaskGraph graph_;
  Channels channels_;
};

/// Fits a line, seconds over bytes, through the medians at each size, with least relative errors. With only one size
/// all is latency.
PathCost fit_path_cost(const std::map<double, std::vector<double>>& measured);

} // namespace stagecraft::pipeline
