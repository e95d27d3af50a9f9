// Planning inputs of Piper (Tarnawski et al. 2021): operators with times and memory per tensor degree, with and without
// recompute, and the devices to split them over. docs/formats/piper.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "sim/base/format/json.hpp"
#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/improves.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/import/import.hpp"

namespace stagecraft {
namespace {

constexpr int kMostPiperDevices = 100'000;
constexpr double kBytes = 4; // bytes per element: the file counts bytes, the model elements of fp32
constexpr const char* kDevice = "accelerator";

struct PiperEdge {
  int from = 0, to = 0; // positions of nodes
  double bytes = 0;
};

// A configuration as the file has it; exchanges are keyed by the node at the other end.
struct ReadConfiguration {
  Configuration plain;
  std::map<int, double> incoming, outgoing;
};

struct ReadNode {
  int id = 0;
  std::string type;
  std::vector<ReadConfiguration> configurations;
};

class PiperReader {
public:
  PiperReader(const std::string& bytes, const std::string& file, double scale)
      : file_(file), source_(bytes, file), scale_(scale), document_(json::parse(source_)) {}

  ModelGraph read() {
    json::Object whole(document_, source_, "");
    const int devices = whole.integer("maxDevices", 1, kMostPiperDevices);
    const double memory = within(whole, "maxMemoryPerDevice", physical::kCapacity);
    const double bandwidth = within(whole, "bandwidth", physical::kBandwidth);
    const int micro_batches = whole.integer("mbsInBatch", 1, kMostPiperDevices * 1000);
    read_nodes(whole);
    read_edges(whole);
    whole.finish();
    check_exchanges();
    ModelGraph model = make_model();
    model.micro_batches = micro_batches;
    model.devices = {{kDevice, devices, Bytes{memory}, BytesPerSecond{bandwidth}}};
    return model;
  }

private:
  static double within(json::Object& object, const std::string& key, const yaml::Range& range, double scale = 1) {
    const double value = object.amount(key) * scale;
    if (!physical::holds(range, value)) {
      throw object.error(key, std::string("must be ") + range.text);
    }
    return value;
  }

  void read_nodes(json::Object& whole) {
    const json::Value& nodes = whole.list("nodes");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      json::Object node(nodes[i], source_, "nodes[" + std::to_string(i) + "]");
      ReadNode read;
      read.id = node.integer("id", 0);
      if (!position_.emplace(read.id, static_cast<int>(i)).second) {
        throw node.error("id", std::to_string(read.id) + " is the id of an earlier node too; allowed: each once");
      }
      read.type = node.text("name", "");
      read_configurations(node, read);
      node.finish();
      nodes_.push_back(std::move(read));
    }
    if (nodes_.empty()) {
      throw whole.error("nodes", "is empty; allowed: one node or more");
    }
  }

  void read_configurations(json::Object& node, ReadNode& read) {
    const json::Value& degrees = node.value("TMPCs");
    if (!degrees.is_object() || degrees.empty()) {
      throw node.error("TMPCs", "must be an object from tensor degrees to lists, of one degree or more");
    }
    for (const auto& [key, list] : degrees.items()) {
      const std::string path = node.path("TMPCs") + "." + key;
      const int degree = number_of(key, path, 1, kMostPiperDevices);
      if (!list.is_array()) {
        throw source_.error(path, std::string("must be an array, got ") + list.type_name());
      }
      for (std::size_t i = 0; i < list.size(); ++i) {
        json::Object entry(list[i], source_, path + "[" + std::to_string(i) + "]");
        read.configurations.push_back(read_configuration(entry, degree, read));
      }
    }
  }

  ReadConfiguration read_configuration(json::Object& entry, int degree, const ReadNode& node) {
    ReadConfiguration made;
    Configuration& plain = made.plain;
    plain.tensor_parallel = degree;
    const std::string id = entry.text("id", "vanilla");
    if (id != "vanilla" && id != "activation recomp") {
      throw entry.error("id", "is '" + excerpt(id) + "'; allowed: vanilla, activation recomp");
    }
    plain.recompute = id != "vanilla";
    for (const ReadConfiguration& earlier : node.configurations) {
      if (earlier.plain.tensor_parallel == degree && earlier.plain.recompute == plain.recompute) {
        throw entry.error("id", "is '" + id + "' for the second time at this degree; allowed: each once");
      }
    }
    plain.seconds = Seconds{entry.amount("timePerSample")};
    if (!physical::is_time(plain.seconds.value)) {
      throw entry.error("timePerSample", std::string("must be ") + physical::kTimeText);
    }
    plain.parameters = Bytes{within(entry, "parameterSize", physical::kSize)};
    plain.per_micro_batch = Bytes{within(entry, "memoryUsageA", physical::kSize)};
    plain.resident = Bytes{within(entry, "memoryUsageB", physical::kSize)};
    made.incoming = read_exchanges(entry, "syncTimeFw");
    made.outgoing = read_exchanges(entry, "syncTimeBw");
    entry.finish();
    return made;
  }

  std::map<int, double> read_exchanges(json::Object& entry, const std::string& key) {
    std::map<int, double> exchanges;
    json::Object object(entry.value(key), source_, entry.path(key));
    for (const auto& [other, value] : entry.value(key).items()) {
      exchanges[number_of(other, object.path(other), 0, std::numeric_limits<int>::max())] =
          within(object, other, physical::kSize, scale_);
    }
    return exchanges;
  }

  int number_of(const std::string& key, const std::string& path, int low, int high) const {
    try {
      return parse_integer(key, low, high, {});
    } catch (const InputError&) {
      throw source_.error(path, "a key that must be a whole number of at least " + std::to_string(low));
    }
  }

  void read_edges(json::Object& whole) {
    const json::Value& edges = whole.list("edges");
    std::map<std::pair<int, int>, int> seen;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      json::Object edge(edges[i], source_, "edges[" + std::to_string(i) + "]");
      const auto end = [&](const char* key) {
        const auto found = position_.find(edge.integer(key, 0));
        if (found == position_.end()) {
          throw edge.error(key, "names no node");
        }
        return found->second;
      };
      const PiperEdge read{end("sourceId"), end("destId"), within(edge, "communicationCost", physical::kSize, scale_)};
      edge.finish();
      if (!seen.emplace(std::pair(read.from, read.to), 0).second) {
        throw edge.error("", "joins two nodes for the second time; allowed: once");
      }
      edges_.push_back(read);
    }
  }

  // Every exchange of a configuration must belong to an edge, and every edge must have its exchanges.
  void check_exchanges() const {
    std::vector<std::vector<int>> before(nodes_.size());
    std::vector<std::vector<int>> after(nodes_.size());
    for (const PiperEdge& edge : edges_) {
      before[edge.to].push_back(nodes_[edge.from].id);
      after[edge.from].push_back(nodes_[edge.to].id);
    }
    const auto check = [&](const std::map<int, double>& exchanges, std::vector<int> ends, std::size_t node,
                           const char* key) {
      std::sort(ends.begin(), ends.end());
      const bool same = std::equal(exchanges.begin(), exchanges.end(), ends.begin(), ends.end(),
                                   [](const auto& exchange, int end) { return exchange.first == end; });
      if (!same) {
        throw source_.error("nodes[" + std::to_string(node) + "]",
                            std::string(key) + " does not name the node's neighbours; allowed: one entry per edge");
      }
    };
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (const ReadConfiguration& configuration : nodes_[node].configurations) {
        check(configuration.incoming, before[node], node, "syncTimeFw");
        check(configuration.outgoing, after[node], node, "syncTimeBw");
      }
    }
  }

  static const ReadConfiguration* find(const ReadNode& node, int degree, bool recompute) {
    for (const ReadConfiguration& one : node.configurations) {
      if (one.plain.tensor_parallel == degree && one.plain.recompute == recompute) {
        return &one;
      }
    }
    return nullptr;
  }

  // The configuration of a degree without recompute, or else the one with it.
  static const ReadConfiguration* plainest(const ReadNode& node, int degree) {
    const ReadConfiguration* vanilla = find(node, degree, false);
    return vanilla != nullptr ? vanilla : find(node, degree, true);
  }

  // Recompute adds one forward pass, so forward is the difference of the two; a third of the time where the file has
  // only one.
  static MeasuredTime measured(const ReadNode& node, int degree) {
    const ReadConfiguration* vanilla = find(node, degree, false);
    const ReadConfiguration* again = find(node, degree, true);
    if (vanilla == nullptr && again == nullptr) {
      return {Seconds{kInfinity}, Seconds{kInfinity}};
    }
    const Seconds whole = plainest(node, degree)->plain.seconds;
    const Seconds forward = vanilla != nullptr && again != nullptr
                                ? std::clamp(again->plain.seconds - whole, Seconds{0}, whole)
                                : whole / 3;
    return {forward, whole - forward};
  }

  std::vector<Operator> make_operators() const {
    std::vector<double> output(nodes_.size(), 0.0);
    for (const PiperEdge& edge : edges_) {
      output[edge.from] = std::max(output[edge.from], edge.bytes);
    }
    std::vector<Operator> operators;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Operator made;
      made.name = std::to_string(nodes_[i].id);
      made.type = nodes_[i].type;
      made.output_elements = output[i] / kBytes;
      if (const ReadConfiguration* one = plainest(nodes_[i], 1)) {
        made.parameters = one->plain.parameters.value / kBytes;
        made.stash_elements = one->plain.per_micro_batch.value / kBytes;
        made.resident_bytes = one->plain.resident.value;
      }
      operators.push_back(std::move(made));
    }
    return operators;
  }

  // One profile per tensor degree that any node has, degree 1 first.
  std::vector<Profile> make_profiles(const std::vector<int>& node_of) const {
    std::map<int, Profile> profiles;
    profiles[1] = {};
    for (const ReadNode& node : nodes_) {
      for (const ReadConfiguration& one : node.configurations) {
        profiles[one.plain.tensor_parallel] = {};
      }
    }
    std::vector<Profile> list;
    for (auto& [degree, profile] : profiles) {
      profile.device = kDevice;
      profile.samples = 1;
      profile.tensor_parallel = degree;
      for (const int node : node_of) {
        profile.times.push_back(measured(nodes_[node], degree));
      }
      list.push_back(std::move(profile));
    }
    return list;
  }

  ModelGraph make_model() const {
    std::vector<std::pair<int, int>> ends;
    std::map<std::pair<int, int>, double> bytes_of;
    for (const PiperEdge& edge : edges_) {
      ends.emplace_back(edge.from, edge.to);
      bytes_of[{edge.from, edge.to}] = edge.bytes;
    }
    const std::string name = std::filesystem::path(file_).stem().string();
    ModelGraph model = make_graph(name, make_operators(), std::move(ends), {}, {file_, 1, 1},
                                  [&](int node) { return source_.place("nodes[" + std::to_string(node) + "]"); });
    std::vector<int> node_of; // node of each operator: the graph is sorted, the nodes are not
    for (const Operator& op : model.operators) {
      node_of.push_back(position_.at(std::stoi(op.name)));
    }
    for (OperatorId op = 0; op < model.size(); ++op) {
      const ReadNode& node = nodes_[node_of[op]];
      auto& configurations = model.configurations.emplace_back();
      for (const ReadConfiguration& read : node.configurations) {
        Configuration& made = configurations.emplace_back(read.plain);
        for (const OperatorId before : model.predecessors[op]) {
          made.incoming.push_back(Bytes{read.incoming.at(nodes_[node_of[before]].id)});
        }
        for (const OperatorId after : model.successors[op]) {
          made.outgoing.push_back(Bytes{read.outgoing.at(nodes_[node_of[after]].id)});
        }
      }
      auto& edges = model.edge_bytes.emplace_back();
      for (const OperatorId after : model.successors[op]) {
        edges.push_back(Bytes{bytes_of.at({node_of[op], node_of[after]})});
      }
    }
    model.profiles = make_profiles(node_of);
    model.memory_given = true;
    return model;
  }

  const std::string& file_;
  json::Source source_;
  double scale_;
  json::Value document_;
  std::vector<ReadNode> nodes_;
  std::map<int, int> position_; // position of each node id
  std::vector<PiperEdge> edges_;
};

} // namespace

ModelGraph import_piper(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  return PiperReader(bytes, file, options.cost_scale.value_or(1)).read();
}

} // namespace stagecraft
