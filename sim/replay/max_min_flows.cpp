// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/max_min_flows.hpp"

#include <algorithm>
#include <functional>

#include "sim/base/improves.hpp"

namespace stagecraft {

MaxMinFlows::MaxMinFlows(const TaskGraph& graph, const SharedFlows& shared)
    : graph_(graph), shared_(shared), links_(shared.bandwidths().size()) {}

void MaxMinFlows::add(std::span<const MetFlow> met, double time) {
  for (const MetFlow& one : met) {
    flows_.resize(std::max(flows_.size(), static_cast<std::size_t>(one.number) + 1));
    Flow& flow = flows_[one.number];
    flow = {.leg = one.leg, .serial = flow.serial, .left = one.bytes, .since = time};
    for (const SharedFlows::Use& use : uses_of(one.number)) {
      links_[use.link].flows.push_back(one.number);
      links_[use.link].wanted += use.wanted;
    }
    ++under_way_;
  }
  for (const MetFlow& one : met) {
    find_flow(one.number);
  }
  fill(time);
}

double MaxMinFlows::next() {
  while (flows_[ends_.front().number].serial != ends_.front().serial) {
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    ends_.pop_back();
  }
  return ends_.front().time;
}

std::int32_t MaxMinFlows::end_next() {
  const double time = next();
  const std::int32_t number = ends_.front().number;
  ++flows_[number].serial;
  find_links(flows_[number].leg);
  for (const SharedFlows::Use& use : uses_of(number)) {
    Link& link = links_[use.link];
    link.flows.erase(std::find(link.flows.begin(), link.flows.end(), number));
    link.wanted = link.flows.empty() ? 0 : link.wanted - use.wanted; // so that roundings do not add up
  }
  --under_way_;
  fill(time);
  return number;
}

void MaxMinFlows::find_flow(std::int32_t number) {
  if (!flows_[number].found) {
    flows_[number].found = true;
    open_.push_back(number);
    find_links(flows_[number].leg);
  }
}

// Links that carry all that their flows want leave no flow less.
void MaxMinFlows::find_links(std::int32_t leg) {
  constexpr double kRounding = 1e-12;
  for (const SharedFlows::Use& use : shared_.uses_of_leg(leg)) {
    Link& link = links_[use.link];
    if (!link.found && link.wanted > shared_.bandwidths()[use.link] * (1 + kRounding)) {
      link.found = true;
      link.room = shared_.bandwidths()[use.link];
      link.crossed = 0;
      found_.push_back(use.link);
    }
  }
}

// The flows on the links that are found, those on their other links, and so on.
void MaxMinFlows::find_sharers() {
  std::size_t next = 0;
  while (next < found_.size()) { // find_flow() finds more
    for (const std::int32_t number : links_[found_[next++]].flows) {
      find_flow(number);
    }
  }
  for (const std::int32_t number : open_) {
    for (const SharedFlows::Use& use : uses_of(number)) {
      links_[use.link].crossed += use.times;
    }
  }
}

void MaxMinFlows::fill(double time) {
  find_sharers();
  while (!open_.empty()) {
    const double rate = fill_fullest();
    const auto carries_less = [&](std::int32_t number) { // its leg
      return graph_.legs[flows_[number].leg].bandwidth.value <= rate;
    };
    const auto on_full_link = [&](std::int32_t number) {
      const auto uses = uses_of(number);
      return std::any_of(uses.begin(), uses.end(), [&](const auto& use) { return links_[use.link].full; });
    };
    const bool by_leg = std::any_of(open_.begin(), open_.end(), carries_less);
    std::erase_if(open_, [&](std::int32_t number) {
      const bool settles = by_leg ? carries_less(number) : on_full_link(number);
      if (settles) {
        settle(number, by_leg ? graph_.legs[flows_[number].leg].bandwidth.value : rate, time);
      }
      return settles;
    });
  }
  for (const std::int32_t link : found_) {
    links_[link].found = links_[link].full = false;
  }
  found_.clear();
}

// The rate at which the first links are full if all flows that are not settled get it; marks those links.
double MaxMinFlows::fill_fullest() {
  constexpr double kRounding = 1e-12;
  double least = kInfinity;
  const auto rate_of = [](const Link& link) { return link.crossed > 0 ? link.room / link.crossed : kInfinity; };
  for (const std::int32_t link : found_) {
    least = std::min(least, rate_of(links_[link]));
  }
  for (const std::int32_t link : found_) {
    links_[link].full = rate_of(links_[link]) <= least * (1 + kRounding);
  }
  return least;
}

void MaxMinFlows::settle(std::int32_t number, double rate, double time) {
  for (const SharedFlows::Use& use : uses_of(number)) {
    links_[use.link].room -= rate * use.times;
    links_[use.link].crossed -= use.times;
  }
  Flow& flow = flows_[number];
  flow.found = false;
  if (rate != flow.rate) {
    flow.left = std::max(0.0, flow.left - flow.rate * (time - flow.since));
    flow.since = time;
    flow.rate = rate;
    ends_.push_back({time + flow.left / rate, number, ++flow.serial});
    std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
  }
}

} // namespace stagecraft
