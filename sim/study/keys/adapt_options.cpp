// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/adapt_options.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

AdaptEvent read_event(const yaml::Node& node, int iterations, const Platform& platform) {
  yaml::Map map(node, "event");
  AdaptEvent event;
  event.iteration = map.integer("iteration", 0, iterations - 1);
  const Device& device = map.choice("device", platform.devices);
  event.device = static_cast<DeviceId>(&device - platform.devices.data());
  event.leaves = map.boolean("leaves", false);
  if (event.leaves == map.has("speed")) {
    throw InputError(node.where, "an event is one change; allowed: 'speed', or 'leaves: true'");
  }
  event.speed = map.number("speed", kSpeed, 1);
  map.finish();
  return event;
}

} // namespace

std::optional<AdaptOptions> read_adapt(yaml::Map& study, const Platform& platform) {
  const yaml::Node* node = study.find("adapt");
  if (node == nullptr) {
    return std::nullopt;
  }
  yaml::Map adapt(*node, "adapt");
  AdaptOptions options;
  constexpr int kMostIterations = 1'000'000;
  options.iterations = adapt.integer("iterations", 1, kMostIterations, options.iterations);
  options.round_iterations = adapt.integer("round_iterations", 1, kMostIterations, options.round_iterations);
  options.schedule = &adapt.choice("schedule", schedules(), "1f1b");
  options.jitter = adapt.number("jitter", {0, 0.5, true, "0 to 0.5"}, 0);
  for (const yaml::Node* event : adapt.list("events")) {
    options.events.push_back(read_event(*event, options.iterations, platform));
  }
  std::stable_sort(options.events.begin(), options.events.end(),
                   [](const AdaptEvent& a, const AdaptEvent& b) { return a.iteration < b.iteration; });
  adapt.finish();
  return options;
}

std::vector<double> read_beliefs(yaml::Map& study, const Platform& platform) {
  std::vector<double> speeds(platform.devices.size(), 1.0);
  const yaml::Node* node = study.find("believed");
  if (node == nullptr) {
    return speeds;
  }
  yaml::Map believed(*node, "believed");
  yaml::Map of_types(believed.node("device_speed"), "device_speed");
  for (const DeviceType& type : platform.types) {
    const double speed = of_types.number(type.name, kSpeed, 1);
    for (std::size_t d = 0; d < speeds.size(); ++d) {
      speeds[d] = platform.devices[d].type == &type - platform.types.data() ? speed : speeds[d];
    }
  }
  of_types.finish();
  believed.finish();
  return speeds;
}

} // namespace stagecraft
