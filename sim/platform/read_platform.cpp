// Reading a platform file: every key, its unit and its range. docs/formats/platform.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/platform_file.hpp"

namespace stagecraft::platform_file {
namespace {

struct LinkKindRow {
  std::string_view name, help;
  NodeLink::Kind kind;
};
constexpr std::array kLinkKinds = {
    LinkKindRow{"pcie-switch", "devices below a switch that a link joins to the host", NodeLink::Kind::pcie_switch},
    LinkKindRow{"nvlink-pair", "direct links between pairs of devices", NodeLink::Kind::nvlink_pair},
    LinkKindRow{"nvswitch", "a switch with a port for each device", NodeLink::Kind::nvswitch},
    LinkKindRow{"host-link", "a link from each device to the host", NodeLink::Kind::host_link},
    LinkKindRow{"torus", "links from each device to its neighbours on a grid", NodeLink::Kind::torus},
};

template <class Value> struct Choice {
  std::string_view name;
  Value value;
};
constexpr std::array<Choice<Topology>, 3> kTopologies{
    {{"switch", Topology::one_switch}, {"leaf-spine", Topology::leaf_spine}, {"rails", Topology::rails}}};
constexpr std::array<Choice<bool>, 2> kNics{{{"node", false}, {"device", true}}};

constexpr yaml::Range kSpread{0, 1, true, "0 to 1"};
constexpr yaml::Range kAtLeastOne{1, std::numeric_limits<double>::infinity(), true, "1 or more"};

Host read_host(const yaml::Node& node) {
  yaml::Map map(node, "host");
  Host host;
  host.cores = map.integer("cores", 1, 100'000);
  host.core_speed = map.quantity<FlopsPerSecond>("core_speed", physical::kSpeed);
  host.memory = map.quantity<Bytes>("memory", physical::kCapacity);
  host.memory_bandwidth = map.quantity<BytesPerSecond>("memory_bandwidth", physical::kBandwidth);
  host.disk_bandwidth = map.quantity<BytesPerSecond>("disk_bandwidth", physical::kBandwidth);
  host.price = read_price(map);
  yaml::Map power(map.node("power"), "power");
  host.idle = power.quantity<Watts>("idle", physical::kPower);
  host.core_busy = power.quantity<Watts>("core_busy", physical::kPower);
  host.core_spin = power.quantity<Watts>("core_spin", physical::kPower);
  power.finish();
  map.finish();
  return host;
}

// Either `bandwidth` for both directions, or `up` and `down`.
TwoWay read_bandwidth(yaml::Map& map) {
  if (!map.has("up") && !map.has("down")) {
    const auto both = map.quantity<BytesPerSecond>("bandwidth", physical::kBandwidth);
    return {both, both};
  }
  if (map.has("bandwidth")) {
    throw InputError(map.where("bandwidth"), "'bandwidth' stands beside 'up' or 'down'; allowed: 'bandwidth' alone, or "
                                             "both 'up' and 'down'");
  }
  const auto up = map.quantity<BytesPerSecond>("up", physical::kBandwidth);
  return {up, map.quantity<BytesPerSecond>("down", physical::kBandwidth)};
}

int device_index(const yaml::Node& node, std::string_view what, int devices) {
  if (devices == 0) {
    throw InputError(node.where, "a link in a node without devices; allowed: none");
  }
  return yaml::integer(node, what, 0, devices - 1);
}

// Reads a list of device indices without repetition; `all`, or no key, means every device.
std::vector<int> read_devices(yaml::Map& map, int devices) {
  std::vector<int> indices;
  const yaml::Node* given = map.find("devices");
  if (given == nullptr || given->text == "all") {
    for (int device = 0; device < devices; ++device) {
      indices.push_back(device);
    }
    return indices;
  }
  std::set<int> seen;
  for (const yaml::Node* item : map.list("devices")) {
    const int device = device_index(*item, "devices", devices);
    if (!seen.insert(device).second) {
      throw InputError(item->where, "device " + std::to_string(device) + " is listed twice; allowed: once in a link");
    }
    indices.push_back(device);
  }
  return indices;
}

std::vector<std::pair<int, int>> read_pairs(yaml::Map& map, int devices) {
  std::vector<std::pair<int, int>> pairs;
  std::set<std::pair<int, int>> seen;
  map.node("pairs");
  for (const yaml::Node* item : map.list("pairs")) {
    if (item->items.size() != 2) {
      throw InputError(item->where, "a pair must be a list of two devices, as [0, 1]");
    }
    const int first = device_index(item->items[0], "pairs", devices);
    const int second = device_index(item->items[1], "pairs", devices);
    if (first == second || !seen.insert(std::minmax(first, second)).second) {
      throw InputError(item->where, first == second ? "a pair of a device with itself; allowed: two devices"
                                                    : "a pair is listed twice; allowed: once in a link");
    }
    pairs.emplace_back(first, second);
  }
  return pairs;
}

// Sizes along the axes, whose product is the number of devices, and which of them wrap around: one answer for all, or
// one each. Along an axis of one or two no link would be a further one.
std::vector<Torus::Axis> read_axes(yaml::Map& map, std::size_t devices) {
  constexpr std::size_t kMostAxes = 8;
  constexpr int kFewest = 3;
  std::vector<Torus::Axis> axes;
  map.node("shape");
  long product = 1;
  for (const yaml::Node* item : map.list("shape")) {
    axes.push_back({yaml::integer(*item, "shape", 1, kMostDevices), false});
    product = std::min<long>(product * axes.back().size, kMostDevices + 1);
  }
  if (axes.size() > kMostAxes) {
    throw InputError(map.where("shape"), "a grid of " + std::to_string(axes.size()) +
                                             " axes; allowed: " + std::to_string(kMostAxes) + " at most");
  }
  if (product != static_cast<long>(devices)) {
    throw InputError(map.where("shape"), "a grid of another number of devices than the " + std::to_string(devices) +
                                             " of the link; allowed: sizes whose product is " +
                                             std::to_string(devices));
  }
  const std::vector<const yaml::Node*> wraps = map.list("wraparound");
  if (wraps.size() > 1 && wraps.size() != axes.size()) {
    throw InputError(map.where("wraparound"), std::to_string(wraps.size()) + " answers for " +
                                                  std::to_string(axes.size()) + " axes; allowed: one, or one each");
  }
  for (std::size_t axis = 0; axis < axes.size() && !wraps.empty(); ++axis) {
    const yaml::Node& answer = *wraps[wraps.size() == 1 ? 0 : axis];
    axes[axis].wraps = yaml::boolean(answer, "wraparound") && axes[axis].size >= kFewest;
    if (wraps.size() > 1 && yaml::boolean(answer, "wraparound") && !axes[axis].wraps) {
      throw InputError(answer.where, "an axis of " + std::to_string(axes[axis].size) +
                                         " wraps around; allowed: false, as its ends are neighbours already");
    }
  }
  return axes;
}

LinkPower read_power(yaml::Map& of) {
  LinkPower power;
  if (const yaml::Node* given = of.find("power")) {
    yaml::Map map(*given, "power");
    power.idle = map.quantity<Watts>("idle", physical::kPower);
    power.busy = map.quantity<Watts>("busy", physical::kPower);
    if (power.busy < power.idle) {
      throw InputError(map.where("busy"), "'busy' is less than 'idle'; allowed: idle or more");
    }
    map.finish();
  }
  return power;
}

NcclLink::Wire wire_of(NodeLink::Kind kind) {
  const bool is_nvlink = kind == NodeLink::Kind::nvswitch || kind == NodeLink::Kind::nvlink_pair;
  return is_nvlink ? NcclLink::Wire::nvlink : NcclLink::Wire::pci;
}

NcclLink read_nccl(yaml::Map& map, NcclLink::Wire wire) {
  return map.has("nccl_at") ? NcclLink{wire, map.quantity<Seconds>("nccl_at", yaml::kDelay)} : NcclLink{};
}

NodeLink read_link(const yaml::Node& node, int devices) {
  yaml::Map map(node, "link");
  NodeLink link;
  link.where = node.where;
  link.kind = map.choice("kind", kLinkKinds).kind;
  link.bandwidth = read_bandwidth(map);
  link.latency = map.quantity<Seconds>("latency", yaml::kDelay);
  link.power = read_power(map);
  link.spread = map.number("spread", kSpread, 0);
  link.nccl = read_nccl(map, wire_of(link.kind));
  link.nccl_where = map.where("nccl_at");
  if (link.kind == NodeLink::Kind::nvlink_pair) {
    link.pairs = read_pairs(map, devices);
  } else {
    link.devices = read_devices(map, devices);
  }
  if (link.kind == NodeLink::Kind::torus) {
    link.axes = read_axes(map, link.devices.size());
  }
  if (link.kind == NodeLink::Kind::nvswitch) {
    link.reduces = map.boolean("reduces", false);
    if (map.has("measured_at")) {
      link.measured_at = map.quantity<BytesPerSecond>("measured_at", physical::kBandwidth);
      link.measured_where = map.where("measured_at");
    }
  }
  if (link.kind == NodeLink::Kind::pcie_switch) {
    link.uplink = link.bandwidth;
    if (map.has("uplink")) {
      const auto both = map.quantity<BytesPerSecond>("uplink", physical::kBandwidth);
      link.uplink = {both, both};
    }
  }
  map.finish();
  return link;
}

Network read_network(const yaml::Node& node) {
  yaml::Map map(node, "network");
  Network network;
  network.topology = map.choice("topology", kTopologies).value;
  network.nic_per_device = map.choice("nic", kNics, "node").value;
  const bool has_leaves = network.topology != Topology::one_switch;
  if (network.topology == Topology::rails && !network.nic_per_device) {
    throw InputError(map.where("topology"), "rails join NICs of devices, and a node has one NIC; allowed: nic: device");
  }
  network.bandwidth = map.quantity<BytesPerSecond>("bandwidth", physical::kBandwidth);
  network.latency = map.quantity<Seconds>("latency", yaml::kDelay);
  if (has_leaves && !map.has("nodes_per_leaf")) { // the rest of the network may be another file's
    throw InputError(map.where("topology"), "missing key 'nodes_per_leaf' in network, for leaves of this topology");
  }
  if (has_leaves || map.has("nodes_per_leaf")) {
    network.nodes_per_leaf = map.integer("nodes_per_leaf", 1, kMostDevices);
  }
  network.oversubscription = map.number("oversubscription", kAtLeastOne, 1);
  if (!has_leaves && network.oversubscription > 1) {
    throw InputError(map.where("oversubscription"),
                     "one switch has no uplinks to make narrower; allowed: 1, or topology: leaf-spine or rails with "
                     "nodes_per_leaf");
  }
  network.power = read_power(map);
  network.spread = map.number("spread", kSpread, 0);
  network.nccl = read_nccl(map, NcclLink::Wire::network);
  map.finish();
  return network;
}

// Reads the file; keeps the device types that it has met, so that each is read once.
class Reader {
public:
  Reader(const DeviceTypeSource& source, KnownTypes* known, File& file)
      : source_(source), known_(known != nullptr ? *known : own_), file_(file) {}

  void read(yaml::Map& map) {
    for (const yaml::Node* item : map.list("device_types")) {
      const bool whole = item->kind == yaml::Node::Kind::map;
      inline_types_.push_back(load_device_type(whole ? *item : yaml::load_beside(*item, "device_types"), source_));
      if (inline_type(inline_types_.back().name) != &inline_types_.back()) {
        throw InputError(item->where, "a second device type '" + inline_types_.back().name + "'; allowed: each once");
      }
    }
    cap_ = read_cap(map);
    map.node("nodes");
    for (const yaml::Node* item : map.list("nodes")) {
      file_.groups.push_back(read_group(*item));
    }
    if (devices_ == 0) {
      throw InputError(map.where("nodes"),
                       "the platform has no devices; allowed: 1 to " + std::to_string(kMostDevices));
    }
    if (const yaml::Node* network = map.find("network")) {
      file_.network = read_network(*network);
    } else if (names_.size() > 1) {
      throw InputError(map.where(), "missing key 'network' in platform; needed with more than one node");
    }
  }

private:
  const DeviceType* inline_type(const std::string& name) const {
    const auto found = std::find_if(inline_types_.begin(), inline_types_.end(),
                                    [&](const DeviceType& type) { return type.name == name; });
    return found == inline_types_.end() ? nullptr : &*found;
  }

  DeviceType load_type(const std::string& name, const Where& where) const {
    if (const DeviceType* found = inline_type(name)) {
      return *found;
    }
    if (known_.contains(name)) {
      return known_.at(name);
    }
    const yaml::Node document = source_(name, where);
    DeviceType type = load_device_type(document, source_);
    if (type.name != name) {
      throw InputError(document.find("name")->where,
                       "the device type '" + name + "' calls itself '" + type.name + "'; allowed: the file's name");
    }
    known_.emplace(name, type);
    return type;
  }

  // A cap on the power of each of some devices.
  struct PowerCap {
    Watts power;
    Where where;
  };

  static std::optional<PowerCap> read_cap(yaml::Map& map) {
    if (!map.has("power_cap")) {
      return std::nullopt;
    }
    return PowerCap{map.quantity<Watts>("power_cap", physical::kPower), map.where("power_cap")};
  }

  static DeviceType capped_to(DeviceType type, const PowerCap& cap) {
    const Watts least = least_cap(type);
    if (cap.power < least) {
      throw InputError(cap.where, "'power_cap' of " + to_text(cap.power) + " on '" + type.name +
                                      "'; allowed: " + to_text(least) + ", a tenth of its highest clock, or more");
    }
    return capped(std::move(type), cap.power);
  }

  int type_index(const std::string& name, const Where& where, const std::optional<PowerCap>& cap) {
    DeviceType type = load_type(name, where);
    if (cap) {
      type = capped_to(std::move(type), *cap);
    }
    const auto known = std::find_if(file_.types.begin(), file_.types.end(),
                                    [&](const DeviceType& one) { return one.name == type.name; });
    if (known == file_.types.end()) {
      file_.types.push_back(std::move(type));
      return static_cast<int>(file_.types.size()) - 1;
    }
    return static_cast<int>(known - file_.types.begin());
  }

  NodeGroup read_group(const yaml::Node& node) {
    yaml::Map map(node, "node");
    NodeGroup group;
    group.where = node.where;
    const std::string name = map.text("name");
    const int count = map.integer("count", 1, kMostDevices, 1);
    nodes_ += count;
    if (nodes_ > kMostDevices) {
      throw InputError(node.where, "more than " + std::to_string(kMostDevices) + " nodes in the platform");
    }
    for (int number = 0; number < count; ++number) {
      group.names.push_back(map.has("count") ? name + "-" + std::to_string(number) : name);
      if (!names_.insert(group.names.back()).second) {
        throw InputError(map.where("name"), "a second node '" + group.names.back() + "'; allowed: each name once");
      }
    }
    group.host = read_host(map.node("host"));
    for (const yaml::Node* item : map.list("devices")) {
      read_devices_of_type(*item, count, group);
    }
    std::set<int> in_torus;
    for (const yaml::Node* item : map.list("links")) {
      group.links.push_back(read_link(*item, static_cast<int>(group.types.size())));
      check_measured(group, group.links.back());
      check_torus(group, in_torus, *item);
      check_nccl(group.links.back().nccl, group.types, group.links.back().nccl_where);
      link_ends_ += group.links.back().devices.size() * std::max<std::size_t>(1, group.links.back().axes.size());
      if (link_ends_ > kMostLinks) { // each is a link once the platform is built
        throw InputError(item->where, "more than " + std::to_string(kMostLinks) + " links in the platform");
      }
    }
    if (map.has("nic_bandwidth")) {
      group.nic = map.quantity<BytesPerSecond>("nic_bandwidth", physical::kBandwidth);
    }
    map.finish();
    return group;
  }

  // What is under way on a torus passes through other devices, which know one another's protocol, and has one way.
  void check_torus(const NodeGroup& group, std::set<int>& in_torus, const yaml::Node& item) const {
    const NodeLink& link = group.links.back();
    if (link.kind != NodeLink::Kind::torus) {
      return;
    }
    for (const int device : link.devices) {
      if (!in_torus.insert(device).second) {
        throw InputError(item.where, "device " + std::to_string(device) + " is in two tori; allowed: one");
      }
      if (file_.types[group.types[device]].vendor != file_.types[group.types[link.devices.front()]].vendor) {
        throw InputError(item.where, "a torus of devices of two vendors; allowed: of one");
      }
    }
  }

  // Times of collectives are those of one type of devices, and its fits must have them.
  void check_measured(const NodeGroup& group, const NodeLink& link) const {
    if (link.measured_at.value == 0) {
      return;
    }
    for (const int device : link.devices) {
      const DeviceType& type = file_.types[group.types[device]];
      if (group.types[device] != group.types[link.devices.front()]) {
        throw InputError(link.measured_where, "'measured_at' of a switch of two device types; allowed: of one");
      }
      if (type.fits == nullptr || type.fits->collectives.empty()) {
        throw InputError(link.measured_where, "'measured_at', but the fits of '" + type.name +
                                                  "' have no collectives; allowed: where `calibrate fit` has "
                                                  "fitted some");
      }
    }
  }

  // NCCL is for devices of one vendor.
  void check_nccl(const NcclLink& nccl, const std::vector<int>& types, const Where& where) const {
    for (const int type : types) {
      const DeviceType& one = file_.types[type];
      if (nccl.wire != NcclLink::Wire::none && one.vendor != kNcclVendor) {
        throw InputError(where, "'nccl_at', but '" + one.name + "' is a device of '" + one.vendor +
                                    "'; allowed: among devices of nvidia");
      }
    }
  }

  void read_devices_of_type(const yaml::Node& node, int nodes, NodeGroup& group) {
    yaml::Map map(node, "devices");
    const std::optional<PowerCap> own = read_cap(map);
    const int type = type_index(map.text("type"), map.where("type"), own ? own : cap_);
    const int count = map.integer("count", 1, kMostDevices, 1);
    devices_ += static_cast<long>(count) * nodes;
    if (devices_ > kMostDevices) {
      throw InputError(node.where, "more than " + std::to_string(kMostDevices) + " devices in the platform");
    }
    group.types.insert(group.types.end(), static_cast<size_t>(count), type);
    map.finish();
  }

  const DeviceTypeSource& source_;
  KnownTypes own_;
  KnownTypes& known_; // types from the same source that were read earlier
  File& file_;
  std::vector<DeviceType> inline_types_;
  std::optional<PowerCap> cap_; // of all devices whose entry has none
  std::set<std::string> names_;
  long devices_ = 0, nodes_ = 0; // so far
  std::size_t link_ends_ = 0;    // of all groups' links, so far
};

} // namespace

File read(const yaml::Node& document, const DeviceTypeSource& source, KnownTypes* known) {
  yaml::Map map(document, "platform");
  File file;
  file.name = map.text("name");
  file.description = map.text("description", "");
  Reader(source, known, file).read(map);
  map.finish();
  return file;
}

} // namespace stagecraft::platform_file
