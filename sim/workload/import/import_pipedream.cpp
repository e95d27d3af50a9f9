// PipeDream's profile graphs: docs/formats/pipedream.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/import/import.hpp"
#include "sim/workload/import/pipedream.hpp"

namespace stagecraft {
namespace {

constexpr double kProfiledElementBytes = 4; // profiles are taken in fp32
constexpr double kSecondsInMillisecond = 1e-3;
constexpr std::string_view kSeparator = " -- ";

struct ProfiledNode {
  std::string id, description;
  double forward = 0, backward = 0;      ///< ms per minibatch
  double activation = 0, parameters = 0; ///< bytes
  int stage = -1;                        ///< -1 where the file gives none
  Where where;
};

struct ProfiledEdge {
  std::string from, to;
  Where where;
};

// Finds the kernel kind from an operator's type: the first row whose word occurs in it decides.
struct TypeRow {
  std::string_view word;
  KernelKind kind;
};
constexpr std::array kTypes = {
    TypeRow{"LSTM", KernelKind::recurrent},       TypeRow{"GRU", KernelKind::recurrent},
    TypeRow{"RNN", KernelKind::recurrent},        TypeRow{"Recurrent", KernelKind::recurrent},
    TypeRow{"Attention", KernelKind::attention},  TypeRow{"Conv", KernelKind::convolution},
    TypeRow{"Linear", KernelKind::matmul},        TypeRow{"Classifier", KernelKind::matmul},
    TypeRow{"Norm", KernelKind::normalization},   TypeRow{"Softmax", KernelKind::softmax},
    TypeRow{"CrossEntropy", KernelKind::softmax}, TypeRow{"Pool", KernelKind::pooling},
    TypeRow{"Embedding", KernelKind::embedding},  TypeRow{"Dropout", KernelKind::elementwise},
    TypeRow{"LU", KernelKind::elementwise},       TypeRow{"Sigmoid", KernelKind::elementwise},
    TypeRow{"Tanh", KernelKind::elementwise},     TypeRow{"Add", KernelKind::elementwise},
    TypeRow{"Mul", KernelKind::elementwise},      TypeRow{"View", KernelKind::reshape},
    TypeRow{"Size", KernelKind::reshape},         TypeRow{"Concat", KernelKind::reshape},
    TypeRow{"Flatten", KernelKind::reshape},      TypeRow{"Reshape", KernelKind::reshape},
    TypeRow{"Transpose", KernelKind::reshape},    TypeRow{"__getitem__", KernelKind::reshape},
};

// A part of one line, with its place.
struct Piece {
  std::string_view text;
  Where where;

  Piece part(size_t from, size_t length) const {
    return {text.substr(from, length), {where.file, where.line, where.column + static_cast<int>(from)}};
  }
};

Piece trimmed(const Piece& piece) {
  const size_t first = piece.text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) {
    return piece.part(0, 0);
  }
  return piece.part(first, piece.text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<Piece> split(const Piece& piece, std::string_view separator) {
  std::vector<Piece> parts;
  size_t from = 0;
  for (size_t at = piece.text.find(separator); at != std::string_view::npos; at = piece.text.find(separator, from)) {
    parts.push_back(trimmed(piece.part(from, at - from)));
    from = at + separator.size();
  }
  parts.push_back(trimmed(piece.part(from, std::string_view::npos)));
  return parts;
}

std::string in_quotes(std::string_view text) { return "'" + excerpt(text) + "'"; }

double parse_amount(const Piece& piece, std::string_view key) {
  const double value = parse_number(piece.text, piece.where);
  const bool is_time = key.ends_with("_time");
  const bool allowed =
      is_time ? physical::is_time(value * kSecondsInMillisecond) : physical::holds(physical::kSize, value);
  if (!allowed) {
    throw InputError(piece.where, "'" + std::string(key) + "' must be " +
                                      (is_time ? "0, or 1e-6 ms to 1e12 ms" : physical::kSize.text) + ", got " +
                                      in_quotes(piece.text));
  }
  return value;
}

// Sum of the sizes of one or several outputs: "6.0" or "[1.0; 2.0]".
double parse_sizes(const Piece& piece, std::string_view key) {
  if (!piece.text.starts_with('[')) {
    return parse_amount(piece, key);
  }
  if (!piece.text.ends_with(']')) {
    throw InputError(piece.where, "a list without its ']'");
  }
  double sum = 0;
  for (const Piece& item : split(piece.part(1, piece.text.size() - 2), ";")) {
    sum += parse_amount(item, key);
  }
  return sum;
}

struct Field {
  std::string_view key;
  double ProfiledNode::*value;
};
constexpr std::array kFields = {
    Field{"forward_compute_time", &ProfiledNode::forward},
    Field{"backward_compute_time", &ProfiledNode::backward},
    Field{"activation_size", &ProfiledNode::activation},
    Field{"parameter_size", &ProfiledNode::parameters},
};

std::string known_fields() { return "forward_compute_time, backward_compute_time, activation_size, parameter_size"; }

void parse_fields(const Piece& line, ProfiledNode& node) {
  std::array<bool, kFields.size()> given{};
  for (const Piece& item : split(line, ",")) {
    const size_t equals = item.text.find('=');
    const std::string_view key = item.text.substr(0, equals);
    const auto row = std::find_if(kFields.begin(), kFields.end(), [&](const Field& field) { return field.key == key; });
    if (equals == std::string_view::npos || row == kFields.end()) {
      throw InputError(item.where, "unknown field " + in_quotes(key) + "; known: " + known_fields());
    }
    if (std::exchange(given[row - kFields.begin()], true)) {
      throw InputError(item.where, "duplicate field " + in_quotes(key) + "; allowed: each field once");
    }
    node.*(row->value) = parse_sizes(trimmed(item.part(equals + 1, std::string_view::npos)), key);
  }
  for (size_t i = 0; i < kFields.size(); ++i) {
    if (!given[i]) {
      throw InputError(line.where, "missing field '" + std::string(kFields[i].key) + "'; needed: " + known_fields());
    }
  }
}

ProfiledNode parse_node(const Piece& line) {
  const std::vector<Piece> parts = split(line, kSeparator);
  constexpr std::string_view kStage = "stage_id=";
  const bool staged = parts.size() == 4 && parts[3].text.starts_with(kStage);
  if (parts.size() != 3 && !staged) {
    throw InputError(line.where, "neither a node nor an edge; allowed: 'id -- description -- fields' with or without "
                                 "' -- stage_id=k', or a tab and 'id -- id'");
  }
  if (parts[0].text.empty()) {
    throw InputError(parts[0].where, "a node without an id");
  }
  ProfiledNode node;
  node.where = line.where;
  node.id = parts[0].text;
  node.description = parts[1].text;
  parse_fields(parts[2], node);
  if (staged) {
    const Piece number = parts[3].part(kStage.size(), std::string_view::npos);
    node.stage = parse_integer(number.text, 0, kMostPipedreamStage, number.where);
  }
  return node;
}

ProfiledEdge parse_edge(const Piece& line) {
  const std::vector<Piece> parts = split(line, kSeparator);
  if (parts.size() != 2 || parts[0].text.empty() || parts[1].text.empty()) {
    throw InputError(line.where, "not an edge; allowed: a tab and 'id -- id'");
  }
  return {std::string(parts[0].text), std::string(parts[1].text), line.where};
}

// Orders "node2" before "node10": runs of digits compare by length, then by text.
bool natural_less(const std::string& a, const std::string& b) {
  const auto digits_at = [](const std::string& text, size_t at) {
    size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
      ++end;
    }
    return text.substr(at, end - at);
  };
  size_t i = 0;
  while (i < a.size() && i < b.size()) {
    const std::string x = digits_at(a, i);
    const std::string y = digits_at(b, i);
    if (!x.empty() && !y.empty()) {
      if (x != y) {
        return x.size() != y.size() ? x.size() < y.size() : x < y;
      }
      i += x.size();
    } else if (a[i] != b[i]) {
      return a[i] < b[i];
    } else {
      ++i;
    }
  }
  return a.size() < b.size();
}

struct ProfileDocument {
  std::vector<ProfiledNode> nodes; ///< in natural order of their ids
  std::vector<ProfiledEdge> edges;
};

ProfileDocument parse_document(std::string_view text, const std::string& file) {
  check_utf8(text, file);
  ProfileDocument document;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const Piece raw{text.substr(0, end), {file, number, 1}};
    text.remove_prefix(std::min(end + 1, text.size()));
    const Piece line = trimmed(raw);
    if (line.text.empty()) {
      continue;
    }
    if (raw.text.starts_with('\t')) {
      document.edges.push_back(parse_edge(line));
    } else {
      document.nodes.push_back(parse_node(line));
    }
  }
  std::stable_sort(document.nodes.begin(), document.nodes.end(),
                   [](const ProfiledNode& a, const ProfiledNode& b) { return natural_less(a.id, b.id); });
  return document;
}

// Edges as positions in document.nodes.
std::vector<std::pair<int, int>> resolve_edges(const ProfileDocument& document) {
  std::map<std::string, int> index;
  for (const ProfiledNode& node : document.nodes) {
    const auto [first, fresh] = index.emplace(node.id, static_cast<int>(index.size()));
    if (!fresh) {
      throw InputError(node.where, "duplicate node " + in_quotes(node.id) + ", first on line " +
                                       std::to_string(document.nodes[first->second].where.line) +
                                       "; allowed: each id once");
    }
  }
  const auto find = [&](const std::string& id, const Where& where) {
    const auto found = index.find(id);
    if (found == index.end()) {
      throw InputError(where, "an edge names the node " + in_quotes(id) + ", which no line describes");
    }
    return found->second;
  };
  std::vector<std::pair<int, int>> edges;
  for (const ProfiledEdge& edge : document.edges) {
    edges.emplace_back(find(edge.from, edge.where), find(edge.to, edge.where));
  }
  return edges;
}

// Which nodes stay: all but placeholders of the model's inputs and parts of a tuple that nothing reads.
std::vector<bool> nodes_kept(const ProfileDocument& document, const std::vector<std::pair<int, int>>& edges) {
  std::vector<bool> kept(document.nodes.size());
  for (size_t v = 0; v < kept.size(); ++v) {
    kept[v] = !document.nodes[v].description.starts_with("Input");
  }
  for (bool changed = true; changed;) {
    std::vector<bool> read(kept.size(), false);
    for (const auto& [from, to] : edges) {
      read[from] = read[from] || kept[to];
    }
    changed = false;
    for (size_t v = 0; v < kept.size(); ++v) {
      if (kept[v] && !read[v] && document.nodes[v].description.starts_with("__getitem__")) {
        kept[v] = false;
        changed = true;
      }
    }
  }
  return kept;
}

KernelKind kind_of(std::string_view type) {
  const auto row = std::find_if(kTypes.begin(), kTypes.end(),
                                [&](const TypeRow& known) { return type.find(known.word) != type.npos; });
  return row == kTypes.end() ? KernelKind::other : row->kind;
}

// The file gives only times; one launch is assumed for each pass that takes time.
Operator make_operator(const ProfiledNode& node) {
  Operator op;
  op.name = node.id;
  op.type = node.description.substr(0, node.description.find('('));
  op.kind = kind_of(op.type);
  op.parameters = node.parameters / kProfiledElementBytes;
  op.output_elements = node.activation / kProfiledElementBytes;
  op.forward.kernels = node.forward > 0 ? 1 : 0;
  op.backward_input.kernels = node.backward > 0 ? 1 : 0;
  op.backward_weight.kernels = node.backward > 0 && node.parameters > 0 ? 1 : 0;
  return op;
}

// The model's name: "vgg16" for vgg16.graph.txt and for vgg16/graph.txt, which PipeDream writes.
std::string name_of(const std::filesystem::path& file) {
  const std::string stem = file.stem().stem().string();
  return stem == "graph" && file.has_parent_path() ? file.parent_path().filename().string() : stem;
}

} // namespace

std::vector<StagedNode> read_pipedream_stages(std::string_view text, const std::string& file) {
  const ProfileDocument document = parse_document(text, file);
  const std::vector<bool> kept = nodes_kept(document, resolve_edges(document));
  std::vector<StagedNode> nodes;
  for (size_t v = 0; v < kept.size(); ++v) {
    if (kept[v]) {
      const ProfiledNode& node = document.nodes[v];
      nodes.push_back({node.id, node.stage, node.where});
    }
  }
  return nodes;
}

ModelGraph import_pipedream(std::string_view text, const std::string& file) {
  const Where whole{file, 1, 1};
  const ProfileDocument document = parse_document(text, file);
  const std::vector<std::pair<int, int>> all_edges = resolve_edges(document);
  const std::vector<bool> kept = nodes_kept(document, all_edges);

  std::vector<Operator> operators;
  std::vector<int> position(kept.size(), -1);
  Profile profile;
  double input_elements = 0;
  for (size_t v = 0; v < kept.size(); ++v) {
    const ProfiledNode& node = document.nodes[v];
    if (kept[v]) {
      position[v] = static_cast<int>(operators.size());
      operators.push_back(make_operator(node));
      profile.times.push_back(
          {Seconds{node.forward * kSecondsInMillisecond}, Seconds{node.backward * kSecondsInMillisecond}});
    } else if (node.description.starts_with("Input")) {
      input_elements += node.activation / kProfiledElementBytes;
    }
  }
  std::vector<std::pair<int, int>> edges;
  std::set<std::pair<int, int>> seen;
  for (const auto& [from, to] : all_edges) {
    if (kept[to] && seen.emplace(from, to).second) {
      operators[position[to]].stash_elements += document.nodes[from].activation / kProfiledElementBytes;
      if (kept[from]) {
        edges.emplace_back(position[from], position[to]);
      }
    }
  }
  const auto place_of = [&](int op) {
    const auto node = std::find(position.begin(), position.end(), op) - position.begin();
    return document.nodes[static_cast<size_t>(node)].where;
  };
  ModelGraph graph =
      make_graph(name_of(file), std::move(operators), std::move(edges), {std::move(profile)}, whole, place_of);
  graph.description = "PipeDream profile; a sample is one whole minibatch";
  graph.input_elements = input_elements;
  return graph;
}

} // namespace stagecraft
