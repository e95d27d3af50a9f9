// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/device_speeds.hpp"

#include <charconv>
#include <map>

namespace stagecraft {
namespace {

struct Scaled {
  DeviceType original;
  double speed = 1;
};

// Divides the inner model's time on the original type by the speed: exact for every cost model.
class ScaledCost : public CostModel {
public:
  ScaledCost(const CostModel& inner, std::map<std::string, Scaled> types) : inner_(inner), types_(std::move(types)) {}

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    const auto scaled = types_.find(type.name);
    if (scaled == types_.end()) {
      return inner_.time(op, type, samples, precision);
    }
    const auto time = inner_.time(op, scaled->second.original, samples, precision);
    const double factor = 1 / scaled->second.speed;
    return time ? std::optional(OperatorTime{time->forward * factor, time->backward_input * factor,
                                             time->backward_weight * factor})
                : time;
  }

  // A shard of a scaled time is extrapolated (time_of_shard), which takes no less per sample than the whole.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    const auto scaled = types_.find(type.name);
    const bool is_scaled = scaled != types_.end();
    const double speed = is_scaled ? scaled->second.speed : 1;
    const OperatorTime gaps{part.gaps.forward * speed, part.gaps.backward_input * speed,
                            part.gaps.backward_weight * speed};
    auto least = inner_.least_time(op, is_scaled ? scaled->second.original : type, precision, {part.samples, 1, gaps});
    if (least && is_scaled) {
      const double factor = 1 / speed;
      least->each = {least->each.forward * factor, least->each.backward_input * factor,
                     least->each.backward_weight * factor};
      least->all = least->all * factor;
    }
    return least;
  }

  bool alike(OperatorId a, OperatorId b) const override { return inner_.alike(a, b); }

  OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const override {
    const auto scaled = types_.find(type.name);
    return inner_.error(op, scaled == types_.end() ? type : scaled->second.original, samples, precision);
  }

private:
  const CostModel& inner_;
  std::map<std::string, Scaled> types_; // by name of the scaled type
};

std::string scaled_name(const std::string& name, double speed) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, speed).ptr;
  return name + " at " + std::string(digits, end) + " of its speed";
}

DeviceType scaled_type(DeviceType type, double speed) {
  type.name = scaled_name(type.name, speed);
  for (auto& of_kind : type.rates) {
    for (auto& rate : of_kind) {
      rate = rate ? std::optional(*rate * speed) : rate;
    }
  }
  type.memory_bandwidth = type.memory_bandwidth * speed;
  type.launch_overhead = type.launch_overhead / speed;
  return type;
}

} // namespace

SpeedWorld at_speeds(const Platform& platform, const CostModel& cost, std::span<const double> speeds) {
  SpeedWorld world{platform, nullptr};
  std::map<std::string, Scaled> scaled;
  std::map<std::pair<int, double>, int> index;
  for (std::size_t d = 0; d < platform.devices.size(); ++d) {
    if (speeds[d] == 1) {
      continue;
    }
    const int type = platform.devices[d].type;
    const auto [slot, is_new] = index.try_emplace({type, speeds[d]}, static_cast<int>(world.platform.types.size()));
    if (is_new) {
      world.platform.types.push_back(scaled_type(platform.types[type], speeds[d]));
      scaled[world.platform.types.back().name] = {platform.types[type], speeds[d]};
    }
    world.platform.devices[d].type = slot->second;
  }
  world.cost = std::make_unique<ScaledCost>(cost, std::move(scaled));
  return world;
}

} // namespace stagecraft
