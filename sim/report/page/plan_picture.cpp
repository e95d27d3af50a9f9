// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/plan_picture.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/report/page/json_document.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

// "node" of "node/nvswitch-0"; "" of what stands between nodes.
std::string node_of(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

// A name without its number: "a100-sxm-80gb" of "node/a100-sxm-80gb-3".
std::string stem_of(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  const std::size_t end = last.find_last_not_of("0123456789");
  return end != std::string::npos && end + 1 < last.size() && last[end] == '-' ? last.substr(0, end) : last;
}

// Both directions have one name: "device – host".
std::string joined(std::string from, std::string to) {
  if (to < from) {
    std::swap(from, to);
  }
  return from + " – " + to;
}

// A link of a timeline: "from>to", where a second row of it is "from>to #2".
struct LinkName {
  std::string node, kind, whole;
};
LinkName read_link(const std::string& row, const std::set<std::string>& types) {
  const std::string whole = row.substr(0, row.find(" #"));
  const std::size_t arrow = whole.find('>');
  if (arrow == std::string::npos) {
    return {};
  }
  const std::string from = whole.substr(0, arrow), to = whole.substr(arrow + 1);
  const auto end = [&](const std::string& name) { return types.contains(stem_of(name)) ? "device" : stem_of(name); };
  return {node_of(from) == node_of(to) ? node_of(from) : "", joined(end(from), end(to)), whole};
}

// When each link carries data, and what.
struct Use {
  double seconds = 0;
  std::set<std::string> carries;
};

// The time that at least one of the bars takes.
double covered(std::vector<std::pair<double, double>> bars) {
  std::sort(bars.begin(), bars.end());
  double seconds = 0, until = 0;
  for (const auto& [start, finish] : bars) {
    seconds += std::max(0.0, finish - std::max(start, until));
    until = std::max(until, finish);
  }
  return seconds;
}

std::map<std::string, Use> uses_of(const Tracks& tracks) {
  std::map<std::string, std::vector<std::pair<double, double>>> bars;
  std::map<std::string, Use> uses;
  for (std::size_t track = 0; track < tracks.tracks.size(); ++track) {
    if (tracks.tracks[track].group != "links") {
      continue;
    }
    const std::string name = tracks.tracks[track].name.substr(0, tracks.tracks[track].name.find(" #"));
    for (std::size_t bar = tracks.track_begin[track]; bar < tracks.track_begin[track + 1]; ++bar) {
      bars[name].emplace_back(tracks.start[bar], tracks.finish[bar]);
      uses[name].carries.insert(tracks.kinds[tracks.kind[bar]].category);
    }
  }
  for (auto& [name, use] : uses) {
    use.seconds = covered(std::move(bars[name]));
  }
  return uses;
}

class Picture {
public:
  Picture(const json& document, const json& run, const Tracks* tracks)
      : platform_(object_at(object_at(document, "setting"), "platform")), run_(run) {
    for (const json& type : list_at(platform_, "types")) {
      memory_[text_at(type, "name")] = number_at(type, "memory_bytes");
      types_.insert(text_at(type, "name"));
    }
    if (tracks != nullptr && tracks->end() > 0) {
      uses_ = uses_of(*tracks);
      length_ = tracks->end();
    }
    read_figures();
    read_stages();
  }

  PagePlan draw() {
    PagePlan plan;
    for (const json& kind : list_at(platform_, "nodes")) {
      add_nodes(kind, plan.nodes);
    }
    for (const json& link : list_at(platform_, "network")) {
      add_links(link, {""}, plan.network);
    }
    plan.notes = notes();
    return plan;
  }

private:
  struct Held {
    std::vector<int> stages;
    std::string rank;
  };

  void read_figures() {
    const std::vector<std::string> devices = texts_at(run_, "devices");
    const std::vector<double> peaks = numbers_at(run_, "peak_memory_bytes"), busy = numbers_at(run_, "utilization");
    for (std::size_t at = 0; at < devices.size(); ++at) {
      figures_[devices[at]] = {at < peaks.size() ? peaks[at] : PlanTile::kUnknown,
                               at < busy.size() ? busy[at] : PlanTile::kUnknown};
    }
    for (const json& alike : peaks.empty() ? list_at(run_, "classes") : json::array()) {
      for (const std::string& device : texts_at(alike, "devices")) {
        figures_[device] = {number_at(alike, "peak_memory_bytes"), number_at(alike, "utilization")};
      }
    }
  }

  // Ranks of a stage are counted with tensor parallelism innermost, then context, then copies.
  void read_stages() {
    int number = 0;
    for (const json& stage : list_at(run_, "stages")) {
      const json& layout = object_at(stage, "layout");
      const int tensor = std::max(1, whole_at(layout, "tensor", whole_at(stage, "tensor_parallel", 1)));
      const int context = std::max(1, whole_at(layout, "context", 1)), copies = whole_at(layout, "data", 1);
      int rank = 0;
      for (const std::string& device : texts_at(stage, "devices")) {
        Held& held = held_[device];
        held.stages.push_back(number);
        const auto part = [](const char* what, int at, int of) {
          return of > 1 ? std::string(what) + " " + std::to_string(at + 1) + "/" + std::to_string(of) : std::string();
        };
        held.rank = "";
        for (const std::string& one :
             {part("copy", rank / (tensor * context), copies), part("tokens", rank / tensor % context, context),
              part("part", rank % tensor, tensor)}) {
          held.rank += (held.rank.empty() || one.empty() ? "" : ", ") + one;
        }
        ++rank;
      }
      ++number;
    }
  }

  PlanTile tile_of(const std::string& device, const std::string& type) const {
    PlanTile tile{.device = device, .stages = {}, .rank = {}};
    if (const auto held = held_.find(device); held != held_.end()) {
      tile.stages = held->second.stages;
      tile.rank = held->second.rank;
    }
    if (const auto figures = figures_.find(device); figures != figures_.end()) {
      const auto memory = memory_.find(type);
      tile.memory = memory != memory_.end() ? figures->second.first / memory->second : PlanTile::kUnknown;
      tile.busy = figures->second.second;
    }
    return tile;
  }

  // Nodes of one kind; those that hold the same stages at the same places are one, with the first one's figures.
  void add_nodes(const json& kind, std::vector<PlanNode>& nodes) {
    const std::size_t before = nodes.size();
    for (const std::string& name : texts_at(kind, "names")) {
      PlanNode node{.name = name, .devices = {}};
      int index = 0;
      for (const json& some : list_at(kind, "devices")) {
        const std::string type = text_at(some, "type");
        const int count = whole_at(some, "count", 0);
        node.devices += (node.devices.empty() ? "" : ", ") + std::to_string(count) + " " + type;
        constexpr int kMostTiles = 64;
        for (int at = 0; at < std::min(count, kMostTiles); ++at, ++index) {
          node.tiles.push_back(tile_of(name + "/" + type + "-" + std::to_string(index), type));
        }
      }
      const auto same =
          std::find_if(nodes.begin() + static_cast<std::ptrdiff_t>(before), nodes.end(), [&](const PlanNode& one) {
            return std::equal(one.tiles.begin(), one.tiles.end(), node.tiles.begin(), node.tiles.end(),
                              [](const PlanTile& a, const PlanTile& b) { return a.stages == b.stages; });
          });
      if (same != nodes.end()) {
        ++same->alike;
        members_[same - nodes.begin()].push_back(name);
      } else {
        members_[nodes.size()] = {name};
        nodes.push_back(std::move(node));
      }
    }
    for (std::size_t at = before; at < nodes.size(); ++at) {
      for (const json& link : list_at(kind, "links")) {
        add_links(link, members_[at], nodes[at].links);
      }
    }
  }

  // Adds a kind of links of these nodes, or widens it where the other direction is there.
  void add_links(const json& link, const std::vector<std::string>& nodes, std::vector<PlanLinks>& kinds) {
    const std::string name = joined(text_at(link, "from"), text_at(link, "to"));
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const PlanLinks& one) { return one.name == name; });
    if (found != kinds.end()) {
      found->bandwidth = std::max(found->bandwidth, number_at(link, "bytes_per_second"));
      return;
    }
    PlanLinks& kind = kinds.emplace_back(
        PlanLinks{.name = name, .bandwidth = number_at(link, "bytes_per_second"), .carries = {}, .links = {}});
    std::set<std::string> carries;
    kind.in_use = length_ > 0 ? 0 : PlanTile::kUnknown;
    for (const auto& [whole, use] : uses_) {
      const LinkName read = read_link(whole, types_);
      if (read.kind == name && std::find(nodes.begin(), nodes.end(), read.node) != nodes.end()) {
        kind.in_use = std::max(kind.in_use, use.seconds / length_);
        kind.links.push_back(whole);
        carries.insert(use.carries.begin(), use.carries.end());
      }
    }
    for (const std::string& what : carries) {
      kind.carries += (kind.carries.empty() ? "" : ", ") + (what == "transfer" ? std::string("between stages") : what);
    }
  }

  // "stages 3 to 4 (v100 to p100)".
  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    const json& stages = list_at(run_, "stages");
    std::string crossings;
    std::size_t count = 0;
    for (std::size_t at = 0; at + 1 < stages.size(); ++at) {
      const std::vector<std::string> here = texts_at(stages[at], "devices"),
                                     there = texts_at(stages[at + 1], "devices");
      if (here.empty() || there.empty() || node_of(here.front()) == node_of(there.front())) {
        continue;
      }
      constexpr std::size_t kMost = 6;
      if (count++ < kMost) {
        crossings += (crossings.empty() ? "" : "; ") + std::to_string(at) + " to " + std::to_string(at + 1) + " (" +
                     node_of(here.front()) + " to " + node_of(there.front()) + ")";
      }
    }
    if (count > 0) {
      all.push_back("The pipeline goes from node to node between stages " + crossings +
                    (count > 6 ? " and so on." : "."));
    }
    const json& layout = stages.empty() ? stages : object_at(stages.front(), "layout");
    if (layout.is_object() && whole_at(layout, "tensor", 1) > 1) {
      all.emplace_back("Parts of a copy exchange partial results within every layer.");
    }
    if (layout.is_object() && whole_at(layout, "data", 1) > 1) {
      all.emplace_back("Copies of a stage add up their gradients once a step.");
    }
    return all;
  }

  const json& platform_;
  const json& run_;
  std::map<std::string, double> memory_; // of a device type, B
  std::set<std::string> types_;
  std::map<std::string, Use> uses_;                          // by the name of the link
  double length_ = 0;                                        // of the timeline, s
  std::map<std::string, std::pair<double, double>> figures_; // of a device: peak memory in B, busy share
  std::map<std::string, Held> held_;
  std::map<std::size_t, std::vector<std::string>> members_; // of a node of the picture: the nodes it stands for
};

} // namespace

std::optional<PagePlan> plan_picture(const json& document, const json& run, const Tracks* tracks) {
  const json& platform = object_at(object_at(document, "setting"), "platform");
  if (list_at(platform, "nodes").empty() || list_at(run, "stages").empty()) {
    return {};
  }
  return Picture(document, run, tracks).draw();
}

} // namespace stagecraft
