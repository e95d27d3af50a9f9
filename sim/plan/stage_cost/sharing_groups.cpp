// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/sharing_groups.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace stagecraft {

bool shares_in_groups(const StageCost& cost) {
  return cost.zero != Zero::none &&
         cost.size() / static_cast<std::size_t>(cost.tensor_parallel) != static_cast<std::size_t>(cost.sharing);
}

std::vector<SharingGroups> sharing_groups(const StageCost& cost, std::size_t rank, bool of_experts) {
  const auto degree = static_cast<std::size_t>(cost.tensor_parallel);
  const std::size_t replicas = cost.size() / degree;
  const std::size_t sharing = cost.zero == Zero::none ? replicas : static_cast<std::size_t>(cost.sharing);
  const std::size_t apart = of_experts ? static_cast<std::size_t>(cost.axes.expert_replicas()) : 1;
  std::vector<SharingGroups> all(apart, SharingGroups(replicas / sharing));
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    all[replica % apart][replica / sharing].push_back(replica * degree + rank);
  }
  return all;
}

std::vector<std::vector<std::size_t>> places_of(const SharingGroups& groups) {
  std::vector<std::vector<std::size_t>> places(groups.front().size());
  for (const std::vector<std::size_t>& group : groups) {
    for (std::size_t part = 0; part < places.size(); ++part) {
      places[part].push_back(group[part]);
    }
  }
  return places;
}

std::vector<std::vector<std::size_t>> second_copies(const std::vector<std::size_t>& group, int members) {
  std::vector<std::vector<std::size_t>> copies;
  for (auto begin = group.begin(); begin != group.end(); begin += members) {
    copies.emplace_back(begin, begin + members);
  }
  return copies;
}

HopGroups hop_groups(const Platform& platform, const StageCost& cost, const std::vector<std::size_t>& group) {
  std::map<int, std::vector<std::size_t>> inside; // by node
  for (const std::size_t member : group) {
    inside[platform.devices[cost.device(member)].node].push_back(member);
  }
  HopGroups hops;
  std::size_t places = group.size();
  for (auto& [node, members] : inside) {
    places = std::min(places, members.size());
    hops.inside.push_back(std::move(members));
  }
  hops.between.resize(places);
  for (std::size_t place = 0; place < places; ++place) {
    for (const std::vector<std::size_t>& members : hops.inside) {
      hops.between[place].push_back(members[place]);
    }
  }
  return hops;
}

// A device is in one group and in one place. So where replicas that hold the same have a class in common with others,
// all of their groups and places are alike: one of these sets stands for them, in it one group and one place of each
// class.
std::vector<FoldedSharing> fold_sharing(const std::vector<SharingGroups>& all, const StageFold* fold,
                                        std::size_t degree) {
  std::vector<std::vector<std::size_t>> members;
  for (const SharingGroups& groups : all) {
    std::vector<std::size_t>& of_set = members.emplace_back();
    for (const std::vector<std::size_t>& group : groups) {
      of_set.insert(of_set.end(), group.begin(), group.end());
    }
  }
  const std::vector<FoldedGroup> sets = fold_groups(members, fold, degree);
  std::vector<FoldedSharing> folded;
  for (std::size_t at = 0, next = 0; at < all.size() && next < sets.size(); ++at) {
    if (members[at] != sets[next].members) { // another set stands for it
      continue;
    }
    FoldedSharing& one = folded.emplace_back();
    one.groups = fold_groups(all[at], fold, degree);
    one.places = fold_groups(places_of(all[at]), fold, degree);
    one.parts = all[at].front().size();
    for (std::vector<FoldedGroup>* kind : {&one.groups, &one.places}) {
      for (FoldedGroup& group : *kind) {
        group.count *= sets[next].count;
      }
    }
    ++next;
  }
  return folded;
}

} // namespace stagecraft
