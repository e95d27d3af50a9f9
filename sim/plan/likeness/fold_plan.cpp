// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/likeness/fold_plan.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "sim/plan/likeness/plan_likeness.hpp"

namespace stagecraft {
namespace {

// Of each stage the first replica, as if all were alike.
Fold first_of_each(const Plan& plan) {
  Fold fold;
  for (const Stage& stage : plan.stages) {
    const auto replicas = static_cast<std::int32_t>(stage.replicas());
    fold.stages.push_back({std::vector<std::int32_t>(stage.replicas(), 0), {0}, {replicas}});
  }
  return fold;
}

bool is_folded(const Stage& stage, const StageCost& cost, const Sharding& sharding) {
  const auto replicas = static_cast<int>(stage.replicas());
  const bool equal = std::all_of(stage.shares.begin(), stage.shares.end(),
                                 [&](double share) { return share == stage.shares.front(); });
  if (!equal || (stage.turns > 1 && replicas == stage.turns)) {
    return false;
  }
  // Groups of unequal size, and such of replicas that take turns, are refused later.
  if (cost.zero != Zero::none && sharding.secondary > 0 && cost.sharing % sharding.secondary != 0) {
    return false;
  }
  const bool groups = cost.zero != Zero::none && cost.sharing != replicas;
  return !groups || (stage.turns == 1 && replicas % cost.sharing == 0 &&
                     cost.sharing % static_cast<int>(cost.axes.expert_replicas()) == 0);
}

// Whether equal replicas' transfers from one stage to another may want more of a link than it carries, so that they
// would drift apart in a real run.
bool may_drift(const PlanLikeness& all, const PlanCost& cost, const Platform& platform) {
  constexpr double kRounding = 1e-9;
  struct Use {
    double wanted = 0;
    std::int32_t sender = 0, receiver_cell = 0;
    bool senders = false, receivers = false; // several
  };
  const std::vector<LikenessFlow>& flows = all.likeness.flows;
  for (std::size_t edge = 0; edge < cost.edges.size(); ++edge) {
    std::map<std::pair<bool, LinkId>, Use> uses; // by direction and link
    for (const ConnectedPair& pair : all.pairs[edge]) {
      const auto from_cell = static_cast<std::int32_t>(all.first_cell[cost.edges[edge].from]) + pair.part.from;
      for (std::size_t at = pair.begin; at < pair.end; ++at) {
        for (const LinkId link : flows[at].links) {
          const auto [use, is_new] = uses.try_emplace({flows[at].from_cell == from_cell, link},
                                                      Use{0, flows[at].sender, flows[at].to_cell, false, false});
          Use& of_link = use->second;
          of_link.wanted += all.bandwidth[at];
          of_link.senders = of_link.senders || of_link.sender != flows[at].sender;
          of_link.receivers = of_link.receivers || of_link.receiver_cell != flows[at].to_cell;
        }
      }
    }
    for (const auto& [key, use] : uses) {
      if (use.senders && use.receivers && use.wanted > platform.links[key.second].bandwidth.value * (1 + kRounding)) {
        return true;
      }
    }
  }
  return false;
}

// Reads classes off the colours of a refined likeness.
class Classes {
public:
  Classes(const PlanLikeness& connections, const Plan& plan)
      : connections_(connections), all_(connections.likeness), plan_(plan) {}

  std::optional<Fold> read() {
    Fold fold;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      fold.stages.push_back(classes_of(s));
    }
    const bool folds = std::any_of(fold.stages.begin(), fold.stages.end(),
                                   [](const StageFold& stage) { return stage.first.size() < stage.class_of.size(); });
    if (!folds || !is_consistent(fold)) {
      return std::nullopt;
    }
    for (const std::vector<ConnectedPair>& pairs : connections_.pairs) {
      fold.pairs.push_back(classes_of(pairs));
    }
    read_links(fold);
    return confuses_channels(fold) ? std::nullopt : std::optional(std::move(fold));
  }

private:
  StageFold classes_of(std::size_t stage) const {
    StageFold fold;
    std::map<Colour, std::int32_t> known;
    for (std::size_t replica = 0; replica < plan_.stages[stage].replicas(); ++replica) {
      const Colour colour = all_.cells[connections_.first_cell[stage] + replica].colour;
      const auto [at, is_new] = known.try_emplace(colour, static_cast<std::int32_t>(fold.first.size()));
      if (is_new) {
        fold.first.push_back(static_cast<std::int32_t>(replica));
        fold.count.push_back(0);
      }
      ++fold.count[at->second];
      fold.class_of.push_back(at->second);
    }
    return fold;
  }

  std::vector<FoldedPair> classes_of(const std::vector<ConnectedPair>& pairs) const {
    std::vector<FoldedPair> folded;
    std::map<Colour, std::size_t> known;
    for (const ConnectedPair& pair : pairs) {
      auto colour = static_cast<Colour>(pair.end - pair.begin);
      for (std::size_t flow = pair.begin; flow < pair.end; ++flow) {
        colour = mixed(colour, all_.flows[flow].colour);
      }
      const auto [at, is_new] = known.try_emplace(colour, folded.size());
      if (is_new) {
        folded.push_back({pair.part, 0});
      }
      ++folded[at->second].count;
    }
    return folded;
  }

  // Whether the first replicas of all stages' classes are on the same devices, and what adds up norms is among these
  // alone or among others alone.
  bool is_consistent(const Fold& fold) const {
    std::vector<char> simulated(all_.devices.size(), 0), others = simulated;
    for (std::size_t s = 0; s < fold.stages.size(); ++s) {
      for (std::size_t replica = 0; replica < fold.stages[s].class_of.size(); ++replica) {
        const bool first = fold.stages[s].first[fold.stages[s].class_of[replica]] == static_cast<std::int32_t>(replica);
        for (const std::int32_t device : all_.cells[connections_.first_cell[s] + replica].devices) {
          (first ? simulated : others)[device] = 1;
        }
      }
    }
    for (std::size_t device = 0; device < simulated.size(); ++device) {
      if (simulated[device] != 0 && others[device] != 0) {
        return false;
      }
    }
    return std::all_of(
        connections_.norms.begin(), connections_.norms.end(), [&](const std::vector<std::int32_t>& group) {
          const auto count =
              std::count_if(group.begin(), group.end(), [&](std::int32_t one) { return simulated[one] != 0; });
          return count == 0 || count == static_cast<std::ptrdiff_t>(group.size());
        });
  }

  void read_links(Fold& fold) const {
    std::map<Colour, LinkId> known;
    std::vector<char> crossed(all_.links.size(), 0);
    for (const LikenessCell& cell : all_.cells) {
      for (const auto& [link, use] : cell.links) {
        crossed[link] = 1;
      }
    }
    for (const LikenessFlow& flow : all_.flows) {
      for (const LinkId link : flow.links) {
        crossed[link] = 1;
      }
    }
    for (const LikenessCollective& collective : all_.collectives) {
      for (const auto& [link, crossings] : collective.links) {
        crossed[link] = 1;
      }
    }
    fold.links.assign(all_.links.size(), 0);
    for (std::size_t id = 0; id < all_.links.size(); ++id) {
      const auto own = static_cast<LinkId>(id);
      fold.link.push_back(crossed[id] != 0 ? known.try_emplace(all_.links[id], own).first->second : own);
      ++fold.links[fold.link.back()];
    }
  }

  // What a device sends over different links is on different channels. Whether those would be one where links are
  // folded, and are not alike.
  bool confuses_channels(const Fold& fold) const {
    std::map<std::pair<std::int32_t, std::vector<LinkId>>, Colour> channels; // sender, links -> what is sent
    for (const LikenessFlow& flow : all_.flows) {
      channels[{flow.sender, flow.links}] += flow.colour;
    }
    std::map<std::pair<std::int32_t, std::vector<LinkId>>, Colour> folded;
    for (const auto& [channel, sent] : channels) {
      std::vector<LinkId> links = channel.second;
      for (LinkId& link : links) {
        link = fold.link[link];
      }
      std::sort(links.begin(), links.end());
      const auto [at, is_new] = folded.try_emplace({channel.first, std::move(links)}, sent);
      if (!is_new && at->second != sent) {
        return true;
      }
    }
    return false;
  }

  const PlanLikeness& connections_;
  const Likeness& all_;
  const Plan& plan_;
};

} // namespace

std::optional<PlanCost> fold_plan(const FoldRequest& request) {
  const Plan& plan = request.plan;
  const bool replicated = std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& stage) {
    return stage.replicas() > static_cast<std::size_t>(stage.turns);
  });
  // The sum of the norm, which keeps the time that it takes alone, meets gradients on their way to hosts.
  const bool meet = request.clips_gradients && request.problem.training.offload.gradients;
  if (!replicated || meet || request.problem.training.all_reduce == &kHopByHop) {
    return std::nullopt;
  }
  PlanCost cost = cost_plan(request.problem, plan, first_of_each(plan));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (!is_folded(plan.stages[s], cost.stages[s], request.problem.training.sharding)) {
      return std::nullopt;
    }
  }
  PlanLikeness all = plan_likeness(request.problem, plan, cost, request.clips_gradients);
  if (request.shares_links && may_drift(all, cost, request.problem.platform)) {
    return std::nullopt;
  }
  refine(all.likeness);
  std::optional<Fold> fold = Classes(all, plan).read();
  if (!fold) {
    return std::nullopt;
  }
  if (std::any_of(fold->stages.begin(), fold->stages.end(),
                  [](const StageFold& one) { return one.first.size() > 1; })) {
    return cost_plan(request.problem, plan, *std::move(fold));
  }
  cost.fold = std::make_shared<const Fold>(*std::move(fold));
  return cost;
}

} // namespace stagecraft
