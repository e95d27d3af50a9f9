// What measures transfers alone: a graph in which one thing happens at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

/// A chain: computation, transfer, computation, … over the works and the channels of a run, and works of its own.
class PartChain {
public:
  /// The setting outlives it.
  explicit PartChain(const Setting& setting);

  struct Transfer {
    TaskId before, transfer, after; ///< what computes, is sent, and waits for it
  };
  /// Adds a transfer between two computations.
  Transfer add(std::int32_t before, std::int32_t transfer, std::int32_t after);
  /// Adds a task of a work.
  TaskId add(std::int32_t work);

  /// A new work: a computation of a device.
  std::int32_t computation(int device, Seconds seconds);
  /// A new work: so many bytes on a channel.
  std::int32_t transfer(int channel, double bytes);
  /// The device at which a channel ends; the sender's where that is no device.
  int receiver(int channel) const;

  /// The graph of all that was added.
  const TaskGraph& finish();
  const Channels& channels() const { return channels_; }

private:
  const Setting& setting_;
  TaskGraph graph_;
  Channels channels_;
};

/// A line through the medians of what equal sizes took, seconds by bytes, with the least relative errors; of one size a
/// latency.
PathCost fit_path_cost(const std::map<double, std::vector<double>>& measured);

} // namespace stagecraft::pipeline
