// From the matrix of a machine to a platform file. What the matrix does not say is assumed, and a comment in the file
// names each assumption.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/format/yaml_text.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

#include "calibrate/foreign/foreign_formats.hpp"
#include "calibrate/foreign/topology_matrix.hpp"

namespace stagecraft::foreign {
namespace {

// Bandwidths of known devices, found by the beginning of their names, in one direction: NVLink in GB/s per link, PCIe
// per slot.
struct DeviceLinks {
  std::string_view name;
  int nvlinks;
  double nvlink;
  std::string_view nvlink_source;
  double pcie;
  std::string_view pcie_source;
};
constexpr std::string_view kGen3 = "assumption: 12 of the 15.75 GB/s of Gen3 x16",
                           kGen4 = "assumption: 25 of the 31 GB/s of Gen4 x16",
                           kGen5 = "54.3 of the 63 GB/s of Gen5 x16, as measured between peers";
constexpr std::array kDeviceLinks = {
    DeviceLinks{"p100", 4, 16, "assumption: 0.8 of the nominal 20 GB/s a link", 12, kGen3},
    DeviceLinks{"v100", 6, 23.95, "47.9 GB/s were measured over two links of 25 GB/s", 12, kGen3},
    DeviceLinks{"t4", 0, 0, "", 12, kGen3},
    DeviceLinks{"a100", 12, 20.25, "243 GB/s were measured over twelve links of 25 GB/s", 25, kGen4},
    DeviceLinks{"a800", 8, 20.25, "243 GB/s were measured over twelve links of an A100", 25, kGen4},
    DeviceLinks{"rtx-3090", 4, 11.25, "assumption: 0.8 of the nominal 14.06 GB/s a link", 25, kGen4},
    DeviceLinks{"rtx-4090", 0, 0, "", 25, kGen4},
    DeviceLinks{"l4-", 0, 0, "", 25, kGen4},
    DeviceLinks{"l40", 0, 0, "", 25, kGen4},
    DeviceLinks{"h100", 18, 20.55, "370 GB/s are stated for eighteen links of 25 GB/s", 54.3, kGen5},
    DeviceLinks{"h800", 8, 20.55, "370 GB/s are stated for eighteen links of an H100", 54.3, kGen5},
    DeviceLinks{"h200", 18, 20.55, "370 GB/s are stated for eighteen links of an H100", 54.3, kGen5},
    DeviceLinks{"b200", 18, 41.1, "assumption: the share of 50 GB/s a link that an H100 reaches", 54.3, kGen5}};
constexpr int kMostLinksKnown = 18;

const DeviceLinks* links_of(const std::string& device) {
  const auto* const row = std::find_if(kDeviceLinks.begin(), kDeviceLinks.end(),
                                       [&](const DeviceLinks& links) { return device.starts_with(links.name); });
  return row != kDeviceLinks.end() ? row : nullptr;
}

std::string gigabytes(BytesPerSecond rate) { return to_digits(rate.value / 1e9, 6) + " GB/s"; }

std::string list_of(const std::vector<int>& devices) {
  std::string text;
  for (const int device : devices) {
    text += (text.empty() ? "" : ", ") + std::to_string(device);
  }
  return "[" + text + "]";
}

std::string names_of(const std::vector<std::string>& names, const std::vector<int>& which) {
  std::vector<std::string> chosen;
  for (const int index : which) {
    chosen.push_back(names[static_cast<std::size_t>(index)]);
  }
  return join(chosen);
}

// Groups of those that are joined, directly or through others. Members are in order; groups are ordered by their first
// member.
template <class Joined> std::vector<std::vector<int>> groups_of(int count, Joined joined) {
  std::vector<int> group(static_cast<std::size_t>(count));
  std::iota(group.begin(), group.end(), 0);
  for (int one = 0; one < count; ++one) {
    for (int other = 0; other < one; ++other) {
      if (joined(one, other)) {
        const int from = group[static_cast<std::size_t>(one)], to = group[static_cast<std::size_t>(other)];
        std::replace(group.begin(), group.end(), std::max(from, to), std::min(from, to));
      }
    }
  }
  std::map<int, std::vector<int>> members;
  for (int one = 0; one < count; ++one) {
    members[group[static_cast<std::size_t>(one)]].push_back(one);
  }
  std::vector<std::vector<int>> groups;
  for (auto& [first, list] : members) {
    groups.push_back(std::move(list));
  }
  return groups;
}

// In single quotes, as people write names of files, unless something must be escaped.
std::string in_quotes(const std::string& name) {
  const std::string text = yaml_text(name);
  return text.starts_with('"') ? text : "'" + text + "'";
}

class PlatformWriter {
public:
  PlatformWriter(const TopologyMatrix& matrix, const ForeignOptions& options)
      : matrix_(matrix), options_(options), known_(links_of(options.device->name)) {}

  ForeignText write() {
    const std::string nvlinks = this->nvlinks();
    const std::string pcie = this->pcie();
    const std::string network = options_.nodes > 1 ? this->network() : "";
    const std::string host = this->host();
    const std::string& type = options_.device->name;
    const std::string count = std::to_string(matrix_.gpus);
    cards();
    std::string text = "# From the matrix of `nvidia-smi topo -m`, which tells no bandwidths, latencies or hosts:\n#\n";
    for (const std::string& comment : comments_) {
      text += "# " + on_one_line(comment) + "\n";
    }
    const std::string machines = options_.nodes > 1 ? "machines" : "a machine";
    text += "name: " + yaml_text(type + "-x" + count) + "\ndescription: " +
            in_double_quotes(machines + " of " + count + " " + type + ", joined as nvidia-smi saw it") + "\n";
    text += options_.device_file.empty() ? "" : "device_types: [" + in_quotes(options_.device_file) + "]\n";
    text += "nodes:\n  - name: node\n";
    text += options_.nodes > 1 ? "    count: " + std::to_string(options_.nodes) + "\n" : "";
    text += host + "    devices:\n      - {type: " + yaml_text(type) + ", count: " + count + "}\n    links:\n" +
            nvlinks + pcie + network;
    return {text, {}};
  }

private:
  const Connection& between(int one, int other) const {
    return matrix_.connections[static_cast<std::size_t>(one)][static_cast<std::size_t>(other)];
  }

  std::string nvlinks() {
    const auto groups =
        groups_of(matrix_.gpus, [&](int one, int other) { return between(one, other).kind == ConnectionKind::nvlink; });
    std::string text;
    std::map<int, std::vector<std::string>> pairs; // pairs by number of links
    for (const std::vector<int>& group : groups) {
      if (is_switch(group)) {
        text += nvswitch(group);
        continue;
      }
      for (const int one : group) {
        for (const int other : group) {
          if (one < other && between(one, other).kind == ConnectionKind::nvlink) {
            pairs[between(one, other).links].push_back(list_of({one, other}));
          }
        }
      }
    }
    for (auto most = pairs.rbegin(); most != pairs.rend(); ++most) {
      text += "      - {kind: nvlink-pair, pairs: [" + join(most->second) +
              "], bandwidth: " + gigabytes(nvlink() * most->first) + ", latency: 8 us}\n";
    }
    if (!text.empty()) {
      comments_.push_back("NVLink: " + gigabytes(nvlink()) + " a link and direction: " + nvlink_source_ + ".");
    }
    if (!pairs.empty()) {
      comments_.emplace_back("  Between two devices, assumption: 8 us, the smallest that llm-analysis has.");
    }
    if (text.find("nvswitch") != std::string::npos) {
      comments_.emplace_back(
          "  Through a switch, assumption: 5 us to it and 5 us from it, as Calculon takes for an A100.");
    }
    return text;
  }

  // Whether the group hangs on a switch: then each pair counts all links of a device, and their sum exceeds what a
  // device has.
  bool is_switch(const std::vector<int>& group) const {
    const int most = known_ != nullptr && known_->nvlinks > 0 ? known_->nvlinks : kMostLinksKnown;
    int links = 0;
    for (const int one : group) {
      int own = 0;
      for (const int other : group) {
        if (one != other && between(one, other).kind != ConnectionKind::nvlink) {
          return false;
        }
        own += between(one, other).links;
      }
      links = std::max(links, own);
    }
    return group.size() > 2 && links > most;
  }

  std::string nvswitch(const std::vector<int>& group) {
    int least = between(group[0], group[1]).links, most = least;
    for (const int one : group) {
      for (const int other : group) {
        if (one != other) {
          least = std::min(least, between(one, other).links);
          most = std::max(most, between(one, other).links);
        }
      }
    }
    if (least < most) {
      comments_.push_back("NVSwitch: " + std::to_string(least) + " to " + std::to_string(most) +
                          " links a device; all are taken to have the least.");
    }
    const bool all = static_cast<int>(group.size()) == matrix_.gpus;
    return "      - {kind: nvswitch, devices: " + (all ? "all" : list_of(group)) +
           ", bandwidth: " + gigabytes(nvlink() * least) + ", latency: 5 us}\n";
  }

  BytesPerSecond nvlink() {
    if (options_.nvlink) {
      nvlink_source_ = "as given by --nvlink";
      return *options_.nvlink;
    }
    if (known_ == nullptr || known_->nvlinks == 0) {
      throw InputError({"--nvlink", 0, 0}, "the matrix has NVLinks, but the bandwidth of a link of '" +
                                               options_.device->name +
                                               "' is not known; allowed: --nvlink 'B/s' of one link in one direction");
    }
    nvlink_source_ = known_->nvlink_source;
    return BytesPerSecond{known_->nvlink * 1e9};
  }

  // PIX and PXB mean one root, so one switch; also if only a network card shows it, because NVLink hides it between
  // GPUs.
  std::string pcie() {
    if (!options_.pcie && known_ == nullptr) {
      throw InputError({"--pcie", 0, 0}, "the bandwidth of a PCIe slot of '" + options_.device->name +
                                             "' is not known; allowed: --pcie 'B/s' in one direction");
    }
    const BytesPerSecond rate = options_.pcie.value_or(BytesPerSecond{known_ != nullptr ? known_->pcie * 1e9 : 0});
    comments_.push_back("PCIe: " + gigabytes(rate) + ": " +
                        (options_.pcie ? "as given by --pcie" : std::string(known_->pcie_source)) +
                        "; 2.5 us a link, an assumption.");
    const auto groups = groups_of(static_cast<int>(matrix_.names.size()), [&](int one, int other) {
      return between(one, other).kind == ConnectionKind::one_bridge ||
             between(one, other).kind == ConnectionKind::same_bridges;
    });
    std::string text;
    std::vector<int> alone;
    const std::string speed = ", bandwidth: " + gigabytes(rate) + ", latency: 2.5 us}\n";
    for (const std::vector<int>& group : groups) {
      std::vector<int> devices;
      std::copy_if(group.begin(), group.end(), std::back_inserter(devices), [&](int d) { return d < matrix_.gpus; });
      if (devices.size() > 1) {
        text += "      - {kind: pcie-switch, devices: " + list_of(devices) + speed;
        comments_.push_back("  Below one root by PIX and PXB: " + foreign::names_of(matrix_.names, devices) + ".");
      } else {
        alone.insert(alone.end(), devices.begin(), devices.end());
      }
    }
    if (!alone.empty()) {
      text += "      - {kind: host-link, devices: " + list_of(alone) + speed;
      comments_.push_back("  By themselves at the host (PHB, NODE, SYS, or hidden by NVLink): " +
                          foreign::names_of(matrix_.names, alone) + ".");
    }
    sockets();
    return text;
  }

  void sockets() {
    std::map<std::string, std::vector<int>> sockets;
    for (int gpu = 0; gpu < matrix_.gpus; ++gpu) {
      sockets[matrix_.sockets[static_cast<std::size_t>(gpu)]].push_back(gpu);
    }
    if (sockets.size() < 2) {
      return;
    }
    for (const auto& [node, gpus] : sockets) {
      comments_.push_back("  NUMA node " + (node.empty() ? "not said" : node) + ": " +
                          foreign::names_of(matrix_.names, gpus) + ".");
    }
    comments_.emplace_back("  The link between NUMA nodes is taken to be no narrower than those of the devices.");
  }

  std::string host() {
    constexpr int kProcessors = 64;
    const int processors = matrix_.processors > 0 ? matrix_.processors : kProcessors;
    comments_.push_back(
        "Host: " + std::to_string(processors) +
        (matrix_.processors > 0 ? " logical processors by the affinities" : " processors, an assumption") +
        "; assumptions: 40 GFLOP/s each, memory, disks, power.");
    return "    host:\n      cores: " + std::to_string(processors) +
           "\n      core_speed: 40 GFLOP/s\n      memory: 512 GiB\n      memory_bandwidth: 300 GB/s\n"
           "      disk_bandwidth: 4 GB/s\n      power: {idle: 500 W, core_busy: 5 W, core_spin: 2.5 W}\n";
  }

  // Network cards under the same root as a device.
  int cards_near(int gpu) const {
    int near = 0;
    for (int card = matrix_.gpus; card < static_cast<int>(matrix_.names.size()); ++card) {
      const ConnectionKind kind = between(gpu, card).kind;
      near += kind == ConnectionKind::one_bridge || kind == ConnectionKind::same_bridges ? 1 : 0;
    }
    return near;
  }

  std::string network() {
    if (!options_.network) {
      throw InputError({"--network", 0, 0}, "several nodes need a network, whose speed the matrix does not show; "
                                            "allowed: --network 'B/s' of one card in one direction");
    }
    const int all = static_cast<int>(matrix_.names.size()) - matrix_.gpus;
    bool each = all >= matrix_.gpus;
    for (int gpu = 0; gpu < matrix_.gpus; ++gpu) {
      each = each && cards_near(gpu) > 0;
    }
    const int cards = std::max(1, all);
    comments_.push_back("Network: " + gigabytes(*options_.network) + " a card as given by --network; " +
                        (each ? "each device has one by itself"
                              : "the host has " + std::to_string(cards) + (all == 0 ? ", an assumption" : " as one")) +
                        "; assumptions: one switch, 10 us a link.");
    return std::string("network:\n  topology: switch\n  nic: ") + (each ? "device" : "node") +
           "\n  bandwidth: " + gigabytes(*options_.network * (each ? 1 : cards)) + "\n  latency: 10 us\n";
  }

  void cards() {
    for (const std::string& card : matrix_.cards) {
      comments_.push_back("Card " + card + ".");
    }
  }

  const TopologyMatrix& matrix_;
  const ForeignOptions& options_;
  const DeviceLinks* known_;
  std::string nvlink_source_;
  std::vector<std::string> comments_;
};

} // namespace

ForeignText import_topology(std::string_view text, const std::string& file, const ForeignOptions& options) {
  if (!options.device) {
    throw InputError({"--device", 0, 0}, "the matrix does not say what its GPUs are; allowed: a name in "
                                         "platforms/devices");
  }
  return PlatformWriter(read_topology_matrix(text, file), options).write();
}

} // namespace stagecraft::foreign
