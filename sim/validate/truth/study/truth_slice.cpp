// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/study/truth_slice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

// Google Cloud TPU documentation, system architecture of each: axes of the torus, and the chips of the largest slice.
struct Pod {
  std::string_view family;
  std::size_t axes;
  int chips;
};
constexpr std::array kPods = {
    Pod{"tpu-v4", 3, 4096},  Pod{"tpu-v5e", 2, 256},  Pod{"tpu-v6e", 2, 256},
    Pod{"tpu-v5p", 3, 6144}, Pod{"tpu-v7x", 3, 9216},
};

const Pod* pod_of(const std::string& device) {
  const auto found =
      std::find_if(kPods.begin(), kPods.end(), [&](const Pod& one) { return device.starts_with(one.family); });
  return found == kPods.end() ? nullptr : &*found;
}

// The largest factors first, each on the axis that is the shortest.
std::vector<int> axes_of(int chips, std::size_t axes) {
  std::vector<int> factors;
  for (int factor = 2; chips > 1; ++factor) {
    for (; chips % factor == 0; chips /= factor) {
      factors.push_back(factor);
    }
  }
  std::vector<int> sizes(axes, 1);
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    *std::min_element(sizes.begin(), sizes.end()) *= *factor;
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// The host of a slice stands for all of its hosts, each of which has some of the chips.
void scale_host(yaml::Node& node, double factor) {
  constexpr int kDecimals = 3;
  for (const std::string_view key :
       {"host.cores", "host.memory", "host.memory_bandwidth", "host.disk_bandwidth", "host.power.idle"}) {
    if (const yaml::Node* shipped = yaml::find(node, key)) {
      char* unit = nullptr;
      const double all = factor * std::strtod(shipped->text.c_str(), &unit);
      const bool counts = *unit == '\0'; // cores, which are whole
      yaml::set(node, key, (counts ? to_text(std::ceil(all), 0) : to_text(all, kDecimals)) + unit, {"platform", 0, 0});
    }
  }
}

} // namespace

int chips_of_slice(const std::string& device, const TruthRow& row, int chips) {
  const Pod* const pod = pod_of(device);
  if (pod == nullptr) {
    return 0;
  }
  const int stated = number_after(row.note, "slices=");
  const bool divides = stated > 0 && chips % stated == 0 && chips / stated <= pod->chips;
  int slices = divides ? stated : (chips + pod->chips - 1) / pod->chips;
  while (chips % slices != 0) {
    ++slices;
  }
  return chips / slices;
}

std::string shape_slice(yaml::Node& node, const std::string& device, int chips) {
  constexpr int kRing = 16, kCube = 4;
  const Where where{"platform", 0, 0};
  const yaml::Node* shipped = node.find("devices")->items.front().find("count");
  scale_host(node, static_cast<double>(chips) / std::atoi(shipped->text.c_str()));
  yaml::set(node, "devices.0.count", std::to_string(chips), where);
  const std::vector<int> sizes = axes_of(chips, pod_of(device)->axes);
  const bool of_cubes = std::all_of(sizes.begin(), sizes.end(), [](int size) { return size % kCube == 0; });
  std::string shape, wraps, words;
  for (const int size : sizes) {
    words += (words.empty() ? "" : " x ") + std::to_string(size);
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    const bool wrapped = sizes.size() == 2 ? size == kRing : of_cubes;
    wraps += std::string(wraps.empty() ? "" : ", ") + (wrapped ? "true" : "false");
  }
  yaml::set(node, "links.0.shape", "[" + shape + "]", where);
  yaml::set(node, "links.0.wraparound", "[" + wraps + "]", where);
  return words;
}

} // namespace stagecraft
