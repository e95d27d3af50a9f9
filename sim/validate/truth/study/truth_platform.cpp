// The machine of a row: nodes like a shipped one, with the row's device type, number of devices and network.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "sim/base/count_of.hpp"
#include "sim/base/format/yaml.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/keys/inputs.hpp"
#include "sim/validate/truth/study/truth_device.hpp"
#include "sim/validate/truth/study/truth_slice.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// What a text says of a node's network.
struct StatedNetwork {
  double gigabits = 0;      // Gb/s of a node; 0: nothing
  bool says_of_what = true; // of a device, a node, or so many ports
};

// Where the number begins that ends at `end`: with an exponent, as "4e1", and a sign where nothing stands before it, as
// in "-4 Gb/s" and not in "CX-7".
std::size_t begin_of_number(const std::string& text, std::size_t end) {
  const auto digits_before = [&](std::size_t at) {
    while (at > 0 && (std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '.')) {
      --at;
    }
    return at;
  };
  const auto is_sign = [&](std::size_t at) { return text[at] == '-' || text[at] == '+'; };
  std::size_t begin = digits_before(end);
  std::size_t exponent = begin;
  exponent -= exponent > 0 && is_sign(exponent - 1) ? 1 : 0;
  if (begin < end && exponent > 1 && (text[exponent - 1] == 'e' || text[exponent - 1] == 'E') &&
      digits_before(exponent - 1) < exponent - 1) {
    begin = digits_before(exponent - 1);
  }
  const bool alone =
      begin > 0 && is_sign(begin - 1) && (begin == 1 || text[begin - 2] == ' ' || text[begin - 2] == ':');
  return begin < end && alone ? begin - 1 : begin;
}

// The rate that a text states, in Gb/s, and where it stands; 0: none.
std::pair<double, std::size_t> stated_gigabits(const std::string& text) {
  struct Unit {
    std::string_view name;
    double gigabits;
  };
  constexpr std::array kUnits = {Unit{"Gb/s", 1},   Unit{"Gbps", 1},     Unit{"Gbit/s", 1},
                                 Unit{"GbE", 1},    Unit{"Gbit", 1},     Unit{"Tb/s", 1e3},
                                 Unit{"Tbps", 1e3}, Unit{"Tbit/s", 1e3}, Unit{"GB/s", 8}};
  std::size_t unit = std::string::npos;
  double scale = 1;
  for (const Unit& one : kUnits) {
    if (const std::size_t found = text.find(one.name); found < unit) {
      unit = found;
      scale = one.gigabits;
    }
  }
  const bool ethernet_alone = unit != std::string::npos && text.compare(unit, 3, "GbE") == 0 &&
                              plain_words(text).find("infiniband") != std::string::npos; // whose rate is not said
  if (unit == std::string::npos || ethernet_alone) {
    return {0, unit};
  }
  std::size_t end = unit;
  while (end > 0 && text[end - 1] == ' ') {
    --end;
  }
  const std::size_t begin = begin_of_number(text, end);
  return {begin < end ? scale * std::atof(text.substr(begin, end - begin).c_str()) : 0, unit};
}

// Of one kind of ports, as "Compute: 8x NDR 400Gb/s IB", "800 Gb/s per node" or "400 Gbps RDMA per GPU".
StatedNetwork network_of_ports(const std::string& text, int devices) {
  const auto stated = stated_gigabits(text);
  const double rate = stated.first;
  const std::size_t unit = stated.second;
  const auto says = [&](std::string_view words) { return text.find(words, unit) != std::string::npos; };
  const bool each = says("per GPU") || says("per device");
  const std::size_t label = text.find(':');
  const std::size_t from = text.find_first_not_of(' ', label == std::string::npos ? 0 : label + 1);
  const std::size_t digits = text.find_first_not_of("0123456789", from);
  if (digits != std::string::npos && digits > from && text[digits] == 'x') {
    return {rate * std::atoi(text.c_str() + from), true};
  }
  return {each ? rate * devices : rate, each || says("per node") || says("per server")};
}

// Whether ports carry what devices exchange, and not what hosts store, or what comes from outside ("north-south").
bool joins_devices(const std::string& text) {
  const auto says = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  return (says("Compute") || !says("Storage")) && !says("Management") && !says("Data bandwidth") && !says("for NS");
}

// Of a text such as "Storage: 2x 400Gb/s, Compute: 8x NDR 400Gb/s IB": of several kinds of ports the fastest.
StatedNetwork network_of(const std::string& text, int devices) {
  StatedNetwork best;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.size(), next = text.size();
    for (const std::string_view between : {", ", "; ", " and "}) {
      if (const std::size_t found = text.find(between, begin); found < end) {
        end = found;
        next = found + between.size();
      }
    }
    const std::string ports = text.substr(begin, end - begin);
    if (const StatedNetwork one = network_of_ports(ports, devices);
        joins_devices(ports) && one.gigabits > best.gigabits) {
      best = one;
    }
    begin = next;
  }
  return best;
}

// Cards by the generation of PCIe, and what a pinned copy reaches of it, as in the shipped platforms: of 15.75, 31 and
// 63 GB/s.
struct Card {
  std::string_view family, bandwidth;
};
constexpr std::array kCards = {
    Card{"v100-pcie", "12 GB/s"},   Card{"p100", "12 GB/s"},       Card{"p4", "12 GB/s"},
    Card{"t4", "12 GB/s"},          Card{"quadro", "12 GB/s"},     Card{"rtx-2080", "12 GB/s"},
    Card{"a10-", "25 GB/s"},        Card{"a30", "25 GB/s"},        Card{"fpga", "12 GB/s"},
    Card{"a100", "25 GB/s"},        Card{"a40", "25 GB/s"},        Card{"l4", "25 GB/s"},
    Card{"rtx", "25 GB/s"},         Card{"mi100", "25 GB/s"},      Card{"mi210", "25 GB/s"},
    Card{"h100-pcie", "54.3 GB/s"}, Card{"h200-nvl", "54.3 GB/s"},
};

// "450" of "NVLink 450 GB/s per GPU". 0: the text says no such rate.
double gigabytes_of(const std::string& text) {
  const std::size_t unit = text.find("GB/s");
  if (unit == std::string::npos) {
    return 0;
  }
  const auto is_part = [](char c) { return c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t end = unit;
  while (end > 0 && text[end - 1] == ' ') {
    --end;
  }
  std::size_t begin = end;
  while (begin > 0 && is_part(text[begin - 1])) {
    --begin;
  }
  return begin < end ? std::atof(text.c_str() + begin) : 0;
}

// Joins devices of a node of which none is shipped: cards by PCIe switches of two each, others by the rate that the row
// states. Of several nodes, whose devices have NICs of their own, a node has one switch: what leaves a switch for
// another goes over a network where there is one. Says what is assumed; nothing where nothing says how they are joined.
std::string link_plain_node(yaml::Node& node, const std::string& device, int each, bool several_nodes,
                            const TruthRow& row) {
  const Where where{"platform", 0, 0};
  if (const double stated = gigabytes_of(row.intra_link); stated > 0) {
    const std::string rate = std::to_string(stated) + " GB/s";
    yaml::set(node, "links", "[{kind: nvswitch, devices: all, bandwidth: " + rate + ", latency: 5 us}]", where);
    return "one switch between the devices of a node, " + to_text(BytesPerSecond{stated * 1e9}) + " each";
  }
  const auto card =
      std::find_if(kCards.begin(), kCards.end(), [&](const Card& one) { return device.starts_with(one.family); });
  if (card == kCards.end()) {
    return "";
  }
  const std::string rate = "bandwidth: " + std::string(card->bandwidth) + ", latency: 2.5 us}";
  std::string links = several_nodes ? "{kind: pcie-switch, devices: all, " + rate : "";
  for (int first = 0; first < each && !several_nodes; first += 2) {
    links += (first > 0 ? ", " : "") + std::string("{kind: pcie-switch, devices: [") + std::to_string(first) +
             (first + 1 < each ? ", " + std::to_string(first + 1) : "") + "], " + rate;
  }
  yaml::set(node, "links", "[" + links + "]", where);
  return "PCIe of " + std::string(card->bandwidth) + " between the devices of a node";
}

// Drops the links of a node that name a device beyond the first so many.
void keep_devices(yaml::Node& node, int devices) {
  const auto beyond = [&](const yaml::Node& item) {
    return item.kind == yaml::Node::Kind::scalar && std::atoi(item.text.c_str()) >= devices;
  };
  for (yaml::Node::Entry& entry : node.entries) {
    if (entry.key != "links") {
      continue;
    }
    for (yaml::Node& link : entry.value.items) {
      for (yaml::Node::Entry& ends : link.entries) {
        if (ends.key == "devices") {
          std::erase_if(ends.value.items, beyond);
        } else if (ends.key == "pairs") {
          std::erase_if(ends.value.items, [&](const yaml::Node& pair) {
            return std::any_of(pair.items.begin(), pair.items.end(), beyond);
          });
        }
      }
    }
    std::erase_if(entry.value.items, [](const yaml::Node& link) {
      const yaml::Node* named = link.find("devices");
      const yaml::Node* pairs = link.find("pairs");
      return (named != nullptr && named->kind == yaml::Node::Kind::sequence && named->items.empty()) ||
             (pairs != nullptr && pairs->items.empty());
    });
  }
}

// Times of collectives are those of devices whose exchanges were measured, as of those that a shipped node has: to
// others a switch gives its bandwidth.
void keep_measured(yaml::Node& node, const std::string& device, const fs::path& shipped) {
  if (node.find("devices")->items.front().find("type")->text == device) {
    return;
  }
  const fs::path types = shipped / "platforms/devices";
  const DeviceType type = load_device_type(yaml::load(types / (device + ".yaml")), device_types_in(types));
  if (type.fits != nullptr && !type.fits->collectives.empty()) {
    return;
  }
  for (yaml::Node::Entry& entry : node.entries) {
    if (entry.key == "links") {
      for (yaml::Node& link : entry.value.items) {
        std::erase_if(link.entries, [](const yaml::Node::Entry& one) { return one.key == "measured_at"; });
      }
    }
  }
}

// Devices of a node: as many as it has, or fewer where the run is smaller. 0: they do not come out even.
int devices_of_node(const yaml::Node& node, const TruthRow& row, int devices) {
  const yaml::Node* listed = node.find("devices");
  const yaml::Node* count = listed != nullptr ? listed->items.front().find("count") : nullptr;
  const int shipped = count != nullptr ? std::atoi(count->text.c_str()) : 1;
  int each = row.devices_per_node > 0 ? row.devices_per_node : shipped;
  if (row.gpu.starts_with("gb")) { // trays of four stand in one domain of NVLink
    each = std::max(each, shipped);
  }
  if (devices <= each) {
    return devices;
  }
  while (each > 1 && devices % each != 0) { // racks are not filled
    --each;
  }
  return each;
}

// Joins the nodes by the network that the row states, or by that of the shipped node. Why not, where neither says.
std::string join_nodes(yaml::Node& platform, const TruthRow& row, const std::string& device, int each,
                       std::vector<std::string>& assumed) {
  constexpr double kGigabit = 1e9 / 8, kReached = 0.9; // of a network's rate, as in the shipped platforms
  const Where where{"platform", 0, 0};
  // Of a node as the row counts them, of which a rack has several.
  const int per_node = row.devices_per_node > 0 ? row.devices_per_node : each;
  const auto [stated, says_of_what] = network_of(row.inter_link, per_node);
  if (const double rate = stated_gigabits(row.inter_link).first; rate < 0 || std::isinf(rate)) {
    return "the inter_link '" + excerpt(row.inter_link) +
           "' states no rate that a network has; allowed: above 0 and finite, as '400 Gb/s per GPU'";
  }
  if (stated <= 0 && platform.find("network") == nullptr) {
    return "nothing says how nodes of " + device +
           " are joined; allowed: an inter_link such as '400 Gb/s per GPU', a device that a shipped cluster has, or "
           "the runs of one node";
  }
  if (stated <= 0) {
    const bool silent = states_nothing(plain_words(row.inter_link));
    assumed.push_back("the network of " + std::string(node_of(device)) +
                      (silent ? "" : ", as inter_link '" + excerpt(row.inter_link) + "' states no rate"));
    return "";
  }
  if (platform.find("network") == nullptr) {
    yaml::set(platform, "network", "{topology: switch, nic: device, bandwidth: 1 GB/s, latency: 10 us}", where);
  }
  const double of_device = stated * kGigabit * kReached / per_node;
  yaml::set(platform, "network.bandwidth", std::to_string(of_device / 1e9) + " GB/s", where);
  if (!says_of_what) {
    assumed.push_back(to_text(stated, 0) + " Gb/s for a whole node");
  }
  return "";
}

} // namespace

std::variant<StudyPart, Infeasible> truth_platform(const TruthRow& row, int devices, const fs::path& shipped) {
  auto found = truth_device(row, shipped);
  if (auto* reason = std::get_if<Infeasible>(&found)) {
    return std::move(*reason);
  }
  const std::string& device = std::get<std::string>(found);
  StudyPart part;
  if (std::string assumed = assumed_device(row, device, shipped); !assumed.empty()) {
    part.assumed.push_back(std::move(assumed));
  }
  yaml::Node platform = yaml::load(shipped / "platforms" / (std::string(node_of(device)) + ".yaml"));
  const Where where{"platform", 0, 0};
  yaml::Node node = platform.find("nodes")->items.front();
  const int in_slice = chips_of_slice(device, row, devices);
  const int each = in_slice > 0 ? in_slice : devices_of_node(node, row, devices);
  keep_devices(node, each);
  keep_measured(node, device, shipped);
  if (each > 1 && node_of(device) == kPlainNode) {
    part.assumed.push_back(link_plain_node(node, device, each, devices > each, row));
    if (part.assumed.back().empty()) {
      return Infeasible{"nothing says how " + device +
                        " of a node are joined; allowed: an intra_link such as '450 GB/s per GPU', a device that a "
                        "shipped node has, or runs of one device"};
    }
  }
  yaml::set(node, "devices.0.type", device, where);
  if (row.power_cap > 0) {
    yaml::set(node, "devices.0.power_cap", std::to_string(row.power_cap) + " W", where);
  }
  if (in_slice > 0) {
    part.assumed.push_back(count_of(devices / in_slice, "slice") + " of " + shape_slice(node, device, in_slice) +
                           " chips");
  } else {
    yaml::set(node, "devices.0.count", std::to_string(each), where);
  }
  yaml::set(node, "count", std::to_string(devices / each), where);
  yaml::Node nodes{.kind = yaml::Node::Kind::sequence, .items = {node}, .where = where};
  yaml::set(platform, "nodes", nodes);
  yaml::set(platform, "description", "the machine of a measured run", where);
  yaml::set(platform, "name", std::to_string(devices / each) + " x " + std::to_string(each) + " " + device, where);
  if (devices > each) {
    if (std::string reason = join_nodes(platform, row, device, each, part.assumed); !reason.empty()) {
      return Infeasible{std::move(reason)};
    }
  }
  part.text = "platform: " + yaml::flow_text(platform) + "\n";
  return part;
}

} // namespace stagecraft
