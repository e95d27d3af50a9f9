// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/fold.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "sim/base/error.hpp"

namespace stagecraft {
namespace {

// Calls visit(simulated link, crossings of links of its class) for each class that a leg crosses.
template <class Visit> void for_each_class(const Fold& fold, const Leg& leg, const Visit& visit) {
  std::vector<LinkId> links;
  links.reserve(leg.links.size());
  for (const LinkId link : leg.links) {
    links.push_back(fold.link[static_cast<std::size_t>(link)]);
  }
  std::sort(links.begin(), links.end());
  for (auto first = links.begin(); first != links.end();) {
    const auto end = std::upper_bound(first, links.end(), *first);
    visit(*first, static_cast<std::int64_t>(end - first));
    first = end;
  }
}

// How many of `count` flows cross each link of a class, if one of them has so many crossings.
std::int64_t crossings_of_link(const Fold& fold, LinkId link, std::int64_t crossings, std::int32_t count) {
  const std::int64_t links = fold.links[static_cast<std::size_t>(link)];
  check(crossings * count % links == 0, "flows that cross links of a class unequally");
  return crossings * count / links;
}

} // namespace

// Devices of a class are in as many groups of each class, and here each is in one: groups with a class in common are
// alike.
std::vector<FoldedGroup> fold_groups(std::vector<std::vector<std::size_t>> groups, const StageFold* fold,
                                     std::size_t degree) {
  std::vector<FoldedGroup> folded;
  if (fold == nullptr) {
    std::transform(groups.begin(), groups.end(), std::back_inserter(folded),
                   [](std::vector<std::size_t>& group) { return FoldedGroup{std::move(group)}; });
    return folded;
  }
  std::map<std::size_t, std::size_t> known; // by a simulated member
  for (std::vector<std::size_t>& group : groups) {
    const std::vector<std::size_t> places = simulated_places(group, fold, degree);
    const std::size_t key = *std::min_element(places.begin(), places.end());
    const auto [at, is_new] = known.try_emplace(key, folded.size());
    if (is_new) {
      folded.push_back({std::move(group), 0});
    }
    ++folded[at->second].count;
  }
  return folded;
}

std::vector<std::size_t> simulated_places(const std::vector<std::size_t>& members, const StageFold* fold,
                                          std::size_t degree) {
  if (fold == nullptr) {
    return members;
  }
  std::vector<std::size_t> places;
  for (const std::size_t member : members) {
    const std::size_t place = fold->simulated(member, degree);
    if (std::find(places.begin(), places.end(), place) == places.end()) {
      places.push_back(place);
    }
  }
  return places;
}

Leg Fold::leg(const Leg& one, std::int32_t count) const {
  Leg folded{{}, one.latency, one.bandwidth};
  for_each_class(*this, one, [&](LinkId simulated, std::int64_t crossings) {
    folded.links.insert(folded.links.end(),
                        static_cast<std::size_t>(crossings_of_link(*this, simulated, crossings, count)), simulated);
  });
  return folded;
}

std::vector<LinkId> Fold::meetings(const Leg& one, std::int32_t count) const {
  std::map<LinkId, std::int64_t> own; // the fewest crossings of any link of a class
  std::vector<LinkId> crossed = one.links;
  std::sort(crossed.begin(), crossed.end());
  for (auto first = crossed.begin(); first != crossed.end();) {
    const auto end = std::upper_bound(first, crossed.end(), *first);
    const auto crossings = static_cast<std::int64_t>(end - first);
    const auto [at, is_new] = own.try_emplace(link[static_cast<std::size_t>(*first)], crossings);
    at->second = std::min(at->second, crossings);
    first = end;
  }
  std::vector<LinkId> met;
  for_each_class(*this, one, [&](LinkId simulated, std::int64_t crossings) {
    if (own.at(simulated) < crossings_of_link(*this, simulated, crossings, count)) {
      met.push_back(simulated);
    }
  });
  return met;
}

} // namespace stagecraft
