// Reading the `loader` mapping of a study.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/loader.hpp"

#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/named_table.hpp"

namespace stagecraft {
namespace {

std::optional<int> read_count(yaml::Map& map, std::string_view key) {
  constexpr int kMost = 10'000;
  if (map.text(key, "auto") == "auto") {
    return std::nullopt;
  }
  return map.integer(key, 1, kMost);
}

// Reads the time per sample on one core, or the work, which a core's speed turns into time.
void read_decode(yaml::Map& map, Loader& loader) {
  const yaml::Node* node = map.find("decode");
  if (node == nullptr) {
    return;
  }
  if (yaml::scalar(*node, "decode").ends_with("FLOP")) {
    loader.decode_work = yaml::quantity<Flops>(*node, "decode", physical::kWork);
  } else {
    loader.decode = yaml::quantity<Seconds>(*node, "decode", yaml::kDelay);
  }
}

} // namespace

Loader load_loader(const yaml::Node& node) {
  yaml::Map map(node, "loader");
  Loader loader;
  loader.workers = read_count(map, "workers");
  loader.queue = read_count(map, "queue");
  loader.bytes_per_sample = map.quantity<Bytes>("bytes_per_sample", physical::kSize, Bytes{0});
  read_decode(map, loader);
  loader.host = map.choice("host", kHostWaits, "spin").wait;
  map.finish();
  return loader;
}

} // namespace stagecraft
