// Reading device types: docs/formats/device.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/platform/load_platform.hpp"

namespace stagecraft {
namespace {

struct OriginRow {
  std::string_view name, help;
  Origin origin;
};
constexpr std::array kOrigins = {
    OriginRow{"measured", "fitted to measurements of the device", Origin::measured},
    OriginRow{"catalogue", "published figures, each with its source", Origin::catalogue},
    OriginRow{"made-up", "invented to stand for a class of devices", Origin::made_up},
};

using Rates = decltype(DeviceType::rates);
using Peaks = decltype(DeviceType::peak);

std::optional<FlopsPerSecond> optional_rate(yaml::Map& map, std::string_view key) {
  if (!map.has(key)) {
    return std::nullopt;
  }
  return map.quantity<FlopsPerSecond>(key, yaml::kPositive);
}

Peaks read_peaks(const yaml::Node* node) {
  Peaks peaks;
  if (node != nullptr) {
    yaml::Map map(*node, "peak");
    for (const PrecisionRow& row : kPrecisions) {
      peaks[static_cast<size_t>(row.precision)] = optional_rate(map, row.name);
    }
    map.finish();
  }
  return peaks;
}

std::vector<KernelKind> read_lacks(yaml::Map& map) {
  std::vector<KernelKind> lacks;
  for (const yaml::Node* item : map.list("lacks")) {
    const std::string& name = yaml::scalar(*item, "lacks");
    lacks.push_back(find_by_name(kKernelKinds, name, "kernel kind", item->where).kind);
  }
  return lacks;
}

// Matrix kernels reach a share of the peak of their precision, the others run at the speed of the vector units.
Rates nominal_rates(const Peaks& peaks, FlopsPerSecond vector, const yaml::Node* efficiency) {
  static const yaml::Node kNone{.kind = yaml::Node::Kind::map};
  yaml::Map shares(efficiency != nullptr ? *efficiency : kNone, "efficiency");
  Rates rates;
  for (const KernelKindRow& row : kKernelKinds) {
    auto& by_precision = rates[static_cast<size_t>(row.kind)];
    if (!row.matrix) {
      by_precision.fill(vector);
      continue;
    }
    const double share = shares.number(row.name, yaml::kFraction, 1);
    for (size_t precision = 0; precision < peaks.size(); ++precision) {
      if (peaks[precision]) {
        by_precision[precision] = *peaks[precision] * share;
      }
    }
  }
  shares.finish();
  return rates;
}

void override_rates(Rates& rates, const yaml::Node* node) {
  if (node == nullptr) {
    return;
  }
  yaml::Map kinds(*node, "rates");
  for (const KernelKindRow& kind : kKernelKinds) {
    if (const yaml::Node* given = kinds.find(kind.name)) {
      yaml::Map precisions(*given, "rates." + std::string(kind.name));
      for (const PrecisionRow& precision : kPrecisions) {
        if (const auto rate = optional_rate(precisions, precision.name)) {
          rates[static_cast<size_t>(kind.kind)][static_cast<size_t>(precision.precision)] = rate;
        }
      }
      precisions.finish();
    }
  }
  kinds.finish();
}

bool runs_matrix_kernels(const Rates& rates) {
  return std::any_of(kKernelKinds.begin(), kKernelKinds.end(), [&](const KernelKindRow& row) {
    const auto& by_precision = rates[static_cast<size_t>(row.kind)];
    return row.matrix && std::any_of(by_precision.begin(), by_precision.end(), [](auto& rate) { return rate; });
  });
}

void read_rates(yaml::Map& map, DeviceType& type) {
  type.peak = read_peaks(map.find("peak"));
  const auto vector = map.quantity<FlopsPerSecond>("vector", yaml::kPositive);
  type.rates = nominal_rates(type.peak, vector, map.find("efficiency"));
  override_rates(type.rates, map.find("rates"));
  for (const KernelKind kind : read_lacks(map)) {
    type.rates[static_cast<size_t>(kind)].fill(std::nullopt);
  }
  if (!runs_matrix_kernels(type.rates)) {
    throw InputError(map.where("peak"), "the device runs no matrix kernel at all; give 'peak' or 'rates' for one that "
                                        "is not in 'lacks'");
  }
}

void read_power(const yaml::Node& node, DeviceType& type) {
  yaml::Map map(node, "power");
  type.idle = map.quantity<Watts>("idle", yaml::kNotNegative);
  type.busy = map.quantity<Watts>("busy", yaml::kNotNegative);
  if (type.busy < type.idle) {
    throw InputError(map.where("busy"), "'busy' is less than 'idle'; allowed: idle or more");
  }
  if (map.has("waiting")) {
    type.waiting = map.quantity<Watts>("waiting", yaml::kNotNegative);
    if (*type.waiting < type.idle || *type.waiting > type.busy) {
      throw InputError(map.where("waiting"), "'waiting' is not between 'idle' and 'busy'; allowed: idle to busy");
    }
  }
  map.finish();
}

const yaml::Node* find_dotted(const yaml::Node& root, std::string_view key) {
  const yaml::Node* at = &root;
  while (at != nullptr) {
    const size_t dot = key.find('.');
    at = at->find(key.substr(0, dot));
    if (dot == std::string_view::npos) {
      break;
    }
    key.remove_prefix(dot + 1);
  }
  return at;
}

// Sources are for readers; only that each belongs to a value of the file is checked.
void check_sources(const yaml::Node& document, const yaml::Node* sources) {
  if (sources == nullptr) {
    return;
  }
  const yaml::Map must_be_mapping(*sources, "sources");
  for (const yaml::Node::Entry& entry : sources->entries) {
    yaml::scalar(entry.value, entry.key);
    if (find_dotted(document, entry.key) == nullptr) {
      throw InputError(entry.where, "source of '" + entry.key.substr(0, 60) +
                                        "', which the device type does not give; allowed: keys above, 'peak.fp16'");
    }
  }
}

} // namespace

DeviceType load_device_type(const yaml::Node& document) {
  yaml::Map map(document, "device type");
  DeviceType type;
  type.name = map.text("name");
  if (type.name.empty()) {
    throw InputError(map.where("name"), "'name' is empty");
  }
  type.vendor = map.text("vendor");
  type.origin = map.choice("origin", kOrigins).origin;
  map.text("description", "");
  type.memory = map.quantity<Bytes>("memory", yaml::kPositive);
  const double reached = map.number("memory_efficiency", yaml::kFraction, 1);
  type.memory_bandwidth = map.quantity<BytesPerSecond>("memory_bandwidth", yaml::kPositive) * reached;
  type.launch_overhead = map.quantity<Seconds>("launch_overhead", yaml::kNotNegative);
  read_power(map.node("power"), type);
  type.price = map.quantity<DollarsPerSecond>("price", yaml::kNotNegative, DollarsPerSecond{0});
  read_rates(map, type);
  check_sources(document, map.find("sources"));
  map.finish();
  return type;
}

DeviceTypeSource device_types_in(const std::filesystem::path& folder) {
  return [folder](const std::string& name, const Where& where) {
    std::vector<std::string> known;
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
      if (entry.path().extension() == ".yaml") {
        known.push_back(entry.path().stem().string());
      }
    }
    // Only listed names are opened: a name such as ../x never leaves the folder.
    std::sort(known.begin(), known.end());
    if (!std::binary_search(known.begin(), known.end(), name)) {
      throw InputError(where, unknown_name("device type", name, known));
    }
    return yaml::load(folder / (name + ".yaml"));
  };
}

} // namespace stagecraft
