// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/max_min_flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/replay/binding_links.hpp"
#include "sim/replay/byte_parts.hpp"

namespace stagecraft {

namespace {

// SimGrid's maxmin/precision and surf/precision: as it comes, and as sim/replay/simgrid/start.hpp sets it.
constexpr double kShares = 1e-5, kTimes = 1e-12;

// What is next to nothing counts as nothing.
void subtract(double& value, double part, double precision) {
  value -= part;
  if (value < precision) {
    value = 0;
  }
}

} // namespace

MaxMinFlows::MaxMinFlows(const TaskGraph& graph, const Platform& platform) : scale_(parts_of_byte(graph)) {
  find_ways(graph, platform);
}

void MaxMinFlows::find_ways(const TaskGraph& graph, const Platform& platform) {
  constexpr std::int32_t kUnknown = -1;
  std::vector<std::int32_t> number_of(platform.links.size(), kUnknown);
  use_begin_.push_back(0);
  for (const std::vector<LinkId>& way : binding_links(graph, platform)) {
    double& most = most_.emplace_back(std::numeric_limits<double>::infinity());
    for (const LinkId id : way) {
      std::int32_t& number = number_of[static_cast<std::size_t>(id)];
      if (number == kUnknown) {
        number = static_cast<std::int32_t>(links_.size());
        links_.push_back({.bandwidth = platform.links[static_cast<std::size_t>(id)].bandwidth.value * scale_});
      }
      most = std::min(most, links_[number].bandwidth);
      const auto known = std::find_if(uses_.begin() + use_begin_.back(), uses_.end(),
                                      [&](const Use& use) { return use.link == number; });
      if (known != uses_.end()) {
        ++known->times;
      } else {
        uses_.push_back({number, 1});
      }
    }
    use_begin_.push_back(static_cast<std::int32_t>(uses_.size()));
  }
}

void MaxMinFlows::add(const MetFlow& met, double now) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::int32_t number = free_.back();
  free_.pop_back();
  Flow& flow = flows_[number];
  flow = {.number = met.number,
          .seen = search_ - 1,
          .left = static_cast<double>(whole_parts(met.bytes, scale_)),
          .since = now,
          .most = most_[met.leg],
          .uses = uses_of_leg(met.leg)};
  for (const Use& use : flow.uses) {
    links_[use.link].crossings.push_back({number, use.times});
    cross(links_[use.link], use.times);
    mark_changed(use.link);
  }
  ++under_way_;
}

// So many crossings more of a link; sums of whole numbers, so the same in any order.
void MaxMinFlows::cross(Link& link, double times) {
  link.times += times;
  link.full_at = link.bandwidth / link.times;
}

MaxMinFlows::Ended MaxMinFlows::take_ended() {
  const std::int32_t flow = ended_[first_ended_++];
  --under_way_;
  if (!any_ended()) {
    ended_.clear();
    first_ended_ = 0;
  }
  return {flow, flows_[flow].number};
}

void MaxMinFlows::release(std::int32_t number) {
  const std::span<const Use> uses = flows_[number].uses;
  mark_changed(uses.front().link); // the others are changed with it
  for (const Use& use : uses) {
    Link& link = links_[use.link];
    link.crossings.erase(std::find_if(link.crossings.begin(), link.crossings.end(),
                                      [&](const Crossing& crossing) { return crossing.flow == number; }));
    cross(link, -use.times);
    if (link.crossings.empty() && link.changed) {
      link.changed = false;
      changed_.erase(std::find(changed_.begin(), changed_.end(), use.link));
    }
  }
  drop_end(number);
  free_.push_back(number);
}

void MaxMinFlows::mark_changed(std::int32_t link) {
  if (!links_[link].changed) {
    links_[link].changed = true;
    changed_.push_back(link);
    mark_sharers(link);
  }
}

// The other links of the flows on a link, theirs, and so on. Those that a flow has for itself lead nowhere.
void MaxMinFlows::mark_sharers(std::int32_t link) {
  const std::vector<Crossing>& crossings = links_[link].crossings;
  for (auto crossing = crossings.rbegin(); crossing != crossings.rend(); ++crossing) {
    Flow& flow = flows_[crossing->flow];
    const Use* const end = flow.uses.data() + flow.uses.size();
    for (const Use* use = flow.uses.data(); use != end && flow.seen != search_; ++use) {
      Link& other = links_[use->link];
      if (!other.changed) {
        other.changed = true;
        changed_.push_back(use->link);
        if (other.crossings.size() != 1 || other.crossings.front().flow != crossing->flow) {
          mark_sharers(use->link);
        }
      }
    }
    flow.seen = search_;
  }
}

double MaxMinFlows::until_next(double now) {
  if (!changed_.empty()) {
    list_changed_flows();
    if (!fill_at_once()) {
      fill();
    }
    changed_.clear();
    ++search_;
    for (const std::int32_t flow : shared_) {
      flows_[flow].listed = false;
      foretell(flow, now);
    }
    shared_.clear();
  }
  return ends_.empty() ? -1 : ends_.front().time - now;
}

void MaxMinFlows::list_changed_flows() {
  for (const std::int32_t number : changed_) {
    Link& link = links_[number];
    link.changed = false;
    for (auto crossing = link.crossings.rbegin(); crossing != link.crossings.rend(); ++crossing) {
      Flow& flow = flows_[crossing->flow];
      if (!flow.listed) {
        flow.listed = true;
        flow.settled = false;
        shared_.push_back(crossing->flow);
      }
    }
  }
}

// Most often all flows cross one of the fullest links. Then all have the rate at which these are full or, if that is
// less, that of the narrowest link on their ways, and nothing is left to be filled up.
bool MaxMinFlows::fill_at_once() {
  least_ = std::numeric_limits<double>::infinity();
  for (const std::int32_t link : changed_) {
    least_ = std::min(least_, links_[link].full_at);
  }
  if (settle_on_fullest() < shared_.size()) {
    return false;
  }
  double narrowest = least_, widest = 0;
  for (const std::int32_t number : shared_) {
    narrowest = std::min(narrowest, flows_[number].most);
    widest = std::max(widest, flows_[number].most);
  }
  const bool by_narrowest = narrowest < least_;
  if (by_narrowest && !(std::abs(narrowest - widest) < kShares)) {
    return false;
  }
  for (const std::int32_t number : shared_) {
    flows_[number].rate = by_narrowest ? flows_[number].most : least_;
  }
  return true;
}

// The number of flows on the fullest links.
std::size_t MaxMinFlows::settle_on_fullest() {
  std::size_t settled = 0;
  for (const std::int32_t link : changed_) {
    if (links_[link].full_at == least_) {
      for (const Crossing& crossing : links_[link].crossings) {
        settled += flows_[crossing.flow].settled ? 0 : 1;
        flows_[crossing.flow].settled = true;
      }
    }
  }
  return settled;
}

void MaxMinFlows::fill() {
  for (const std::int32_t flow : shared_) {
    flows_[flow].listed = false;
    flows_[flow].settled = false;
    flows_[flow].rate = 0;
  }
  for (const std::int32_t link : changed_) {
    begin_filling(link);
  }
  do {
    find_fullest();
    list_flows_on_fullest();
    settle_listed();
  } while (!filling_.empty());
}

void MaxMinFlows::begin_filling(std::int32_t number) {
  Link& link = links_[number];
  link.room = link.bandwidth;
  link.crossed = link.times;
  link.place = static_cast<std::int32_t>(filling_.size());
  filling_.push_back({link.full_at, number});
}

void MaxMinFlows::find_fullest() {
  fullest_.clear();
  least_ = std::numeric_limits<double>::infinity();
  for (std::size_t place = 0; place < filling_.size(); ++place) {
    if (filling_[place].rate < least_) {
      least_ = filling_[place].rate;
      fullest_.clear();
    }
    if (filling_[place].rate == least_) {
      fullest_.push_back(static_cast<std::int32_t>(place));
    }
  }
}

void MaxMinFlows::list_flows_on_fullest() {
  for (const std::int32_t place : fullest_) {
    for (const Crossing& crossing : links_[filling_[place].link].crossings) {
      Flow& flow = flows_[crossing.flow];
      if (!flow.settled && !flow.listed) {
        flow.listed = true;
        listed_.push_back(crossing.flow);
      }
    }
  }
}

// Those whose narrowest link carries the least, if that is less than what the fullest links leave; else all.
void MaxMinFlows::settle_listed() {
  double narrowest = std::numeric_limits<double>::infinity();
  for (const std::int32_t number : listed_) {
    if (flows_[number].most < least_) {
      narrowest = std::min(narrowest, flows_[number].most);
    }
  }
  const bool by_narrowest = narrowest < least_;
  for (const std::int32_t number : listed_) {
    Flow& flow = flows_[number];
    flow.listed = false;
    if (!by_narrowest) {
      flow.rate = least_;
      settle(flow);
    } else if (std::abs(narrowest - flow.most) < kShares) {
      flow.rate = flow.most;
      settle(flow);
    }
  }
  listed_.clear();
}

void MaxMinFlows::settle(Flow& flow) {
  flow.settled = true;
  for (const Use& use : flow.uses) {
    Link& link = links_[use.link];
    subtract(link.room, use.times * flow.rate, link.bandwidth * kShares);
    subtract(link.crossed, use.times, kShares);
    if (link.place < 0) {
      continue;
    }
    if (link.crossed > kShares && link.room > link.bandwidth * kShares) {
      filling_[link.place].rate = link.room / link.crossed;
    } else {
      stop_filling(link);
    }
  }
}

void MaxMinFlows::stop_filling(Link& link) {
  filling_[link.place] = filling_.back();
  links_[filling_[link.place].link].place = link.place;
  filling_.pop_back();
  link.place = -1;
}

// When a flow ends if nothing changes.
void MaxMinFlows::foretell(std::int32_t number, double now) {
  Flow& flow = flows_[number];
  if (flow.over) {
    return;
  }
  advance(number, now);
  if (flow.rate <= 0) {
    throw std::logic_error("a flow got no share of its links");
  }
  const double end = now + (flow.left > 0 ? flow.left / flow.rate : 0.0);
  put_end({end, ++foretold_, number});
}

void MaxMinFlows::advance(std::int32_t number, double now) {
  Flow& flow = flows_[number];
  if (flow.left > 0) {
    subtract(flow.left, flow.before * (now - flow.since), kShares * kTimes);
  }
  if (flow.left <= 0) {
    finish(number);
  }
  flow.since = now;
  flow.before = flow.rate;
}

void MaxMinFlows::end_at(double now) {
  while (!ends_.empty() && std::abs(ends_.front().time - now) < kTimes) {
    const std::int32_t flow = ends_.front().flow;
    drop_end(flow);
    finish(flow);
  }
}

void MaxMinFlows::finish(std::int32_t number) {
  Flow& flow = flows_[number];
  flow.left = 0;
  if (!flow.over) {
    flow.over = true;
    ended_.push_back(number);
  }
}

// Where the flow has an end already, this one replaces it.
void MaxMinFlows::put_end(const End& end) {
  if (flows_[end.flow].place < 0) {
    ends_.push_back(end);
    move_up(ends_.size() - 1, end);
    return;
  }
  const auto place = static_cast<std::size_t>(flows_[end.flow].place);
  end < ends_[place] ? move_up(place, end) : move_down(place, end);
}

void MaxMinFlows::drop_end(std::int32_t flow) {
  if (flows_[flow].place < 0) {
    return;
  }
  const auto place = static_cast<std::size_t>(std::exchange(flows_[flow].place, -1));
  const End last = ends_.back();
  ends_.pop_back();
  if (place < ends_.size()) {
    last < ends_[place] ? move_up(place, last) : move_down(place, last);
  }
}

void MaxMinFlows::move_up(std::size_t place, const End& end) {
  while (place > 0 && end < ends_[(place - 1) / 2]) {
    put_at(place, ends_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  put_at(place, end);
}

void MaxMinFlows::move_down(std::size_t place, const End& end) {
  for (std::size_t next = 2 * place + 1; next < ends_.size(); next = 2 * place + 1) {
    if (next + 1 < ends_.size() && ends_[next + 1] < ends_[next]) {
      ++next;
    }
    if (!(ends_[next] < end)) {
      break;
    }
    put_at(place, ends_[next]);
    place = next;
  }
  put_at(place, end);
}

} // namespace stagecraft
