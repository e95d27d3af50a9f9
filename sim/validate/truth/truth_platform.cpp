// The machine of a row: nodes like a shipped one, with the row's device type, number of devices and network.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>

#include "sim/base/format/yaml.hpp"
#include "sim/study/inputs.hpp"
#include "sim/validate/truth/truth_study.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// The words of a name of a device, as "a100", "sxm", "80gb".
std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (const char c : name + "-") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (!word.empty()) {
      words.insert(word == "sxm2" || word == "sxm4" || word == "sxm5" ? "sxm" : word);
      word.clear();
    }
  }
  words.erase("nvidia");
  words.erase("amd");
  return words;
}

std::set<std::string> device_names(const fs::path& shipped) {
  std::error_code failure;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(shipped / "platforms" / "devices", failure)) {
    names.insert(entry.path().stem().string());
  }
  return names;
}

// "80gb", and not "gb200".
bool is_size(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") && word.find_first_not_of("0123456789") == word.size() - 2;
}

// The device type with the most words in common, among those whose family, the name's first word, is one of them.
// Words that only one of the two has count half against it.
std::string nearest_device(const std::string& gpu, const fs::path& shipped) {
  std::set<std::string> wanted = words_of(gpu);
  if (wanted.contains("mi250") && !wanted.contains("128gb")) { // of its two chips a framework sees one
    wanted.insert("gcd");
  }
  std::string best;
  double best_score = 0;
  for (const std::string& name : device_names(shipped)) {
    const std::set<std::string> has = words_of(name);
    if (!wanted.contains(name.substr(0, name.find('-')))) {
      continue;
    }
    const auto common = static_cast<double>(
        std::count_if(has.begin(), has.end(), [&](const std::string& word) { return wanted.contains(word); }));
    const double score = common - (static_cast<double>(has.size() + wanted.size()) - 2 * common) / 2;
    if (best.empty() || score > best_score) {
      best = name;
      best_score = score;
    }
  }
  return best;
}

// A laboratory whose tables of runs come with its own kernels, and the device type that has their speed.
struct Laboratory {
  std::string_view name, device, measured;
};
constexpr std::array kLaboratories = {Laboratory{"SimuMax", "b200-sxm", "b200-sxm-simumax"}};

// The type of the row's devices: at the speed that the same laboratory measured kernels of it, where it has.
std::string device_of(const TruthRow& row, const fs::path& shipped) {
  const std::string device = nearest_device(plain_words(row.gpu), shipped);
  const auto own = std::find_if(kLaboratories.begin(), kLaboratories.end(),
                                [&](const Laboratory& one) { return one.device == device && row.mentions(one.name); });
  return own == kLaboratories.end() ? device : std::string(own->measured);
}

struct NodeOf {
  std::string_view family, node; ///< of a device type, and the platform that is a node of it
};
// The first family that fits.
constexpr std::array kNodes = {
    NodeOf{"a100-sxm", "dgx-a100"},    NodeOf{"h100-sxm", "dgx-h100"}, NodeOf{"h200", "dgx-h200"},
    NodeOf{"h800", "hgx-h800"},        NodeOf{"b200", "dgx-b200"},     NodeOf{"b300", "dgx-b200"},
    NodeOf{"gb200", "gb200-nvl72"},    NodeOf{"gb300", "gb200-nvl72"}, NodeOf{"mi3", "mi300x-8"},
    NodeOf{"v100-sxm", "nvlink-v100"},
};
constexpr std::string_view kPlainNode = "pcie-v100";

std::string_view node_of(const std::string& device) {
  const auto found =
      std::find_if(kNodes.begin(), kNodes.end(), [&](const NodeOf& one) { return device.starts_with(one.family); });
  return found == kNodes.end() ? kPlainNode : found->node;
}

// What a text says of a node's network.
struct StatedNetwork {
  double gigabits = 0;      // Gb/s of a node; 0: nothing
  bool says_of_what = true; // of a device, a node, or so many ports
};

// Of a text such as "8x NDR 400Gb/s IB", "800 Gb/s per node" or "400 Gbps RDMA per GPU".
StatedNetwork network_of(const std::string& text, int devices) {
  const std::string plain = text.substr(0, text.find("Management"));
  std::size_t unit = std::string::npos;
  for (const std::string_view name : {"Gb/s", "Gbps", "Gbit/s", "GbE"}) {
    unit = std::min(unit, plain.find(name));
  }
  if (unit == std::string::npos) {
    return {};
  }
  std::size_t end = unit;
  while (end > 0 && plain[end - 1] == ' ') {
    --end;
  }
  std::size_t begin = end;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(plain[begin - 1])) != 0 || plain[begin - 1] == '.')) {
    --begin;
  }
  const double rate = begin < end ? std::atof(plain.substr(begin, end - begin).c_str()) : 0;
  const auto says = [&](std::string_view words) { return plain.find(words, unit) != std::string::npos; };
  const bool each = says("per GPU") || says("per device");
  bool of_node = says("per node") || says("per server");
  int ports = each ? devices : 1;
  const std::size_t compute = plain.find("Compute: ");
  const std::size_t from = compute == std::string::npos ? 0 : compute + std::string_view("Compute: ").size();
  std::size_t digits = from;
  while (digits < plain.size() && std::isdigit(static_cast<unsigned char>(plain[digits])) != 0) {
    ++digits;
  }
  if (digits > from && digits < plain.size() && plain[digits] == 'x') {
    ports = std::atoi(plain.substr(from, digits - from).c_str());
    of_node = true;
  }
  return {rate * ports, each || of_node};
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

} // namespace

bool leaves_memory_open(const TruthRow& row, const fs::path& shipped) {
  const std::set<std::string> wanted = words_of(plain_words(row.gpu));
  std::set<std::string> sizes;
  for (const std::string& name : device_names(shipped)) {
    const std::set<std::string> has = words_of(name);
    if (std::includes(has.begin(), has.end(), wanted.begin(), wanted.end())) {
      std::copy_if(has.begin(), has.end(), std::inserter(sizes, sizes.end()), is_size);
    }
  }
  return sizes.size() > 1;
}

std::variant<StudyPart, Infeasible> truth_platform(const TruthRow& row, int devices, const fs::path& shipped) {
  constexpr double kGigabit = 1e9 / 8, kReached = 0.9; // of a network's rate, as in the shipped platforms
  const std::string device = device_of(row, shipped);
  if (device.empty()) {
    return Infeasible{"no shipped device type is called like '" + row.gpu + "'"};
  }
  StudyPart part;
  if (words_of(device) != words_of(plain_words(row.gpu))) {
    part.assumed.push_back("the device type " + device);
  }
  yaml::Node platform = yaml::load(shipped / "platforms" / (std::string(node_of(device)) + ".yaml"));
  const Where where{"platform", 0, 0};
  yaml::Node node = platform.find("nodes")->items.front();
  const int each = devices_of_node(node, row, devices);
  keep_devices(node, each);
  yaml::set(node, "devices.0.type", device, where);
  if (row.power_cap > 0) {
    yaml::set(node, "devices.0.power_cap", std::to_string(row.power_cap) + " W", where);
  }
  yaml::set(node, "devices.0.count", std::to_string(each), where);
  yaml::set(node, "count", std::to_string(devices / each), where);
  yaml::Node nodes{.kind = yaml::Node::Kind::sequence, .items = {node}, .where = where};
  yaml::set(platform, "nodes", nodes);
  yaml::set(platform, "description", "the machine of a measured run", where);
  yaml::set(platform, "name", std::to_string(devices / each) + " x " + std::to_string(each) + " " + device, where);
  if (devices > each) {
    const int per_node = std::max(row.devices_per_node, each);
    const auto [stated, says_of_what] = network_of(row.inter_link, per_node);
    if (platform.find("network") == nullptr) {
      return Infeasible{"nothing says how nodes of " + device +
                        " are joined; allowed: a device that a shipped cluster has, or the runs of one node"};
    }
    if (stated > 0) {
      const double of_device = stated * kGigabit * kReached / per_node;
      yaml::set(platform, "network.bandwidth", std::to_string(of_device / 1e9) + " GB/s", where);
      if (!says_of_what) {
        part.assumed.push_back(to_text(stated, 0) + " Gb/s for a whole node");
      }
    } else {
      part.assumed.push_back("the network of " + std::string(node_of(device)));
    }
  }
  part.text = "platform: " + yaml::flow_text(platform) + "\n";
  return part;
}

} // namespace stagecraft
