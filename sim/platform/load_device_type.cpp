// Reading device types: docs/formats/device.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/platform/scale_device.hpp"

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
  return map.quantity<FlopsPerSecond>(key, physical::kSpeed);
}

Peaks read_peaks(const yaml::Node* node) {
  Peaks peaks;
  if (node != nullptr) {
    yaml::Map map(*node, "peak");
    for (const PrecisionRow& row : kNumberFormats) {
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

// Rates of matrix kernels are a share of the peak of their precision; the others run at a share of the speed of the
// vector units.
Rates nominal_rates(const Peaks& peaks, FlopsPerSecond vector, const yaml::Node* efficiency) {
  static const yaml::Node kNone{.kind = yaml::Node::Kind::map};
  yaml::Map shares(efficiency != nullptr ? *efficiency : kNone, "efficiency");
  Rates rates;
  for (const KernelKindRow& row : kKernelKinds) {
    auto& by_precision = rates[static_cast<size_t>(row.kind)];
    const double share = multiplies(row.kind) ? shares.number(row.name, yaml::kFraction, row.share) : 1;
    if (!row.matrix) {
      by_precision.fill(vector * share);
      continue;
    }
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
      for (const PrecisionRow& precision : kNumberFormats) {
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
  const auto vector = map.quantity<FlopsPerSecond>("vector", physical::kSpeed);
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

Clocks read_clocks(const yaml::Node& node, const DeviceType& type) {
  yaml::Map map(node, "clocks");
  Clocks clocks{.fixed = map.quantity<Watts>("fixed", physical::kPower),
                .full = map.quantity<Watts>("full", physical::kPower, type.busy)};
  clocks.knee = map.number("knee", yaml::kFraction, clocks.knee);
  clocks.voltage = map.number("voltage", yaml::kFraction, clocks.voltage);
  clocks.memory_clock = map.number("memory_clock", yaml::kFraction, clocks.memory_clock);
  map.finish();
  if (clocks.fixed >= type.busy || clocks.fixed >= clocks.full) {
    throw InputError(map.where("fixed"), "'fixed' is not below 'busy' and 'full'; allowed: less than both");
  }
  return clocks;
}

std::vector<std::string> read_models(yaml::Map& map) {
  std::vector<std::string> models;
  for (const yaml::Node* model : map.list("calibrated_on")) {
    models.push_back(yaml::scalar(*model, "calibrated_on"));
  }
  return models;
}

void read_power(const yaml::Node& node, DeviceType& type) {
  yaml::Map map(node, "power");
  type.idle = map.quantity<Watts>("idle", physical::kPower);
  type.busy = map.quantity<Watts>("busy", physical::kPower);
  if (type.busy < type.idle) {
    throw InputError(map.where("busy"), "'busy' is less than 'idle'; allowed: idle or more");
  }
  if (map.has("waiting")) {
    type.waiting = map.quantity<Watts>("waiting", physical::kPower);
    if (*type.waiting < type.idle || *type.waiting > type.busy) {
      throw InputError(map.where("waiting"), "'waiting' is not between 'idle' and 'busy'; allowed: idle to busy");
    }
  }
  if (const yaml::Node* clocks = map.find("clocks")) {
    type.clocks = read_clocks(*clocks, type);
  }
  type.power_calibrated_on = read_models(map);
  map.finish();
}

// Checks only that each source belongs to a value of the file; its text is for people.
void check_sources(const yaml::Node& document, const yaml::Node* sources) {
  if (sources == nullptr) {
    return;
  }
  const yaml::Map must_be_mapping(*sources, "sources");
  for (const yaml::Node::Entry& entry : sources->entries) {
    yaml::scalar(entry.value, entry.key);
    if (yaml::find(document, entry.key) == nullptr) {
      throw InputError(entry.where,
                       "a source for '" + excerpt(entry.key) +
                           "', which this device type does not give; allowed: its keys, such as 'peak.fp16'");
    }
  }
}

// A roofline per precision: its matrix peak, or else the rate of the vector units, and the memory bandwidth.
std::array<Roofline, kNumberFormats.size()> rooflines_of(const DeviceType& type) {
  std::array<Roofline, kNumberFormats.size()> rooflines;
  for (const PrecisionRow& row : kNumberFormats) {
    const auto precision = static_cast<size_t>(row.precision);
    const auto vector = type.rates[static_cast<size_t>(KernelKind::elementwise)][precision];
    rooflines[precision] = {type.peak[precision].value_or(vector.value_or(FlopsPerSecond{1})), type.memory_bandwidth,
                            type.launch_overhead};
  }
  return rooflines;
}

// Measurements stand in the file itself or in one beside it.
void read_facts(const yaml::Node& node, KernelFits& fits) {
  const auto add = [&](const yaml::Node& document) {
    const Measurements measurements = read_measurements(document);
    const auto exact = measured_kernels(measurements);
    fits.measured.insert(fits.measured.end(), exact.begin(), exact.end());
  };
  const auto add_one = [&](const yaml::Node& one) {
    add(one.kind == yaml::Node::Kind::map ? one : yaml::load_beside(one, "measurements"));
  };
  if (node.kind == yaml::Node::Kind::sequence) {
    std::for_each(node.items.begin(), node.items.end(), add_one);
  } else {
    add_one(node);
  }
  std::stable_sort(fits.measured.begin(), fits.measured.end(), measured_before);
}

FitScale read_scale(yaml::Map& derived) {
  FitScale scale;
  yaml::Map map(derived.node("scale"), "scale");
  scale.flops = map.number("flops", physical::kFactor, 1);
  scale.memory_bandwidth = map.number("memory_bandwidth", physical::kFactor, 1);
  scale.launch = map.number("launch", physical::kFactor, 1);
  scale.processors = map.number("processors", physical::kFactor, 1);
  scale.copies = map.number("copies", physical::kFactor, 1);
  scale.collectives = map.number("collectives", physical::kFactor, 1);
  if (map.has("attention")) {
    scale.attention = map.number("attention", physical::kFactor);
  }
  map.finish();
  scale.error_floor = derived.number("error_floor", yaml::kFraction, 0.15);
  return scale;
}

bool shares_fits(const yaml::Node& document) {
  const yaml::Node* fits = document.find("fits");
  return fits != nullptr && fits->find("from") != nullptr;
}

// The document that the key `from` of a mapping names.
yaml::Node origin_document(yaml::Map& map, const DeviceTypeSource& source) {
  const std::string from = map.text("from");
  if (!source) {
    throw InputError(map.where("from"), "'" + from + "' cannot be looked up here; allowed: a device type in full");
  }
  return source(from, map.where("from"));
}

// The device type in full of that document.
DeviceType read_origin(yaml::Map& map, const yaml::Node& document, const DeviceTypeSource& source) {
  if (document.find("derived") != nullptr) {
    throw InputError(map.where("from"), "'" + map.text("from") + "' is derived itself; allowed: a device type in full");
  }
  return load_device_type(document, source);
}

// The fits of another device with the same chip, scaled. That one's are its own, so looking up ends.
KernelFits shared_fits(const yaml::Node& node, const DeviceTypeSource& source) {
  yaml::Map map(node, "fits");
  const std::string from = map.text("from");
  const yaml::Node document = origin_document(map, source);
  if (shares_fits(document)) {
    throw InputError(map.where("from"),
                     "'" + from + "' has the fits of another device itself; allowed: one with its own");
  }
  const DeviceType origin = read_origin(map, document, source);
  if (!origin.fits) {
    throw InputError(map.where("from"), "'" + from + "' has no fits; allowed: a device type with fits of its own");
  }
  KernelFits fits = *origin.fits;
  fits.scale = read_scale(map);
  map.finish();
  return fits;
}

void read_fits(yaml::Map& map, const DeviceTypeSource& source, DeviceType& type) {
  const yaml::Node* given = map.find("fits");
  const yaml::Node* facts = map.find("measurements");
  if (given != nullptr && given->kind == yaml::Node::Kind::map && given->find("from") != nullptr) {
    if (facts != nullptr) {
      throw InputError(map.where("measurements"), "'measurements' beside the fits of another device; allowed: fits of "
                                                  "its own");
    }
    type.fits = std::make_shared<const KernelFits>(shared_fits(*given, source));
    return;
  }
  if (given == nullptr && facts == nullptr) {
    return;
  }
  KernelFits fits = given != nullptr ? read_kernel_fits(*given) : KernelFits{};
  if (facts != nullptr) {
    read_facts(*facts, fits);
  }
  fits.rooflines = rooflines_of(type);
  type.fits = std::make_shared<const KernelFits>(std::move(fits));
}

// What the file leaves out is as given.
BesideExchange read_beside_exchange(yaml::Map& map, BesideExchange beside) {
  constexpr yaml::Range kTimesAsLong{1, 10, true, "1 to 10"};
  if (const yaml::Node* given = map.find("beside_exchange")) {
    yaml::Map factors(*given, "beside_exchange");
    beside.matrix = factors.number("matrix", kTimesAsLong, beside.matrix);
    beside.other = factors.number("other", kTimesAsLong, beside.other);
    factors.finish();
  }
  return beside;
}

DeviceType derive(yaml::Map& map, const DeviceTypeSource& source) {
  yaml::Map derived(map.node("derived"), "derived");
  DeviceType type = read_origin(derived, origin_document(derived, source), source);
  const FitScale scale = read_scale(derived);
  derived.finish();
  for (std::optional<FlopsPerSecond>& peak : type.peak) {
    peak = peak ? std::optional(*peak * scale.flops) : peak;
  }
  scale_kernels(type, scale);
  type.memory = map.quantity<Bytes>("memory", physical::kCapacity, type.memory);
  type.price = read_price(map, type.price);
  if (const yaml::Node* power = map.find("power")) {
    read_power(*power, type);
  }
  return type;
}

DeviceType read_whole(yaml::Map& map, const DeviceTypeSource& source) {
  DeviceType type;
  type.memory = map.quantity<Bytes>("memory", physical::kCapacity);
  const double reached = map.number("memory_efficiency", yaml::kFraction, 1);
  type.memory_bandwidth = map.quantity<BytesPerSecond>("memory_bandwidth", physical::kBandwidth) * reached;
  type.launch_overhead = map.quantity<Seconds>("launch_overhead", physical::kDuration);
  type.host_speed = map.number("host_speed", physical::kFactor, 1);
  type.calibrated_on = read_models(map);
  constexpr int kMostProcessors = 1 << 20;
  type.processors = map.integer("processors", 1, kMostProcessors, 0);
  read_power(map.node("power"), type);
  type.price = read_price(map);
  read_rates(map, type);
  read_fits(map, source, type);
  if (type.processors == 0 && type.fits && type.fits->processors > 1) { // 1: the fits do not give it
    type.processors = static_cast<int>(type.fits->processors);
  }
  return type;
}

} // namespace

DeviceType load_device_type(const yaml::Node& document, const DeviceTypeSource& source) {
  yaml::Map map(document, "device type");
  const std::string name = map.text("name");
  if (name.empty()) {
    throw InputError(map.where("name"), "'name' is empty");
  }
  const std::string vendor = map.text("vendor");
  const Origin origin = map.choice("origin", kOrigins).origin;
  map.text("description", "");
  DeviceType type = map.has("derived") ? derive(map, source) : read_whole(map, source);
  type.name = name;
  type.vendor = vendor;
  type.origin = origin;
  type.beside_exchange = read_beside_exchange(map, type.beside_exchange);
  check_sources(document, map.find("sources"));
  map.finish();
  return type;
}

std::filesystem::path find_device_type(const std::filesystem::path& folder, const std::string& name,
                                       const Where& where) {
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
  return folder / (name + ".yaml");
}

DeviceTypeSource device_types_in(const std::filesystem::path& folder) {
  return [folder](const std::string& name, const Where& where) {
    return yaml::load(find_device_type(folder, name, where));
  };
}

} // namespace stagecraft
