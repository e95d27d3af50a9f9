// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/torus.hpp"

#include <numeric>

namespace stagecraft {

std::vector<TorusPlace> torus_places(const Platform& platform) {
  std::vector<TorusPlace> places(platform.devices.size());
  for (std::size_t torus = 0; torus < platform.tori.size(); ++torus) {
    for (std::size_t place = 0; place < platform.tori[torus].devices.size(); ++place) {
      const auto device = static_cast<std::size_t>(platform.tori[torus].devices[place]);
      places[device] = {static_cast<int>(torus), static_cast<int>(place)};
    }
  }
  return places;
}

std::vector<int> coordinates_of(const Torus& torus, int place) {
  std::vector<int> coordinates(torus.axes.size());
  for (std::size_t axis = torus.axes.size(); axis-- > 0; place /= torus.axes[axis].size) {
    coordinates[axis] = place % torus.axes[axis].size;
  }
  return coordinates;
}

namespace {

// Steps up an axis, below 0 down it.
int steps_along(const Torus::Axis& axis, int from, int to, bool up_if_equal) {
  const int direct = to - from;
  if (!axis.wraps) {
    return direct;
  }
  const int up = (direct + axis.size) % axis.size, down = axis.size - up;
  return up < down || (up == down && up_if_equal) ? up : -down;
}

} // namespace

std::vector<LinkId> way_through(const Torus& torus, int from, int to) {
  const std::vector<int> begin = coordinates_of(torus, from), end = coordinates_of(torus, to);
  const bool even = std::accumulate(begin.begin(), begin.end(), 0) % 2 == 0;
  std::vector<LinkId> links;
  int place = from, stride = 1;
  for (std::size_t axis = torus.axes.size(); axis-- > 0; stride *= torus.axes[axis].size) {
    const int size = torus.axes[axis].size;
    int at = begin[axis];
    for (int steps = steps_along(torus.axes[axis], at, end[axis], even); steps != 0;) {
      const bool up = steps > 0;
      links.push_back(torus.link(place, axis, up));
      const int next = (at + (up ? 1 : size - 1)) % size;
      place += (next - at) * stride;
      at = next;
      steps += up ? -1 : 1;
    }
  }
  return links;
}

} // namespace stagecraft
