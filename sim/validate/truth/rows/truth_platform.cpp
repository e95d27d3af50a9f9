// The machine of a row: nodes like a shipped one, with the row's device type, number of devices and network.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/base/utf8.hpp"
#include "sim/study/keys/inputs.hpp"
#include "sim/validate/truth/rows/truth_study.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

bool is_digits(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// A word of a name of a device as shipped names have it: "sxm" of the sockets that its generations call SXM2, SXM4 and
// SXM5, "80gb" of "80g". Nothing where it tells no devices apart.
std::string usual_word(const std::string& word) {
  constexpr std::array<std::string_view, 4> kSaysNothing = {"nvidia", "amd", "tesla", "instinct"};
  if (std::find(kSaysNothing.begin(), kSaysNothing.end(), word) != kSaysNothing.end()) {
    return "";
  }
  if (word == "sxm2" || word == "sxm4" || word == "sxm5") {
    return "sxm";
  }
  const std::string_view number = std::string_view(word).substr(0, word.empty() ? 0 : word.size() - 1);
  return word.ends_with('g') && is_digits(number) ? word + "b" : word;
}

// "h100" and "sxm5" of "8xh100sxm5", "rtx" and "4090" of "rtx4090", "rtx", "2080" and "ti" of "rtx2080ti".
void add_parts(std::string word, std::vector<std::string>& to) {
  constexpr std::string_view kTi = "ti";
  if (word.size() > kTi.size() && word.ends_with(kTi) &&
      std::isdigit(static_cast<unsigned char>(word[word.size() - kTi.size() - 1])) != 0) {
    to.emplace_back(kTi);
    word.erase(word.size() - kTi.size());
  }
  const std::size_t letters = word.find_first_not_of("0123456789");
  if (letters > 0 && letters != std::string::npos && word[letters] == 'x') { // so many of them
    word.erase(0, letters + 1);
  }
  const std::size_t socket = word.find("sxm");
  if (socket > 0 && socket != std::string::npos) {
    to.push_back(word.substr(0, socket));
    word.erase(0, socket);
  } else if (word.starts_with("rtx") && is_digits(std::string_view(word).substr(std::string_view("rtx").size()))) {
    to.emplace_back("rtx");
    word.erase(0, std::string_view("rtx").size());
  }
  to.push_back(word);
}

// The words of a name of a device, as "a100", "sxm", "80gb" of "NVIDIA A100-SXM4-80GB" and of "A100 SXM 80 GB".
std::set<std::string> words_of(const std::string& name) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : name + "-") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (!word.empty()) {
      if ((word == "gb" || word == "gib") && !found.empty() && is_digits(found.back())) {
        found.back() += "gb";
      } else {
        add_parts(word, found);
      }
      word.clear();
    }
  }
  std::set<std::string> words;
  std::transform(found.begin(), found.end(), std::inserter(words, words.end()), usual_word);
  words.erase("");
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

struct NodeOf {
  std::string_view family, node; ///< of a device type, and the platform that is a node of it
};
// The first family that fits.
constexpr std::array kNodes = {
    NodeOf{"a100-sxm", "dgx-a100"},    NodeOf{"h100-sxm", "dgx-h100"}, NodeOf{"h200", "dgx-h200"},
    NodeOf{"h800", "hgx-h800"},        NodeOf{"h20-", "dgx-h100"},     NodeOf{"a800-sxm", "hgx-a800"},
    NodeOf{"b200", "dgx-b200"},        NodeOf{"b300", "dgx-b200"},     NodeOf{"gb200", "gb200-nvl72"},
    NodeOf{"gb300", "gb200-nvl72"},    NodeOf{"mi3", "mi300x-8"},      NodeOf{"v100-sxm3", "dgx-2"},
    NodeOf{"v100-sxm", "nvlink-v100"},
};
constexpr std::string_view kPlainNode = "pcie-v100";

std::string_view node_of(const std::string& device) {
  const auto found =
      std::find_if(kNodes.begin(), kNodes.end(), [&](const NodeOf& one) { return device.starts_with(one.family); });
  return found == kNodes.end() ? kPlainNode : found->node;
}

// What a row calls its devices, in words. Those of a chassis of NVIDIA's are in its sockets, of a DGX-2 in SXM3; a card
// is on PCIe; and of AMD's modules of two chips a framework sees one, of which a node has eight.
std::set<std::string> wanted_words(const TruthRow& row) {
  constexpr int kChipsOfNode = 8;
  std::set<std::string> wanted = words_of(plain_words(row.gpu));
  if (wanted.erase("dgx") + wanted.erase("hgx") > 0) {
    wanted.insert("sxm");
  }
  if (lower_case(row.gpu).find("dgx-2") != std::string::npos) {
    for (const char* word : {"2", "2h", "sxm"}) {
      wanted.erase(word);
    }
    wanted.insert("sxm3");
  }
  if (wanted.contains("nvl")) {
    wanted.insert("pcie");
  }
  if ((wanted.contains("mi250") && !wanted.contains("128gb")) ||
      (wanted.contains("mi250x") && row.devices_per_node >= kChipsOfNode)) {
    wanted.insert("gcd");
  }
  return wanted;
}

// Whether a shipped name's family, its first word, is wanted, or a model of that family that no other has: "4090".
bool may_be(const std::string& name, const std::set<std::string>& wanted) {
  constexpr std::size_t kTelling = 4; // characters
  const std::size_t end = name.find('-');
  const std::string model = end == std::string::npos ? "" : name.substr(end + 1, name.find('-', end + 1) - end - 1);
  return wanted.contains(name.substr(0, end)) ||
         (name.starts_with("rtx-") && model.size() >= kTelling && wanted.contains(model));
}

// The device type with the most words in common, among those that a name may be.
// Words that only one of the two has count half against it. Of several it is, in a node of several, the one that
// shipped nodes are made of: who writes "8 x H100" and not "H100 PCIe" has those of a DGX.
std::string nearest_device(const TruthRow& row, const fs::path& shipped) {
  const std::set<std::string> wanted = wanted_words(row);
  const bool several = std::max(row.devices_per_node, row.devices) > 1;
  std::string best;
  double best_score = 0;
  for (const std::string& name : device_names(shipped)) {
    const std::set<std::string> has = words_of(name);
    if (!may_be(name, wanted)) {
      continue;
    }
    const auto common = static_cast<double>(
        std::count_if(has.begin(), has.end(), [&](const std::string& word) { return wanted.contains(word); }));
    const double score = common - (static_cast<double>(has.size() + wanted.size()) - 2 * common) / 2;
    const bool in_nodes = several && node_of(name) != kPlainNode && node_of(best) == kPlainNode;
    if (best.empty() || score > best_score || (score == best_score && in_nodes)) {
      best = name;
      best_score = score;
    }
  }
  return best;
}

// A laboratory whose devices its rows do not tell apart from others, and the type that they are.
struct Laboratory {
  std::string_view name, device, measured;
};
constexpr std::array kLaboratories = {
    // Its own kernels of a B200 come with its runs, and this type has their speed.
    Laboratory{"SimuMax", "b200-sxm", "b200-sxm-simumax"},
    // Its "v100" trains ResNet-50 with 360 images at once, BERT with 56 sequences, for which 16 GB are too few.
    Laboratory{"Zeus", "v100-pcie-16gb", "v100-pcie-32gb"},
};

// The type of the row's devices: what its laboratory is known to have, where that is more than the row says.
std::string device_of(const TruthRow& row, const fs::path& shipped) {
  const std::string device = nearest_device(row, shipped);
  const auto own = std::find_if(kLaboratories.begin(), kLaboratories.end(),
                                [&](const Laboratory& one) { return one.device == device && row.mentions(one.name); });
  return own == kLaboratories.end() ? device : std::string(own->measured);
}

// What a text says of a node's network.
struct StatedNetwork {
  double gigabits = 0;      // Gb/s of a node; 0: nothing
  bool says_of_what = true; // of a device, a node, or so many ports
};

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
  std::size_t begin = end;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '.')) {
    --begin;
  }
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
  if (stated <= 0 && platform.find("network") == nullptr) {
    return "nothing says how nodes of " + device +
           " are joined; allowed: an inter_link such as '400 Gb/s per GPU', a device that a shipped cluster has, or "
           "the runs of one node";
  }
  if (stated <= 0) {
    assumed.push_back("the network of " + std::string(node_of(device)));
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

std::set<std::string> device_precisions(const TruthRow& row, const fs::path& shipped) {
  std::set<std::string> precisions;
  const std::string device = device_of(row, shipped);
  if (!device.empty()) {
    const yaml::Node file = yaml::load(shipped / "platforms/devices" / (device + ".yaml"));
    const yaml::Node* peaks = file.find("peak");
    for (const auto& entry : peaks == nullptr ? std::vector<yaml::Node::Entry>() : peaks->entries) {
      precisions.insert(entry.key);
    }
  }
  return precisions;
}

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
  const std::string device = device_of(row, shipped);
  if (device.empty()) {
    return Infeasible{"no shipped device type is called like '" + excerpt(row.gpu) +
                      "'; allowed: one of `stagecraft list devices`"};
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
  yaml::set(node, "devices.0.count", std::to_string(each), where);
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
