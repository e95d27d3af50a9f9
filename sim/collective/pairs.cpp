// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include "sim/collective/algorithm.hpp"
#include "sim/collective/torus_grid.hpp"

namespace stagecraft {
namespace {

// A rank with its node.
struct Place {
  DeviceId device;
  std::size_t node;
};

enum class Tier { inside, across, both };

bool is_of(Tier tier, const Place& from, const Place& to) {
  return tier == Tier::both || (from.node == to.node) == (tier == Tier::inside);
}

// Who hands on what ranks send to other nodes. Since 2.12 NCCL sends by the NIC of the rank of the sender's node that
// has the receiver's place in it, and hands data to that rank over NVLink first (PXN). Over rails this spares the way
// over the spine; elsewhere NICs carry as much with it as without, and data takes its own.
class Relays {
public:
  Relays(const RankMap& ranks, Router& router) : router_(router) {
    for (const std::vector<DeviceId>& node : ranks.nodes) {
      auto& of_node = at_.emplace_back();
      for (const DeviceId device : node) {
        of_node.emplace(place(device), device);
      }
    }
  }

  /// The rank that hands on what one sends to another; the sender itself where none does.
  DeviceId between(const Place& from, const Place& to) {
    const auto found = at_[from.node].find(place(to.device));
    return from.node == to.node || found == at_[from.node].end() || !spares_switches(from, found->second, to)
               ? from.device
               : found->second;
  }

private:
  // Of a device among those of its node.
  int place(DeviceId device) const {
    const auto& devices = router_.platform().devices;
    const auto first = std::lower_bound(devices.begin(), devices.begin() + device, devices[device].node,
                                        [](const Device& one, int node) { return one.node < node; });
    return device - static_cast<int>(first - devices.begin());
  }

  bool is_of_nccl(DeviceId device) const { return router_.platform().type_of(device).vendor == kNcclVendor; }

  // Whether NCCL is there, whether the neighbour's way has fewer links, and whether the way to the neighbour is no
  // narrower than that and by no host.
  bool spares_switches(const Place& from, DeviceId relay, const Place& to) {
    const Leg* const own = only_leg(from.device, to.device);
    constexpr std::size_t kFewest = 2; // to a switch and from it
    if (relay == from.device || own == nullptr || own->links.size() <= kFewest || !is_of_nccl(from.device) ||
        !is_of_nccl(to.device)) {
      return false;
    }
    const Leg *const in = only_leg(from.device, relay), *const on = only_leg(relay, to.device);
    if (in == nullptr || on == nullptr || on->links.size() >= own->links.size() || in->bandwidth < on->bandwidth) {
      return false;
    }
    const Platform& platform = router_.platform();
    return std::none_of(in->links.begin(), in->links.end(), [&](LinkId link) {
      return platform.vertices[platform.links[link].to].kind == Vertex::Kind::host;
    });
  }

  // The leg of a route that has no other; null where data is stored on its way.
  const Leg* only_leg(DeviceId from, DeviceId to) {
    const Route* const route = router_.find(from, to);
    return route->legs.size() == 1 ? &route->legs.front() : nullptr;
  }

  Router& router_;
  std::vector<std::map<int, DeviceId>> at_; // [node]: by place
};

// The pairs of a tier. In step s each rank sends to the s-th after it; the slowest pair of a step holds it up. Nothing
// where there is no such pair. `relays` is null where none hands on.
Flows pairs_of(const std::vector<Place>& all, Tier tier, const NcclGroup& group, Relays* relays, Router& router) {
  const bool at_once = all.size() <= kNcclSendsAtOnce + 1;
  FlowBuilder flow = at_once ? FlowBuilder(router, kNcclSends, group) : FlowBuilder(router);
  HopLatency latency, slowest_of_all;
  int steps = 0;
  for (std::size_t step = 1; step < all.size(); ++step) {
    HopLatency slowest;
    bool any = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Place &from = all[i], &to = all[(i + step) % all.size()];
      if (is_of(tier, from, to)) {
        const DeviceId relay = relays != nullptr ? relays->between(from, to) : from.device;
        const HopLatency first = relay == from.device ? HopLatency{} : flow.hop(from.device, relay);
        slowest = greatest(slowest, first + flow.hop(relay, to.device));
        any = true;
      }
    }
    latency += slowest;
    slowest_of_all = greatest(slowest_of_all, slowest);
    steps += any ? 1 : 0;
  }
  if (steps == 0) {
    return {};
  }
  latency.nccl = slowest_of_all.nccl; // no send of the library waits for another
  const auto size = static_cast<double>(all.size());
  return {flow.finish(1 / size, latency, static_cast<double>(steps) / size)};
}

} // namespace

std::string why_no_pairs(CollectiveKind kind, const RankMap& ranks, Router& router) {
  if (kind != CollectiveKind::all_to_all) {
    return "pairs carry all-to-alls only";
  }
  return torus_grid(ranks, router) ? "its ranks are a grid of a torus, which carries their pairs" : "";
}

// The network and the links inside nodes carry their pairs beside each other, each as fast as it can. Where data on its
// way to the network crosses the links inside, too, all pairs are one flow.
Flows pairs_flows(CollectiveKind, const RankMap& ranks, Router& router) {
  std::vector<Place> all;
  for (std::size_t node = 0; node < ranks.nodes.size(); ++node) {
    for (const DeviceId device : ranks.nodes[node]) {
      all.push_back({device, node});
    }
  }
  Relays relays(ranks, router);
  const auto is_relayed = [&](const Place& from, const Place& to) { return relays.between(from, to) != from.device; };
  const bool any = std::any_of(all.begin(), all.end(), [&](const Place& from) {
    return std::any_of(all.begin(), all.end(), [&](const Place& to) { return is_relayed(from, to); });
  });
  if (any) {
    return pairs_of(all, Tier::both, ranks.lie(), &relays, router);
  }
  Flows flows = pairs_of(all, Tier::across, ranks.lie(), nullptr, router);
  for (CoupledFlow& flow : pairs_of(all, Tier::inside, ranks.lie(), nullptr, router)) {
    flow.beside = !flows.empty();
    flows.push_back(std::move(flow));
  }
  return flows;
}

} // namespace stagecraft
