// Problems of dnn-partitioning (Tarnawski et al. 2020): docs/formats/dnn-partitioning.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "sim/base/format/json.hpp"
#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/improves.hpp"
#include "sim/workload/import/import.hpp"

namespace stagecraft {
namespace {

constexpr double kMillisecond = 1e-3;
constexpr double kElementBytes = 4;         // fp32
constexpr double kBandwidth = 2147483648.0; // B/s; turns the file's costs into bytes: 2 GiB/s, the authors' value
constexpr double kSmallest = 1e-6;          // ms; a node that takes less counts as taking no time
constexpr double kMostBytes = 1e15;         // bytes
constexpr double kLongest = physical::kLongestTime / kMillisecond; // ms; there is no least: short nodes are added up
constexpr const char* kAccelerator = "fpga";                       // device types as the file names them
constexpr const char* kProcessor = "cpu";

struct Node {
  std::string name;
  bool on_accelerator = true, backward = false;
  double processor_ms = 0, accelerator_ms = 0;
  double size = 0;      ///< bytes
  double output_ms = 0; ///< cost of each edge that leaves the node
  int group = 0;        ///< number of the group of nodes that stay together with it
};

using Edges = std::vector<std::pair<int, int>>;

struct PartitioningDocument {
  std::vector<Node> nodes;
  Edges edges; ///< as positions in `nodes`
  double memory = 0;
  int accelerators = 0, processors = 0;
  int groups = 0;
};

double size(json::Object& object, const std::string& key, double otherwise) {
  const double value = object.amount(key, otherwise);
  if (value > kMostBytes) {
    throw object.error(key, "must be at most 1e15");
  }
  return value;
}

double milliseconds(json::Object& object, const std::string& key) {
  const double value = object.amount(key);
  if (value > kLongest) {
    throw object.error(key, "must be at most 1e12");
  }
  return value;
}

// Reads nodes. Numbers their groups: first the colour classes, ascending, then the nodes without a class in the order
// of the file.
class NodeReader {
public:
  NodeReader(const json::Source& source, PartitioningDocument& document) : source_(source), document_(document) {}

  void read(const json::Value& list) {
    constexpr int kLowest = std::numeric_limits<int>::min();
    std::vector<std::optional<int>> colors;
    for (std::size_t i = 0; i < list.size(); ++i) {
      json::Object object(list[i], source_, "nodes[" + std::to_string(i) + "]");
      const int id = object.integer("id", kLowest);
      if (!index_.emplace(id, static_cast<int>(i)).second) {
        throw object.error("id", "is " + std::to_string(id) + ", like that of nodes[" + std::to_string(index_.at(id)) +
                                     "]; allowed: each id once");
      }
      Node node;
      node.name = object.text("name", "node" + std::to_string(id));
      node.name += names_.insert(node.name).second ? "" : " (" + std::to_string(id) + ")";
      names_.insert(node.name);
      node.on_accelerator = object.flag("supportedOnFpga");
      node.processor_ms = milliseconds(object, "cpuLatency");
      node.accelerator_ms = milliseconds(object, "fpgaLatency");
      node.backward = object.flag("isBackwardNode");
      node.size = size(object, "size", 0);
      colors.push_back(object.has("colorClass") ? std::optional(object.integer("colorClass", kLowest)) : std::nullopt);
      object.find("layerId"); // not needed
      object.finish();
      document_.nodes.push_back(std::move(node));
    }
    number_groups(colors);
  }

  int find(json::Object& edge, const std::string& key) const {
    const int id = edge.integer(key, std::numeric_limits<int>::min());
    const auto found = index_.find(id);
    if (found == index_.end()) {
      throw edge.error(key, "is " + std::to_string(id) + ", which no node has");
    }
    return found->second;
  }

private:
  void number_groups(const std::vector<std::optional<int>>& colors) {
    std::map<int, int> group_of;
    for (const auto& color : colors) {
      if (color) {
        group_of.emplace(*color, 0);
      }
    }
    for (auto& [color, group] : group_of) {
      group = document_.groups++;
    }
    for (std::size_t i = 0; i < colors.size(); ++i) {
      document_.nodes[i].group = colors[i] ? group_of.at(*colors[i]) : document_.groups++;
    }
  }

  const json::Source& source_;
  PartitioningDocument& document_;
  std::map<int, int> index_;
  std::set<std::string> names_;
};

void read_edges(const json::Value& list, const json::Source& source, const NodeReader& nodes, double scale,
                PartitioningDocument& document) {
  constexpr double kTolerance = 1e-6; // ms, before scaling
  std::vector<bool> known(document.nodes.size(), false);
  for (std::size_t i = 0; i < list.size(); ++i) {
    json::Object object(list[i], source, "edges[" + std::to_string(i) + "]");
    const int from = nodes.find(object, "sourceId");
    const int to = nodes.find(object, "destId");
    const double cost = milliseconds(object, "cost");
    object.find("size"); // not needed: the cost implies it
    object.finish();
    Node& begin = document.nodes[from];
    if (known[from] && std::abs(begin.output_ms - cost * scale) > kTolerance * scale) {
      throw object.error("cost", "differs from that of another edge out of '" + begin.name +
                                     "'; allowed: the same for all, the cost of its one output");
    }
    if (begin.backward && !document.nodes[to].backward) {
      throw object.error("", "leads from the backward node '" + begin.name + "' to the forward node '" +
                                 document.nodes[to].name + "'; allowed: forward to any, backward to backward");
    }
    begin.output_ms = known[from] ? begin.output_ms : cost * scale;
    known[from] = true;
    document.edges.emplace_back(from, to);
  }
}

PartitioningDocument read_document(const json::Source& source, double scale) {
  constexpr int kMostDevices = 100'000;
  const json::Value value = json::parse(source);
  json::Object object(value, source, "");
  PartitioningDocument document;
  object.value("maxSizePerFPGA"); // must be there
  document.memory = size(object, "maxSizePerFPGA", 0);
  document.accelerators = object.integer("maxFPGAs", 0, kMostDevices);
  document.processors = object.integer("maxCPUs", 0, kMostDevices);
  if (document.accelerators + document.processors == 0) {
    throw object.error("maxFPGAs", "and maxCPUs are 0; allowed: at least one device");
  }
  NodeReader nodes(source, document);
  nodes.read(object.list("nodes"));
  read_edges(object.list("edges"), source, nodes, scale, document);
  object.finish();
  return document;
}

// Throws InputError naming the nodes of a cycle, if there is one.
void check_acyclic(const PartitioningDocument& document, const json::Source& source) {
  std::vector<Operator> operators(document.nodes.size());
  for (std::size_t i = 0; i < operators.size(); ++i) {
    operators[i].name = document.nodes[i].name;
  }
  make_graph("", std::move(operators), document.edges, {}, {source.file(), 1, 1},
             [&](int node) { return source.place("nodes[" + std::to_string(node) + "]"); });
}

// Groups of nodes that stay together, merged step by step. Only forward nodes give an order: a group's backward nodes
// run where its forward nodes do.
class Groups {
public:
  explicit Groups(const PartitioningDocument& document)
      : document_(document), parent_(document.groups), forward_ms_(document.groups, 0.0),
        backward_ms_(document.groups, 0.0), forward_nodes_(document.groups, 0),
        feeds_backward_(document.groups, false) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Node& node : document.nodes) {
      (node.backward ? backward_ms_ : forward_ms_)[node.group] += node.processor_ms + node.accelerator_ms;
      forward_nodes_[node.group] += node.backward ? 0 : 1;
    }
    link();
    merge_cycles();
    merge_leaves();
  }

  int of(int node) const { return root(document_.nodes[node].group); }

  /// Edges between groups, without repetition.
  std::set<std::pair<int, int>> edges() const {
    std::set<std::pair<int, int>> all;
    for (const auto& [from, to] : edges_) {
      if (root(from) != root(to)) {
        all.emplace(root(from), root(to));
      }
    }
    return all;
  }

private:
  int root(int group) const {
    while (parent_[group] != group) {
      group = parent_[group];
    }
    return group;
  }

  // Collects edges among forward nodes. A group of backward nodes only counts as a forward node that takes no time,
  // with the edges of its backward nodes reversed.
  void link() {
    for (const auto& [from, to] : document_.edges) {
      const Node& a = document_.nodes[from];
      const Node& b = document_.nodes[to];
      if (!a.backward && !b.backward) {
        edges_.emplace_back(a.group, b.group);
      } else if (!a.backward) {
        feeds_backward_[a.group] = true;
      } else if (forward_nodes_[a.group] == 0 || forward_nodes_[b.group] == 0) {
        edges_.emplace_back(b.group, a.group);
      }
    }
  }

  // Merges strongly connected groups (Kosaraju 1978): the second pass walks the reversed graph in reverse order of
  // finishing.
  void merge_cycles() {
    std::vector<std::vector<int>> after(parent_.size());
    std::vector<std::vector<int>> before(parent_.size());
    for (const auto& [from, to] : edges_) {
      after[from].push_back(to);
      before[to].push_back(from);
    }
    std::vector<int> finished;
    std::vector<bool> seen(parent_.size(), false);
    for (std::size_t group = 0; group < parent_.size(); ++group) {
      walk(after, static_cast<int>(group), seen, [&](int one) { finished.push_back(one); });
    }
    seen.assign(parent_.size(), false);
    for (auto group = finished.rbegin(); group != finished.rend(); ++group) {
      std::vector<int> component;
      walk(before, *group, seen, [&](int one) { component.push_back(one); });
      const int first = component.empty() ? 0 : *std::min_element(component.begin(), component.end());
      for (const int one : component) {
        merge(one, first);
      }
    }
  }

  // Depth-first search from `start` over groups not seen; calls `leave` for each group after all that it leads to.
  template <class Leave>
  static void walk(const std::vector<std::vector<int>>& next, int start, std::vector<bool>& seen, const Leave& leave) {
    std::vector<std::pair<int, std::size_t>> stack; // group, edges taken
    const auto enter = [&](int group) {
      if (!seen[group]) {
        seen[group] = true;
        stack.emplace_back(group, 0);
      }
    };
    enter(start);
    while (!stack.empty()) {
      auto& [group, taken] = stack.back();
      if (taken < next[group].size()) {
        enter(next[group][taken++]);
      } else {
        leave(group);
        stack.pop_back();
      }
    }
  }

  // Merges a group into its only neighbour if it takes no time, forward or backward, and feeds no backward node.
  void merge_leaves() {
    std::vector<std::set<int>> touching(parent_.size());
    for (const auto& [from, to] : edges()) {
      touching[from].insert(to);
      touching[to].insert(from);
    }
    std::vector<int> leaves(parent_.size());
    std::iota(leaves.rbegin(), leaves.rend(), 0);
    while (!leaves.empty()) {
      const int leaf = leaves.back();
      leaves.pop_back();
      if (parent_[leaf] != leaf || touching[leaf].size() != 1 || feeds_backward_[leaf] ||
          forward_ms_[leaf] >= kSmallest || backward_ms_[leaf] >= kSmallest) {
        continue;
      }
      const int neighbour = *touching[leaf].begin();
      merge(leaf, neighbour);
      touching[neighbour].erase(leaf);
      leaves.push_back(neighbour);
    }
  }

  void merge(int group, int into) {
    if (group == into) {
      return;
    }
    parent_[group] = into;
    forward_ms_[into] += forward_ms_[group];
    backward_ms_[into] += backward_ms_[group];
    feeds_backward_[into] = feeds_backward_[into] || feeds_backward_[group];
  }

  const PartitioningDocument& document_;
  std::vector<int> parent_;
  std::vector<double> forward_ms_, backward_ms_; ///< sums over processor and accelerator
  std::vector<int> forward_nodes_;
  std::vector<bool> feeds_backward_;
  Edges edges_;
};

// One operator per group, with the sums over its nodes.
struct Contracted {
  std::vector<Operator> operators;
  std::vector<MeasuredTime> accelerator, processor;
  std::vector<int> of_node; ///< position of each node's operator
};

std::string name_of(const PartitioningDocument& document, const std::vector<int>& nodes) {
  int best = nodes.front();
  const auto rank = [&](int node) {
    const Node& what = document.nodes[node];
    return std::pair(!what.backward, what.accelerator_ms);
  };
  for (const int node : nodes) {
    best = rank(node) > rank(best) ? node : best;
  }
  return document.nodes[best].name;
}

Contracted contract(const PartitioningDocument& document, const Groups& groups) {
  std::map<int, std::vector<int>> nodes_of; // nodes by group
  for (std::size_t node = 0; node < document.nodes.size(); ++node) {
    nodes_of[groups.of(static_cast<int>(node))].push_back(static_cast<int>(node));
  }
  Contracted contracted;
  contracted.of_node.resize(document.nodes.size());
  for (const auto& [group, nodes] : nodes_of) {
    Operator op;
    op.name = name_of(document, nodes);
    op.type = nodes.size() == 1 ? "node" : std::to_string(nodes.size()) + " nodes";
    MeasuredTime accelerator;
    MeasuredTime processor;
    for (const int at : nodes) {
      const Node& node = document.nodes[at];
      (node.backward ? accelerator.backward : accelerator.forward) +=
          Seconds{node.on_accelerator ? node.accelerator_ms * kMillisecond : kInfinity};
      (node.backward ? processor.backward : processor.forward) += Seconds{node.processor_ms * kMillisecond};
      op.resident_bytes += node.size;
      contracted.of_node[at] = static_cast<int>(contracted.operators.size());
    }
    if (accelerator.backward.value == kInfinity) {
      accelerator.forward = accelerator.backward;
    }
    contracted.operators.push_back(std::move(op));
    contracted.accelerator.push_back(accelerator);
    contracted.processor.push_back(processor);
  }
  return contracted;
}

double elements_sent_in(double cost_ms) { return cost_ms * kMillisecond * kBandwidth / kElementBytes; }

// For each node, the operators that make or use its output.
std::vector<std::set<int>> ends_of(const PartitioningDocument& document, const std::vector<int>& of_node,
                                   bool forward_only) {
  std::vector<std::set<int>> ends(document.nodes.size());
  for (const auto& [from, to] : document.edges) {
    if (!forward_only || !document.nodes[to].backward) {
      ends[from].insert({of_node[from], of_node[to]});
    }
  }
  return ends;
}

// The tensors that more than one operator makes or uses; tensors with the same operators are added up into one.
std::vector<SharedTensor> shared_tensors(const PartitioningDocument& document, const std::vector<int>& of_node) {
  std::map<std::vector<int>, double> cost_of;
  const auto ends = ends_of(document, of_node, false);
  for (std::size_t node = 0; node < document.nodes.size(); ++node) {
    if (ends[node].size() > 1 && document.nodes[node].output_ms > 0) {
      cost_of[{ends[node].begin(), ends[node].end()}] += document.nodes[node].output_ms;
    }
  }
  std::vector<SharedTensor> tensors;
  for (const auto& [at, cost] : cost_of) {
    tensors.push_back({elements_sent_in(cost), at});
  }
  return tensors;
}

} // namespace

ModelGraph import_dnn_partitioning(std::string_view text, const std::string& file, const ImportOptions& options) {
  const Where whole{file, 1, 1};
  const json::Source source(text, file);
  const PartitioningDocument document = read_document(source, options.cost_scale.value_or(1));
  check_acyclic(document, source);
  const Groups groups(document);
  Contracted contracted = contract(document, groups);
  const auto forward_ends = ends_of(document, contracted.of_node, true);
  for (std::size_t node = 0; node < document.nodes.size(); ++node) {
    if (!document.nodes[node].backward && forward_ends[node].size() > 1) {
      contracted.operators[contracted.of_node[node]].output_elements +=
          elements_sent_in(document.nodes[node].output_ms);
    }
  }
  std::map<int, int> of_group;
  for (std::size_t node = 0; node < document.nodes.size(); ++node) {
    of_group[groups.of(static_cast<int>(node))] = contracted.of_node[node];
  }
  Edges edges;
  for (const auto& [from, to] : groups.edges()) {
    edges.emplace_back(of_group.at(from), of_group.at(to));
  }
  const std::vector<Operator> given = contracted.operators;
  ModelGraph graph =
      make_graph(std::filesystem::path(file).stem().string(), std::move(contracted.operators), std::move(edges),
                 {{kAccelerator, 0, Precision::fp32, std::move(contracted.accelerator)},
                  {kProcessor, 0, Precision::fp32, std::move(contracted.processor)}},
                 whole);
  std::map<std::string, OperatorId> sorted; // operators by name, since make_graph() has sorted them topologically
  for (OperatorId op = 0; op < graph.size(); ++op) {
    sorted[graph.operators[op].name] = op;
  }
  graph.tensors = shared_tensors(document, contracted.of_node);
  for (SharedTensor& tensor : graph.tensors) {
    for (OperatorId& end : tensor.ends) {
      end = sorted.at(given[end].name);
    }
    std::sort(tensor.ends.begin(), tensor.ends.end());
  }
  graph.description = "dnn-partitioning problem; a sample is one whole micro-batch";
  graph.memory_given = true;
  if (document.accelerators > 0) {
    graph.devices.push_back({kAccelerator, document.accelerators, Bytes{document.memory}, BytesPerSecond{kBandwidth}});
  }
  if (document.processors > 0) {
    graph.devices.push_back({kProcessor, document.processors, Bytes{kInfinity}, BytesPerSecond{kInfinity}});
  }
  return graph;
}

} // namespace stagecraft
