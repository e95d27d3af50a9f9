// Random models and platforms for laws of every run, the same for the same seed everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "tests/study/studies.hpp"

namespace stagecraft::test {

inline constexpr int kLayers = 8; ///< of long-chain.yaml

/// The chain of eight operators with other times and tensors.
inline std::vector<Setting> random_chain(std::mt19937& random) {
  std::vector<Setting> settings;
  const auto drawn = [&](int most) { return std::to_string(1 + static_cast<int>(random() % most)); };
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string key = "model.layers." + std::to_string(layer) + ".";
    settings.push_back({key + "forward_time", drawn(20) + " ms"});
    settings.push_back({key + "backward_time", drawn(40) + " ms"});
    settings.push_back({key + "output", drawn(3'000'000)});
    settings.push_back({key + "parameters", drawn(2'000'000)});
  }
  return settings;
}

template <class Choices> const auto& any_of(const Choices& choices, std::mt19937& random) {
  return choices[random() % choices.size()];
}

/// The layers of shapes.yaml with other sizes.
inline std::vector<Setting> random_shapes(std::mt19937& random) {
  const auto positions = std::array{1, 7, 64, 100, 512, 1024};
  const auto features = std::array{64, 96, 1000, 1024, 4096};
  const std::string width = std::to_string(any_of(features, random));
  std::vector<Setting> settings = {
      {"model.input.shape", "[" + std::to_string(any_of(positions, random)) + ", " + width + "]"}};
  for (const int layer : {0, 2, 5}) {
    settings.push_back(
        {"model.layers." + std::to_string(layer) + ".features", std::to_string(any_of(features, random))});
  }
  return settings;
}

/// The two nodes of two-nodes.yaml with devices of one or two of these types, and other links.
inline std::vector<Setting> random_nodes(const std::vector<std::string>& types, std::mt19937& random) {
  const auto bandwidths = std::array{"1 GB/s", "25 GB/s", "400 GB/s"};
  const auto latencies = std::array{"0 s", "5 us", "1 ms"};
  std::vector<Setting> settings = {{"platform.network.bandwidth", any_of(bandwidths, random)},
                                   {"platform.network.latency", any_of(latencies, random)}};
  for (const int node : {0, 1}) {
    const std::string key = "platform.nodes." + std::to_string(node) + ".";
    settings.push_back({key + "devices.0.type", any_of(types, random)});
    settings.push_back({key + "devices.0.count", std::to_string(1 + random() % 3)});
    settings.push_back({key + "links.0.bandwidth", any_of(bandwidths, random)});
  }
  return settings;
}

} // namespace stagecraft::test
