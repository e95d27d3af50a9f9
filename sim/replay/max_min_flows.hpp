// Flows that have met on full links, at the rates that max-min sharing gives them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/replay/shared_flows.hpp"

namespace stagecraft {

/// Carries the flows that SharedFlows hands over. Whenever some begin or one ends, the rates of all that share links
/// too narrow for them with these, directly or through others, are filled up anew: all rise together until a link is
/// full or a leg carries no more, which settles the rates of those on it.
class MaxMinFlows {
public:
  /// Both must outlive it.
  MaxMinFlows(const TaskGraph& graph, const SharedFlows& shared);

  /// These flow from `time` on.
  void add(std::span<const MetFlow> met, double time);
  bool done() const { return under_way_ == 0; }
  /// When the next one ends. Not when done().
  double next();
  /// Ends that one; returns its number.
  std::int32_t end_next();

private:
  struct Flow {
    std::int32_t leg = 0;
    std::uint32_t serial = 0;             // how often its end has changed
    double left = 0, since = 0, rate = 0; // bytes at a time, B/s from then on
    bool found = false;
  };
  // A contended link.
  struct Link {
    std::vector<std::int32_t> flows;
    double wanted = 0;  // B/s by those
    double room = 0;    // B/s that settled flows leave
    double crossed = 0; // how often flows cross it whose rates are not settled
    bool found = false, full = false;
  };
  struct End {
    double time;
    std::int32_t number;
    std::uint32_t serial;

    bool operator>(const End& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  std::span<const SharedFlows::Use> uses_of(std::int32_t number) const {
    return shared_.uses_of_leg(flows_[number].leg);
  }
  void find_flow(std::int32_t number);
  void find_links(std::int32_t leg);
  void find_sharers();
  void fill(double time);
  double fill_fullest();
  void settle(std::int32_t number, double rate, double time);

  const TaskGraph& graph_;
  const SharedFlows& shared_;
  std::vector<Flow> flows_; // [number]
  std::vector<Link> links_; // [contended link]
  std::vector<End> ends_;   // a heap, the earliest first; an old serial's counts no more
  int under_way_ = 0;
  std::vector<std::int32_t> found_, open_; // links whose flows are filled up, flows whose rates are not settled
};

} // namespace stagecraft
