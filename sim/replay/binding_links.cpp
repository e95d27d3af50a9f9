// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/binding_links.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stagecraft {
namespace {

// A leg crosses a link so often.
struct Crossing {
  std::int32_t leg, times;
};

// A limited link that legs cross.
struct Crossed {
  LinkId link;
  double bandwidth;                // B/s
  std::vector<Crossing> crossings; // by leg, ascending
  std::uint64_t marks = 0;         // of the legs, a bit each: a link without one of another's does not cover it
};

std::uint64_t mark_of(std::int32_t leg) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U; // 2^64 over the golden ratio, which spreads neighbours
  constexpr unsigned kShift = 58;
  return std::uint64_t{1} << (static_cast<std::uint64_t>(leg) * kGolden >> kShift);
}

class Shadows {
public:
  Shadows(const TaskGraph& graph, const Platform& platform) : number_of_(platform.links.size(), kUnlimited) {
    for (std::size_t leg = 0; leg < graph.legs.size(); ++leg) {
      for (const LinkId link : graph.legs[leg].links) {
        add(static_cast<std::int32_t>(leg), link, platform.links[static_cast<std::size_t>(link)].bandwidth.value);
      }
    }
    for (std::size_t one = 0; one < crossed_.size(); ++one) {
      in_shadow_.push_back(is_in_shadow(one, graph) ? 1 : 0);
    }
  }

  bool binds(LinkId link) const {
    const std::int32_t number = number_of_[static_cast<std::size_t>(link)];
    return number != kUnlimited && in_shadow_[static_cast<std::size_t>(number)] == 0;
  }

private:
  static constexpr std::int32_t kUnlimited = -1;

  void add(std::int32_t leg, LinkId link, double bandwidth) {
    if (std::isinf(bandwidth)) {
      return;
    }
    std::int32_t& number = number_of_[static_cast<std::size_t>(link)];
    if (number == kUnlimited) {
      number = static_cast<std::int32_t>(crossed_.size());
      crossed_.push_back({link, bandwidth, {}});
    }
    crossed_[static_cast<std::size_t>(number)].marks |= mark_of(leg);
    std::vector<Crossing>& crossings = crossed_[static_cast<std::size_t>(number)].crossings;
    if (crossings.empty() || crossings.back().leg != leg) {
      crossings.push_back({leg, 0});
    }
    ++crossings.back().times;
  }

  // What throws a shadow on a link is on the way of every leg that crosses it, so on the shortest.
  bool is_in_shadow(std::size_t one, const TaskGraph& graph) const {
    const auto way_of = [&](const Crossing& crossing) -> const std::vector<LinkId>& {
      return graph.legs[static_cast<std::size_t>(crossing.leg)].links;
    };
    const std::vector<Crossing>& crossings = crossed_[one].crossings;
    const std::vector<LinkId>& way =
        way_of(*std::min_element(crossings.begin(), crossings.end(), [&](const Crossing& a, const Crossing& b) {
          return way_of(a).size() < way_of(b).size();
        }));
    return std::any_of(way.begin(), way.end(), [&](LinkId link) {
      const std::int32_t other = number_of_[static_cast<std::size_t>(link)];
      return other != kUnlimited && throws_shadow(static_cast<std::size_t>(other), one);
    });
  }

  // Of links that are crossed alike and equally wide, the first throws a shadow on the others.
  bool throws_shadow(std::size_t narrow, std::size_t wide) const {
    const Crossed& over = crossed_[narrow];
    const Crossed& under = crossed_[wide];
    if (narrow == wide || (under.marks & ~over.marks) != 0 || over.bandwidth > under.bandwidth ||
        over.crossings.size() < under.crossings.size()) {
      return false;
    }
    const bool covers = std::all_of(under.crossings.begin(), under.crossings.end(), [&](const Crossing& crossing) {
      const auto its = std::lower_bound(over.crossings.begin(), over.crossings.end(), crossing.leg,
                                        [](const Crossing& known, std::int32_t leg) { return known.leg < leg; });
      return its != over.crossings.end() && its->leg == crossing.leg && its->times >= crossing.times;
    });
    return covers && (narrow < wide || !throws_back(under, over));
  }

  // Whether a link that is crossed wherever `under` is, is crossed no more often and is no narrower.
  static bool throws_back(const Crossed& under, const Crossed& over) {
    return under.bandwidth == over.bandwidth &&
           std::equal(under.crossings.begin(), under.crossings.end(), over.crossings.begin(), over.crossings.end(),
                      [](const Crossing& a, const Crossing& b) { return a.leg == b.leg && a.times == b.times; });
  }

  std::vector<std::int32_t> number_of_; // [link]: in crossed_, or kUnlimited
  std::vector<Crossed> crossed_;
  std::vector<char> in_shadow_; // [number]
};

} // namespace

std::vector<std::vector<LinkId>> binding_links(const TaskGraph& graph, const Platform& platform) {
  const Shadows shadows(graph, platform);
  std::vector<std::vector<LinkId>> binding;
  binding.reserve(graph.legs.size());
  for (const Leg& leg : graph.legs) {
    std::vector<LinkId>& links = binding.emplace_back();
    std::copy_if(leg.links.begin(), leg.links.end(), std::back_inserter(links),
                 [&](LinkId link) { return shadows.binds(link); });
  }
  return binding;
}

} // namespace stagecraft
