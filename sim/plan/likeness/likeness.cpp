// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/likeness/likeness.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr Colour kSends = 1, kReceives = 2, kTakesPart = 3, kStandsIn = 4;

class Refinement {
public:
  explicit Refinement(Likeness& likeness) : all_(likeness) {
    std::vector<char> crossed(all_.links.size(), 0);
    const auto cross = [&](LinkId link) { crossed[static_cast<std::size_t>(link)] = 1; };
    for (const LikenessCell& cell : all_.cells) {
      std::for_each(cell.links.begin(), cell.links.end(), [&](const auto& use) { cross(use.first); });
      cells_.push_back(cell.colour);
    }
    for (const LikenessFlow& flow : all_.flows) {
      std::for_each(flow.links.begin(), flow.links.end(), cross);
      flows_.push_back(flow.colour);
    }
    for (const LikenessCollective& collective : all_.collectives) {
      std::for_each(collective.links.begin(), collective.links.end(), [&](const auto& use) { cross(use.first); });
      collectives_.push_back(collective.colour);
    }
    for (std::size_t link = 0; link < crossed.size(); ++link) {
      if (crossed[link] != 0) {
        crossed_.push_back(static_cast<LinkId>(link));
      }
    }
  }

  void run() {
    for (std::size_t classes = 0, before = 0; classes == 0 || classes > before;) {
      before = classes;
      colour_connections();
      colour_ends();
      classes = count();
    }
  }

private:
  Colour link(LinkId id) const { return all_.links[static_cast<std::size_t>(id)]; }
  Colour device(std::int32_t number) const { return all_.devices[static_cast<std::size_t>(number)]; }

  // Cells, flows and collectives by their ends and links.
  void colour_connections() {
    for (std::size_t at = 0; at < all_.cells.size(); ++at) {
      LikenessCell& cell = all_.cells[at];
      cell.colour = cells_[at];
      for (const std::int32_t one : cell.devices) {
        cell.colour = mixed(cell.colour, device(one));
      }
      Colour sum = 0;
      for (const auto& [id, use] : cell.links) {
        sum += mixed(link(id), use);
      }
      cell.colour = mixed(cell.colour, sum);
    }
    for (std::size_t at = 0; at < all_.flows.size(); ++at) {
      LikenessFlow& flow = all_.flows[at];
      flow.colour = mixed(mixed(flows_[at], device(flow.sender)), device(flow.receiver));
      flow.colour = mixed(mixed(flow.colour, all_.cells[static_cast<std::size_t>(flow.from_cell)].colour),
                          all_.cells[static_cast<std::size_t>(flow.to_cell)].colour);
      for (const LinkId id : flow.links) {
        flow.colour = mixed(flow.colour, link(id));
      }
    }
    for (std::size_t at = 0; at < all_.collectives.size(); ++at) {
      LikenessCollective& collective = all_.collectives[at];
      Colour sum = 0;
      for (const std::int32_t member : collective.members) {
        sum += mixed(kTakesPart, device(member));
      }
      for (const auto& [id, crossings] : collective.links) {
        sum += mixed(link(id), crossings);
      }
      collective.colour = mixed(collectives_[at], sum);
    }
  }

  // Devices and links by what connects them to others.
  void colour_ends() {
    std::vector<Colour> of_device(all_.devices.size(), 0), of_link(all_.links.size(), 0);
    const auto to_device = [&](std::int32_t number, Colour colour) {
      of_device[static_cast<std::size_t>(number)] += colour;
    };
    const auto to_link = [&](LinkId id, Colour colour) { of_link[static_cast<std::size_t>(id)] += colour; };
    for (const LikenessCell& cell : all_.cells) {
      for (std::size_t rank = 0; rank < cell.devices.size(); ++rank) {
        to_device(cell.devices[rank], mixed(mixed(kStandsIn, cell.colour), static_cast<Colour>(rank)));
      }
      for (const auto& [id, use] : cell.links) {
        to_link(id, mixed(cell.colour, use));
      }
    }
    for (const LikenessFlow& flow : all_.flows) {
      to_device(flow.sender, mixed(kSends, flow.colour));
      to_device(flow.receiver, mixed(kReceives, flow.colour));
      for (std::size_t at = 0; at < flow.links.size(); ++at) {
        to_link(flow.links[at], mixed(flow.colour, static_cast<Colour>(at)));
      }
    }
    for (const LikenessCollective& collective : all_.collectives) {
      for (const std::int32_t member : collective.members) {
        to_device(member, mixed(kTakesPart, collective.colour));
      }
      for (const auto& [id, crossings] : collective.links) {
        to_link(id, mixed(mixed(kTakesPart, collective.colour), crossings));
      }
    }
    for (std::size_t number = 0; number < all_.devices.size(); ++number) {
      all_.devices[number] = mixed(all_.devices[number], of_device[number]);
    }
    for (const LinkId id : crossed_) {
      all_.links[static_cast<std::size_t>(id)] = mixed(link(id), of_link[static_cast<std::size_t>(id)]);
    }
  }

  // Colours of devices and of crossed links. A colour holds the one before it, so classes are never joined.
  std::size_t count() const {
    std::vector<Colour> colours = all_.devices;
    colours.reserve(colours.size() + crossed_.size());
    std::transform(crossed_.begin(), crossed_.end(), std::back_inserter(colours), [&](LinkId id) { return link(id); });
    std::sort(colours.begin(), colours.end());
    return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
  }

  Likeness& all_;
  std::vector<Colour> cells_, flows_, collectives_; // to begin with
  std::vector<LinkId> crossed_;
};

} // namespace

void refine(Likeness& likeness) { Refinement(likeness).run(); }

} // namespace stagecraft
