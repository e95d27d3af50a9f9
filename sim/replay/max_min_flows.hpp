// Flows that have met on full links, at the rates that SimGrid's max-min sharing gives them, to the last bit: the same
// sums in the same order as SimGrid 3.32 takes them (its network model CM02 with lazy updates).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/replay/shared_flows.hpp"

namespace stagecraft {

/// Carries the flows that SharedFlows hands over. Whenever some begin or end, the rates of all that share links with
/// these, directly or through others, are filled up anew: all rise together until a link is full or a flow has what
/// the narrowest link on its way carries, which settles the rates of those on it.
class MaxMinFlows {
public:
  MaxMinFlows(const TaskGraph& graph, const Platform& platform);

  /// It flows from `now` on.
  void add(const MetFlow& met, double now);
  /// Whether all have been taken.
  bool empty() const { return under_way_ == 0; }
  /// Fills up rates where flows have begun or ended, and returns how long after `now` the next one ends.
  double until_next(double now);
  /// Ends the flows that end at `now`.
  void end_at(double now);

  /// A flow that has ended: its own number here and that of SharedFlows.
  struct Ended {
    std::int32_t flow = -1, number = -1;
  };
  bool any_ended() const { return first_ended_ < ended_.size(); }
  /// In the order in which they ended; it leaves its links when it is released. Only if any has ended.
  Ended take_ended();
  void release(std::int32_t flow);

private:
  // A link on a flow's way.
  struct Use {
    std::int32_t link;
    double times; // how often it is crossed
  };
  struct Flow {
    std::int32_t number = 0;
    std::uint32_t seen = 0;  // in which search for what has changed
    std::int32_t place = -1; // in ends_
    bool over = false, settled = false, listed = false;
    double left = 0, since = 0, before = 0; // parts of a byte at a time, and their rate until the next look
    double rate = 0;                        // as filled up last
    double most = 0;                        // what the narrowest link carries
    std::span<const Use> uses;
  };
  struct Crossing {
    std::int32_t flow;
    double times;
  };
  struct Link {
    double bandwidth = 0;
    std::vector<Crossing> crossings; // the oldest flow first
    double times = 0;                // how often all of them cross it
    double full_at = 0;              // the rate of each at which it is full
    double room = 0, crossed = 0;    // what settled flows leave, and how often others cross it
    std::int32_t place = -1;         // in filling_
    bool changed = false;
  };
  // A link that is filled up: the rate at which it would be full.
  struct Filling {
    double rate;
    std::int32_t link;
  };
  struct End {
    double time;
    std::uint64_t order; // of those at one time, what was foretold first comes first
    std::int32_t flow;

    bool operator<(const End& other) const { return time != other.time ? time < other.time : order < other.order; }
  };

  std::span<const Use> uses_of_leg(std::int32_t leg) const {
    return {uses_.data() + use_begin_[leg], uses_.data() + use_begin_[leg + 1]};
  }
  void find_ways(const TaskGraph& graph, const Platform& platform);
  void cross(Link& link, double times);
  void mark_changed(std::int32_t link);
  void mark_sharers(std::int32_t link);
  void list_changed_flows();
  bool fill_at_once();
  std::size_t settle_on_fullest();
  void fill();
  void begin_filling(std::int32_t link);
  void find_fullest();
  void list_flows_on_fullest();
  void settle_listed();
  void settle(Flow& flow);
  void stop_filling(Link& link);
  void foretell(std::int32_t flow, double now);
  void advance(std::int32_t flow, double now);
  void finish(std::int32_t flow);
  void put_end(const End& end);
  void drop_end(std::int32_t flow);
  void move_up(std::size_t place, const End& end);
  void move_down(std::size_t place, const End& end);
  void put_at(std::size_t place, const End& end) {
    ends_[place] = end;
    flows_[end.flow].place = static_cast<std::int32_t>(place);
  }

  double scale_; // parts of a byte
  std::vector<std::int32_t> use_begin_;
  std::vector<Use> uses_;
  std::vector<double> most_; // [leg]
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_; // places in flows_
  std::vector<End> ends_;          // a heap, the earliest first, with one end of each flow that has a rate
  std::uint64_t foretold_ = 0;
  std::vector<std::int32_t> ended_; // from first_ended_ on
  std::size_t first_ended_ = 0;
  int under_way_ = 0;
  std::uint32_t search_ = 1;
  std::vector<std::int32_t> changed_; // links
  std::vector<std::int32_t> shared_;  // flows on these
  std::vector<Filling> filling_;
  std::vector<std::int32_t> fullest_; // places in filling_
  double least_ = 0;                  // the rate at which these are full
  std::vector<std::int32_t> listed_;  // flows on the fullest
};

} // namespace stagecraft
