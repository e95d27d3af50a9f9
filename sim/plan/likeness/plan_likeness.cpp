// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/likeness/plan_likeness.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "sim/collective/algorithm.hpp"
#include "sim/collective/group_ways.hpp"
#include "sim/collective/rank_map.hpp"
#include "sim/plan/stage_cost/communicators.hpp"
#include "sim/plan/stage_cost/groups/dispatch_traffic.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/plan/stage_cost/sharing_groups.hpp"

namespace stagecraft {
namespace {

// Whose buffers: those of all replicas, or those of replicas with the same experts.
enum class Whose { dense, experts };

// Buffers that replicas of a stage exchange at a time by collectives of a kind, as task graphs have them.
std::vector<Bytes> buffers_of(const StageCost& cost, CollectiveKind kind, const Sharding& sharding, Whose whose) {
  const bool gathers = kind == CollectiveKind::all_gather || kind == CollectiveKind::broadcast,
             experts = whose == Whose::experts;
  std::vector<Bytes> buffers;
  for (const ShardUnit& unit : cost.shares_units() ? cost.units : std::vector<ShardUnit>{}) {
    buffers.push_back(gathers ? (experts ? unit.expert_weights : unit.weights) * unit.gathered.of(experts)
                              : (experts ? unit.expert_gradients : unit.gradients) *
                                    (kind == CollectiveKind::all_to_all ? unit.reduced : 1));
  }
  if (gathers && !sharding.gathers_units()) {
    for (const StepsAlike& alike : collectives_after_step(cost, experts)) {
      buffers.push_back(gathered_after_step(cost, experts) * alike.part);
    }
  } else if (!gathers && !cost.shares_units()) {
    buffers.push_back(experts ? cost.expert_gradients : cost.gradients);
    for (const GradientBucket& bucket : cost.buckets) {
      buffers.push_back(experts ? bucket.of_experts : bucket.bytes);
    }
    if (cost.buckets.size() > 1) { // then never all at once
      buffers.erase(buffers.begin());
    }
  }
  return buffers;
}

std::vector<std::size_t> all_of(const SharingGroups& groups) {
  std::vector<std::size_t> all;
  for (const std::vector<std::size_t>& group : groups) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

// Lays out a plan as devices, links and what connects them.
class Connections {
public:
  Connections(const Problem& problem, const Plan& plan, const PlanCost& cost)
      : problem_(problem), plan_(plan), cost_(cost) {}

  PlanLikeness make(bool clips_gradients) {
    number_devices();
    add_cells();
    for (std::size_t edge = 0; edge < cost_.edges.size(); ++edge) {
      connect(edge);
    }
    meet_in_passes();
    reduce();
    if (clips_gradients) {
      add_up_norms();
    }
    return std::move(made_);
  }

private:
  enum Start : Colour { kCell = 11, kFlow, kReduction, kNorm, kHost, kTeam, kExperts, kSecondCopy, kHop };

  void number_devices() {
    number_.assign(problem_.platform.devices.size(), -1);
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      for (std::size_t i = 0; i < plan_.stages[s].devices.size(); ++i) {
        const DeviceId device = plan_.stages[s].devices[i];
        if (number_[device] < 0) {
          number_[device] = static_cast<std::int32_t>(made_.likeness.devices.size());
          made_.likeness.devices.push_back(mixed(kCell, static_cast<Colour>(problem_.type_index(device))));
        }
        const auto rank = static_cast<Colour>(i % static_cast<std::size_t>(plan_.stages[s].tensor_parallel));
        Colour& colour = made_.likeness.devices[number_[device]];
        const std::size_t turn = i / (plan_.stages[s].devices.size() / static_cast<std::size_t>(plan_.stages[s].turns));
        colour = mixed(colour, mixed(mixed(static_cast<Colour>(s), rank), static_cast<Colour>(turn)));
      }
    }
    for (const Link& link : problem_.platform.links) {
      const auto end = [&](int vertex) { return static_cast<Colour>(problem_.platform.vertices[vertex].kind); };
      const Colour colour = mixed(kFlow, link.bandwidth.value);
      made_.likeness.links.push_back(mixed(mixed(colour, end(link.from)), end(link.to)));
    }
  }

  // What devices that exchange data in passes have in common with any others that lie to each other as they do: the
  // times of it, and the links that it crosses.
  struct Exchanges {
    std::vector<DeviceId> devices;
    Colour colour = 0;
    std::vector<std::pair<LinkId, Colour>> links;
  };

  Exchanges exchanges_of(const std::vector<DeviceId>& devices, const StageCost& cost, Axis axis,
                         const DispatchTraffic* tokens = nullptr) const {
    Exchanges made{devices};
    const Group group = group_of_devices(problem_, devices, tokens);
    for (const double figure : figures_of(group)) {
      made.colour = mixed(made.colour, figure);
    }
    const GroupPasses& passes = *cost.groups.front().passes;
    std::map<LinkId, Colour> links;
    std::set<std::pair<CollectiveKind, double>> seen;
    for (const GroupPass* pass :
         {&passes.forward, &passes.backward, &passes.backward_input, &passes.recompute, &passes.terms}) {
      for (const PassExchange& exchange : pass->exchanges) {
        if (exchange.axis != axis || group.ways == nullptr ||
            !seen.emplace(exchange.kind, exchange.bytes.value).second) {
          continue;
        }
        auto number = static_cast<Colour>(seen.size());
        for (const CoupledFlow& flow : group.ways->flows(exchange.kind, exchange.bytes)) {
          number = mixed(number, flow.share);
          for (const LinkId link : flow.leg.links) {
            links[link] += number;
          }
        }
      }
    }
    made.links.assign(links.begin(), links.end());
    return made;
  }

  // The same over the links of devices that lie alike.
  std::vector<std::pair<LinkId, Colour>> moved(const Exchanges& known, const std::vector<DeviceId>& to) const {
    const LikeNodes* const nodes = problem_.router.like_nodes();
    if (nodes == nullptr || known.devices == to) {
      return known.links;
    }
    std::map<int, int> node_of; // a known device's node -> that of its counterpart
    for (std::size_t i = 0; i < to.size(); ++i) {
      node_of[problem_.platform.devices[known.devices[i]].node] = problem_.platform.devices[to[i]].node;
    }
    std::vector<std::pair<LinkId, Colour>> links = known.links;
    for (auto& [link, colour] : links) {
      const int node = nodes->node_of(link);
      link = node >= 0 ? nodes->link_at(node_of.at(node), link) : link;
    }
    return links;
  }

  void add_cells() {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const Stage& stage = plan_.stages[s];
      std::map<std::vector<int>, Exchanges> known; // by how devices lie
      made_.first_cell.push_back(made_.likeness.cells.size());
      for (std::size_t replica = 0; replica < stage.replicas(); ++replica) {
        const std::vector<DeviceId> own = devices_of_replica(s, replica);
        LikenessCell& cell = made_.likeness.cells.emplace_back();
        cell.colour = mixed(kCell, static_cast<Colour>(s));
        if (const std::vector<std::size_t>& loads = cost_.stages[s].loads; !loads.empty()) {
          cell.colour = mixed(cell.colour, static_cast<Colour>(loads[replica]));
        }
        cell.devices = numbers_of(own);
        if (stage.tensor_parallel > 1) {
          const auto [at, is_new] = known.try_emplace(lie_of(own, problem_.router));
          if (is_new) {
            at->second = exchanges_of(own, cost_.stages[s], Axis::tensor);
          }
          cell.colour = mixed(cell.colour, at->second.colour);
          cell.links = moved(at->second, own);
        }
        if (problem_.training.offload.on()) {
          add_host_links(own, cell);
        }
      }
    }
  }

  // The links between devices and their hosts, with the hosts' memories.
  void add_host_links(const std::vector<DeviceId>& devices, LikenessCell& cell) {
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      const std::array legs = {problem_.router.to_host(devices[rank]), problem_.router.from_host(devices[rank])};
      for (std::size_t direction = 0; direction < legs.size(); ++direction) {
        const Colour colour = mixed(mixed(kHost, static_cast<Colour>(rank)), static_cast<Colour>(direction));
        for (const LinkId link : legs[direction] ? legs[direction]->links : std::vector<LinkId>{}) {
          cell.links.emplace_back(link, colour);
        }
      }
      const Node& node = problem_.platform.nodes[problem_.platform.devices[devices[rank]].node];
      if (node.memory >= 0) {
        const Colour cores = mixed(mixed(kHost, static_cast<Colour>(node.host.cores)), node.host.core_speed.value);
        cell.links.emplace_back(node.memory, cores);
      }
    }
  }

  std::vector<DeviceId> devices_of_replica(std::size_t stage, std::size_t replica) const {
    const auto degree = static_cast<std::ptrdiff_t>(plan_.stages[stage].tensor_parallel);
    const auto first = plan_.stages[stage].devices.begin() + static_cast<std::ptrdiff_t>(replica) * degree;
    return {first, first + degree};
  }

  // The pairs of replicas whose parts of a micro-batch overlap, and what they send each other.
  void connect(std::size_t edge) {
    std::vector<ConnectedPair>& of_edge = made_.pairs.emplace_back();
    for (const SharedPart& part :
         shared_parts(cost_.edges[edge].bytes, shares_of(cost_.edges[edge].from), shares_of(cost_.edges[edge].to),
                      static_cast<std::size_t>(cost_.stages[cost_.edges[edge].from].turns))) {
      ConnectedPair pair{part, made_.likeness.flows.size(), 0};
      add_flows(edge, part);
      pair.end = made_.likeness.flows.size();
      of_edge.push_back(pair);
    }
  }

  std::vector<double> shares_of(int stage) const {
    std::vector<double> shares;
    for (std::size_t replica = 0; replica < plan_.stages[stage].replicas(); ++replica) {
      shares.push_back(plan_.stages[stage].share(replica));
    }
    return shares;
  }

  void add_flows(std::size_t edge, const SharedPart& shared) {
    const int from = cost_.edges[edge].from, to = cost_.edges[edge].to;
    const StageCost &sender = cost_.stages[from], &receiver = cost_.stages[to];
    const std::vector<DeviceId> senders = devices_of_replica(from, shared.from);
    const std::vector<DeviceId> receivers = devices_of_replica(to, shared.to);
    const auto from_cell = static_cast<std::int32_t>(made_.first_cell[from]) + shared.from;
    const auto to_cell = static_cast<std::int32_t>(made_.first_cell[to]) + shared.to;
    for (int i = 0; i < sender.tensor_parallel; ++i) {
      for (int j = 0; j < receiver.tensor_parallel; ++j) {
        const DeviceId one = senders[i], other = receivers[j];
        if (one == other) {
          continue;
        }
        const Colour colour = mixed(mixed(kFlow, static_cast<Colour>(edge)), shared.bytes);
        if (const double part = part_sent(sender, i, receiver, j); part > 0) {
          add_flow(mixed(mixed(colour, part), Colour{0}), one, other, from_cell, to_cell);
        }
        if (const double part = part_sent(receiver, j, sender, i); part > 0) {
          add_flow(mixed(mixed(colour, part), Colour{1}), other, one, to_cell, from_cell);
        }
      }
    }
  }

  void add_flow(Colour colour, DeviceId from, DeviceId to, std::int32_t from_cell, std::int32_t to_cell) {
    const Route* route = problem_.router.find(from, to);
    if (route == nullptr) {
      throw std::logic_error("two devices of a plan have no route");
    }
    Colour number = 0;
    for (const Leg& leg : route->legs) {
      const Colour own = mixed(mixed(mixed(colour, number++), leg.latency.value), leg.bandwidth.value);
      made_.likeness.flows.push_back({own, number_[from], number_[to], from_cell, to_cell, leg.links});
      made_.bandwidth.push_back(leg.bandwidth.value);
    }
  }

  // What ranks that share tokens or experts exchange in passes, for which they wait for each other.
  void meet_in_passes() {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const Stage& stage = plan_.stages[s];
      DispatchTraffics tokens(problem_, stage);
      for (const Axis axis : kPassAxes) {
        if (axis == Axis::tensor) { // those are cells
          continue;
        }
        std::map<std::vector<int>, Exchanges> known; // by how devices lie
        for (const std::vector<std::size_t>& team : team_places(stage.axes(), axis, stage.devices.size())) {
          const std::vector<DeviceId> own = devices_at(stage, team);
          const auto [at, is_new] = known.try_emplace(lie_of(own, problem_.router));
          if (is_new) {
            at->second = exchanges_of(own, cost_.stages[s], axis, axis == Axis::experts ? tokens.among(own) : nullptr);
          }
          const Colour place = mixed(mixed(kTeam, static_cast<Colour>(s)), static_cast<Colour>(axis));
          made_.likeness.collectives.push_back(
              {mixed(place, at->second.colour), numbers_of(own), moved(at->second, own)});
        }
      }
    }
  }

  static std::vector<DeviceId> devices_at(const Stage& stage, const std::vector<std::size_t>& places) {
    std::vector<DeviceId> devices;
    std::transform(places.begin(), places.end(), std::back_inserter(devices),
                   [&](std::size_t place) { return stage.devices[place]; });
    return devices;
  }

  std::vector<std::int32_t> numbers_of(const std::vector<DeviceId>& devices) const {
    std::vector<std::int32_t> numbers;
    std::transform(devices.begin(), devices.end(), std::back_inserter(numbers),
                   [&](DeviceId device) { return number_[device]; });
    return numbers;
  }

  // What the devices of one rank reduce and gather, of all else and of experts.
  void reduce() {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const Stage& stage = plan_.stages[s];
      for (int rank = 0; rank < stage.tensor_parallel && stage.replicas() > 1; ++rank) {
        for (const Whose whose : {Whose::dense, Whose::experts}) {
          if (whose == Whose::dense || cost_.stages[s].expert_gradients.value > 0) {
            reduce(s, rank, whose);
          }
        }
      }
    }
  }

  // Over the replicas that hold the same; where they share it, to the part of each, which is then added up over the
  // groups that share.
  void reduce(std::size_t s, int rank, Whose whose) {
    const StageCost& cost = cost_.stages[s];
    const Colour place = mixed(mixed(kReduction, static_cast<Colour>(s)), static_cast<Colour>(rank));
    const Colour colour = whose == Whose::dense ? place : mixed(kExperts, place);
    const bool shares = cost.zero != Zero::none;
    for (const SharingGroups& groups : sharing_groups(cost, static_cast<std::size_t>(rank), whose == Whose::experts)) {
      for (const std::vector<std::size_t>& group : shares ? groups : SharingGroups{}) {
        share(s, colour, group, whose);
      }
      const bool parts = shares && !problem_.training.sharding.broadcasts();
      for (const std::vector<std::size_t>& same : parts ? places_of(groups) : SharingGroups{all_of(groups)}) {
        add_reduction(s, colour, CollectiveKind::all_reduce, same, whose, parts ? groups.front().size() : 1);
      }
    }
  }

  // What a group that shares reduces and gathers; second copies among each few, gradients of 4 bits in two hops.
  void share(std::size_t s, Colour colour, const std::vector<std::size_t>& group, Whose whose) {
    const Sharding& sharding = problem_.training.sharding;
    add_reduction(s, colour, after_step(sharding), group, whose, 1);
    if (sharding.broadcasts()) {
      return;
    }
    if (sharding.secondary > 0) {
      for (const std::vector<std::size_t>& copy : second_copies(group, sharding.secondary)) {
        add_reduction(s, mixed(kSecondCopy, colour), CollectiveKind::all_gather, copy, whose, 1);
      }
    }
    if (!sharding.quantized_gradients) {
      add_reduction(s, colour, CollectiveKind::reduce_scatter, group, whose, 1);
      return;
    }
    const HopGroups hops = hop_groups(problem_.platform, cost_.stages[s], group);
    for (const std::vector<std::size_t>& inside : hops.inside) {
      add_reduction(s, mixed(kHop, colour), CollectiveKind::all_to_all, inside, whose, 1);
    }
    for (const std::vector<std::size_t>& between : hops.between) {
      add_reduction(s, colour, CollectiveKind::all_to_all, between, whose, hops.between.size());
    }
  }

  void add_reduction(std::size_t s, Colour colour, CollectiveKind kind, const std::vector<std::size_t>& places,
                     Whose whose, std::size_t parts) {
    if (places.size() < 2) {
      return;
    }
    std::vector<Bytes> buffers = buffers_of(cost_.stages[s], kind, problem_.training.sharding, whose);
    for (Bytes& buffer : buffers) {
      buffer = buffer / static_cast<double>(parts);
    }
    add_collectives(mixed(colour, static_cast<Colour>(kind)), kind, devices_at(plan_.stages[s], places), buffers);
  }

  // The flows of all ways that are the fastest for one of the buffers.
  void add_collectives(Colour colour, CollectiveKind kind, const std::vector<DeviceId>& members,
                       const std::vector<Bytes>& buffers) {
    const bool by_name = kind != CollectiveKind::all_to_all; // names are of algorithms that reduce
    const std::vector<Way> ways = ways_of(kind, members, problem_.router,
                                          by_name ? problem_.training.all_reduce->name : kAllReduces.front().name);
    std::set<const Way*> used;
    for (const Bytes bytes : buffers) {
      used.insert(&fastest_of(ways, bytes));
    }
    for (const Way& way : ways) {
      for (std::size_t flow = 0; used.contains(&way) && flow < way.flows.size(); ++flow) {
        const std::vector<LinkId>& links = way.flows[flow].leg.links;
        LikenessCollective& made = made_.likeness.collectives.emplace_back();
        made.colour = mixed(mixed(colour, static_cast<Colour>(&way - ways.data())), static_cast<Colour>(flow));
        made.colour = mixed(made.colour, way.flows[flow].latency(Bytes{0}).value);
        made.members = numbers_of(members);
        for (auto first = links.begin(); first != links.end();) { // in the order of their numbers
          const auto end = std::upper_bound(first, links.end(), *first);
          made.links.emplace_back(*first, static_cast<Colour>(end - first));
          first = end;
        }
      }
    }
  }

  // A group of all devices adds up while nothing else is under way; only several groups may meet.
  void add_up_norms() {
    const std::vector<std::vector<DeviceId>> groups = norm_groups(cost_, problem_.training.sharding.on());
    for (const std::vector<DeviceId>& group : groups) {
      if (groups.size() > 1) {
        constexpr Bytes kOneNumber{4};
        add_collectives(kNorm, CollectiveKind::all_reduce, group, {kOneNumber});
        made_.norms.push_back(numbers_of(group));
      }
    }
  }

  const Problem& problem_;
  const Plan& plan_;
  const PlanCost& cost_;
  std::vector<std::int32_t> number_; // [DeviceId]: device of the likeness
  PlanLikeness made_;
};

} // namespace

PlanLikeness plan_likeness(const Problem& problem, const Plan& plan, const PlanCost& cost, bool clips_gradients) {
  return Connections(problem, plan, cost).make(clips_gradients);
}

} // namespace stagecraft
