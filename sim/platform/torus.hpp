// Ways through a torus.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Where a device stands in a torus; `torus` is -1 where it is in none.
struct TorusPlace {
  int torus = -1; ///< index into Platform::tori
  int place = 0;  ///< index into Torus::devices
};
/// [DeviceId] of all devices of a platform.
std::vector<TorusPlace> torus_places(const Platform& platform);

/// How far a place is along each axis, outermost first.
std::vector<int> coordinates_of(const Torus& torus, int place);

/// The links from one place to another: along one axis after another, the last first, each the shorter way round. Of
/// two ways as short, places whose coordinates make an even sum go up, the others down, so that both carry as much.
std::vector<LinkId> way_through(const Torus& torus, int from, int to);

} // namespace stagecraft
