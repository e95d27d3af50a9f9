// Who is alike in a plan: devices, links, and what connects them, by colour refinement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/likeness/colours.hpp"
#include "sim/platform/platform.hpp"

namespace stagecraft {

/// A replica of a stage: devices that wait for each other, by rank.
struct LikenessCell {
  Colour colour = 0;
  std::vector<std::int32_t> devices;
  std::vector<std::pair<LinkId, Colour>> links; ///< that they exchange data over, and as what
};

/// A transfer from one cell's device to another's.
struct LikenessFlow {
  Colour colour = 0;
  std::int32_t sender = 0, receiver = 0; ///< devices
  std::int32_t from_cell = 0, to_cell = 0;
  std::vector<LinkId> links; ///< in the order in which it crosses them
};

/// What many devices exchange together.
struct LikenessCollective {
  Colour colour = 0;
  std::vector<std::int32_t> members;            ///< devices
  std::vector<std::pair<LinkId, Colour>> links; ///< and how often they are crossed, or a colour of that
};

/// Colours, to begin with, of devices and links, and all that connects them; devices are numbered from 0.
struct Likeness {
  std::vector<Colour> devices;
  std::vector<Colour> links; ///< [LinkId]
  std::vector<LikenessCell> cells;
  std::vector<LikenessFlow> flows;
  std::vector<LikenessCollective> collectives;
};

/// Colours everything anew by what it is connected to, until no class is split any more (Weisfeiler, Leman 1968). Then
/// any two of one colour see as many of each colour in each relation: the partition is equitable.
void refine(Likeness& likeness);

} // namespace stagecraft
