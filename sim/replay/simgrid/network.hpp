// The links of a batch of graphs in SimGrid. Only the module includes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simgrid/kernel/ProfileBuilder.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/replay/binding_links.hpp"
#include "sim/replay/speeds.hpp"

namespace stagecraft {

namespace sg = simgrid::s4u;

inline double clock_now() { return sg::Engine::get_clock(); }

// The links of all graphs of a batch, and one sending host per distinct way; on the way of a flow are the links that
// may bind it, of a graph that SimGrid runs as a whole (`computes`) all. A star zone takes any list of links as a
// host's route out, so every topology fits, and nothing grows with the pairs of devices. It drops a link that stands in
// the list again, so a coupled flow that crosses a link several times has a zone of two hosts for itself. Graphs of
// several platforms share the links of equal numbers, which take the bandwidths of a platform before its graph runs.
class Network {
public:
  Network(std::span<const ReplayRequest> requests, bool computes) {
    zone_ = sg::create_star_zone("network");
    sink_ = zone_->create_host("sink", 1.0);
    zone_->add_route(sink_->get_netpoint(), nullptr, nullptr, nullptr, std::vector<sg::LinkInRoute>{}, false);
    zone_->add_route(nullptr, sink_->get_netpoint(), nullptr, nullptr, std::vector<sg::LinkInRoute>{}, false);
    for (const ReplayRequest& request : requests) {
      links_.resize(std::max(links_.size(), request.platform.links.size()), nullptr);
      add_ways(request, computes);
    }
    for (std::size_t request = 0; computes && request < requests.size(); ++request) {
      add_computers(requests[request], request);
    }
    zone_->seal();
  }

  /// One host per device of a request's graph; empty if computations are timers.
  std::vector<sg::Host*> computers(std::size_t request) const {
    return computers_.empty() ? std::vector<sg::Host*>{} : computers_[request];
  }

  /// The hosts at the two ends of each leg of a request's graph; of a leg without limits, nothing.
  struct Ends {
    sg::Host *sender = nullptr, *sink = nullptr;
  };
  const std::vector<Ends>& ends(std::size_t request) const { return ends_[request]; }

  /// Gives the links of a graph the bandwidths of its platform, in parts of a byte of which `scale` are one. No
  /// transfer may be under way.
  void adopt(const Platform& platform, const TaskGraph& graph, double scale) const {
    for (const Leg& leg : graph.legs) {
      for (const LinkId id : leg.links) {
        const double bandwidth = platform.links[id].bandwidth.value * scale;
        if (links_[id] != nullptr && !std::isinf(bandwidth) && links_[id]->get_bandwidth() != bandwidth) {
          links_[id]->set_bandwidth(bandwidth);
        }
      }
    }
  }

private:
  // One host per device. A host's speed is the largest that the device ever has; its profile holds fractions of that.
  void add_computers(const ReplayRequest& request, std::size_t number) {
    const Speeds speeds(request.graph, request.speeds);
    std::vector<sg::Host*>& hosts = computers_.emplace_back();
    for (std::size_t device = 0; device < request.graph.devices.size(); ++device) {
      const std::string name = "computer-" + std::to_string(number) + "-" + std::to_string(device);
      double largest = 1;
      const auto steps = speeds.constant() ? std::span<const Speeds::Step>{} : speeds.steps(device);
      for (const Speeds::Step& step : steps) {
        largest = std::max(largest, step.speed);
      }
      hosts.push_back(zone_->create_host(name, largest));
      if (!steps.empty()) {
        std::ostringstream profile;
        profile << std::setprecision(17);
        if (steps.front().at > 0) {
          profile << "0 " << 1 / largest << "\n";
        }
        for (const Speeds::Step& step : steps) {
          profile << step.at << " " << step.speed / largest << "\n";
        }
        hosts.back()->set_speed_profile(simgrid::kernel::profile::ProfileBuilder::from_string(name, profile.str(), -1));
      }
    }
  }

  // The links of a leg without those of infinite bandwidth.
  static std::vector<LinkId> limited_links(const Platform& platform, const Leg& leg) {
    std::vector<LinkId> limited;
    for (const LinkId id : leg.links) {
      if (!std::isinf(platform.links[id].bandwidth.value)) {
        limited.push_back(id);
      }
    }
    return limited;
  }

  void add_ways(const ReplayRequest& request, bool all) {
    const auto binding = all ? std::vector<std::vector<LinkId>>{} : binding_links(request.graph, request.platform);
    std::vector<Ends>& ends = ends_.emplace_back();
    for (std::size_t leg = 0; leg < request.graph.legs.size(); ++leg) {
      const Leg& one = request.graph.legs[leg];
      ends.push_back(std::isinf(one.bandwidth.value)
                         ? Ends{}
                         : ends_of_way(request.platform, all ? limited_links(request.platform, one) : binding[leg]));
    }
  }

  Ends ends_of_way(const Platform& platform, const std::vector<LinkId>& way) {
    const auto known = ends_of_way_.find(way);
    if (known != ends_of_way_.end()) {
      return known->second;
    }
    std::vector<sg::LinkInRoute> links;
    for (const LinkId id : way) {
      if (links_[id] == nullptr) {
        links_[id] = zone_->create_link("link-" + std::to_string(id), platform.links[id].bandwidth.value);
        links_[id]->set_latency(0); // a latency would change how flows share; a timer stands for it
      }
      links.emplace_back(links_[id]);
    }
    const std::string number = std::to_string(ends_of_way_.size());
    const bool repeats = std::adjacent_find(way.begin(), way.end()) != way.end();
    return ends_of_way_.emplace(way, repeats ? two_hosts(number, links) : Ends{sender(number, links), sink_})
        .first->second;
  }

  sg::Host* sender(const std::string& number, const std::vector<sg::LinkInRoute>& links) {
    sg::Host* host = zone_->create_host("sender-" + number, 1.0);
    zone_->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, links, false);
    return host;
  }

  Ends two_hosts(const std::string& number, const std::vector<sg::LinkInRoute>& links) {
    sg::NetZone* zone = sg::create_full_zone("coupled-" + number);
    zone->set_parent(zone_);
    const Ends ends{zone->create_host("sender-" + number, 1.0), zone->create_host("sink-" + number, 1.0)};
    zone->add_route(ends.sender->get_netpoint(), ends.sink->get_netpoint(), nullptr, nullptr, links, false);
    zone->seal();
    return ends;
  }

  sg::NetZone* zone_ = nullptr;
  sg::Host* sink_ = nullptr;
  std::vector<sg::Link*> links_;
  std::map<std::vector<LinkId>, Ends> ends_of_way_;
  std::vector<std::vector<Ends>> ends_;           // [request][leg of the graph]
  std::vector<std::vector<sg::Host*>> computers_; // [request][device of the graph]
};

} // namespace stagecraft
