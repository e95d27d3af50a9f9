// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/yaml.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::yaml {

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

bool is_named_yaml(const std::filesystem::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

Node load(const std::filesystem::path& path) { return parse(read_file(path), path.string()); }

Node load_beside(const Node& name, std::string_view what) {
  const std::filesystem::path file = scalar(name, what);
  if (file.has_parent_path() || file.empty()) {
    throw InputError(name.where, "'" + file.string() + "' is no file beside this one; allowed: its name alone");
  }
  return load(std::filesystem::path(name.where.file).parent_path() / file);
}

const Node* find(const Node& root, std::string_view dotted_key) {
  const Node* at = &root;
  while (at != nullptr) {
    const size_t dot = dotted_key.find('.');
    at = at->find(dotted_key.substr(0, dot));
    if (dot == std::string_view::npos) {
      break;
    }
    dotted_key.remove_prefix(dot + 1);
  }
  return at;
}

namespace {

// The value at a dotted key. Makes missing mappings on the way, placed at `where`.
Node& value_at(Node& root, std::string_view dotted_key, const Where& where) {
  Node* at = &root;
  while (!dotted_key.empty()) {
    const size_t dot = dotted_key.find('.');
    const std::string_view key = dotted_key.substr(0, dot);
    dotted_key = dot == std::string_view::npos ? std::string_view() : dotted_key.substr(dot + 1);
    if (at->kind == Node::Kind::sequence) {
      at = &at->items[static_cast<size_t>(parse_integer(key, 0, static_cast<int>(at->items.size()) - 1, where))];
      continue;
    }
    if (at->kind == Node::Kind::scalar) {
      throw InputError(where, "key '" + std::string(key) + "' stands below a plain value");
    }
    at->kind = Node::Kind::map;
    const auto found = std::find_if(at->entries.begin(), at->entries.end(),
                                    [&](const Node::Entry& entry) { return entry.key == key; });
    if (found == at->entries.end()) {
      at->entries.push_back({std::string(key), where, Node{.where = where}});
      at = &at->entries.back().value;
    } else {
      at = &found->value;
    }
  }
  return *at;
}

void add_quoted(std::string& text, std::string_view value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned kNibble = 4;
  constexpr unsigned kLow = 15;
  text += '"';
  for (const char letter : value) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      text += '\\';
      text += letter;
    } else if (byte < ' ') {
      text += "\\u00";
      text += kDigits[byte >> kNibble];
      text += kDigits[byte & kLow];
    } else {
      text += letter;
    }
  }
  text += '"';
}

void add_flow(std::string& text, const Node& node) {
  if (node.kind == Node::Kind::null) {
    text += "null";
  } else if (node.kind == Node::Kind::scalar) {
    add_quoted(text, node.text);
  } else if (node.kind == Node::Kind::sequence) {
    text += '[';
    for (const Node& item : node.items) {
      text += &item == &node.items.front() ? "" : ", ";
      add_flow(text, item);
    }
    text += ']';
  } else {
    text += '{';
    for (const Node::Entry& entry : node.entries) {
      text += &entry == &node.entries.front() ? "" : ", ";
      add_quoted(text, entry.key);
      text += ": ";
      add_flow(text, entry.value);
    }
    text += '}';
  }
}

} // namespace

void set(Node& root, std::string_view dotted_key, std::string_view value, const Where& where) {
  Node& at = value_at(root, dotted_key, where);
  at = value.empty() ? Node{.kind = Node::Kind::scalar, .where = where} : parse(value, where.file);
  at.where = where;
}

void set(Node& root, std::string_view dotted_key, const Node& value) {
  value_at(root, dotted_key, value.where) = value;
}

Node text_node(std::string text, const Where& where) {
  return {.kind = Node::Kind::scalar, .text = std::move(text), .where = where};
}

void erase(Node& map, std::initializer_list<std::string_view> keys) {
  std::erase_if(map.entries,
                [&](const Node::Entry& entry) { return std::find(keys.begin(), keys.end(), entry.key) != keys.end(); });
}

std::string flow_text(const Node& node) {
  std::string text;
  add_flow(text, node);
  return text;
}

const std::string& scalar(const Node& node, std::string_view what) {
  if (node.kind != Node::Kind::scalar) {
    static constexpr const char* kKinds[] = {"nothing", "plain text", "a list", "a mapping"};
    throw InputError(node.where, "'" + std::string(what) + "' is " + kKinds[static_cast<int>(node.kind)] +
                                     "; allowed: a plain value");
  }
  return node.text;
}

bool boolean(const Node& node, std::string_view what) {
  const std::string& text = scalar(node, what);
  const bool yes = text == "true" || text == "True" || text == "TRUE"; // as YAML 1.2's core schema has them
  if (!yes && text != "false" && text != "False" && text != "FALSE") {
    throw InputError(node.where, "'" + std::string(what) + "' must be true or false, got '" + excerpt(text) + "'");
  }
  return yes;
}

int integer(const Node& node, std::string_view what, int low, int high) {
  try {
    return parse_integer(scalar(node, what), low, high, node.where);
  } catch (const InputError&) {
    throw InputError(node.where, "'" + std::string(what) + "' must be an integer in [" + std::to_string(low) + ", " +
                                     std::to_string(high) + "], got '" + excerpt(scalar(node, what)) + "'");
  }
}

double number(const Node& node, std::string_view what, const Range& range) {
  const std::string& text = scalar(node, what);
  const std::optional<double> plain = find_amount(text);
  if (!plain &&
      (same_name(text, "nan") || same_name(text, "inf") || same_name(text, ".nan") || same_name(text, ".inf"))) {
    throw InputError(node.where, "'" + std::string(what) + "' is '" + text +
                                     "', which is no finite number; allowed: " + range.text);
  }
  const double value = parse_number(text, node.where);
  check_range(node, what, value, range);
  return value;
}

void check_range(const Node& node, std::string_view what, double value, const Range& range) {
  const bool above = range.low_included ? value >= range.low : value > range.low;
  if (!above || value > range.high) {
    throw InputError(node.where,
                     "'" + std::string(what) + "' must be " + range.text + ", got '" + excerpt(node.text) + "'");
  }
}

Map::Map(const Node& node, std::string what) : node_(node), what_(std::move(what)) {
  if (node.kind != Node::Kind::map) {
    throw InputError(node.where, what_ + " must be a mapping of keys to values");
  }
}

const Node* Map::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
    known_.emplace_back(key);
  }
  const Node* found = node_.find(key);
  return found != nullptr && found->kind == Node::Kind::null ? nullptr : found;
}

bool Map::has(std::string_view key) { return find(key) != nullptr; }

Where Map::where(std::string_view key) const {
  const Node* found = node_.find(key);
  return found != nullptr ? found->where : node_.where;
}

const Node& Map::node(std::string_view key) {
  const Node* found = find(key);
  if (found == nullptr) {
    constexpr std::size_t kLong = 6;                 // short keys, as rate and date, are near to each other
    for (const Node::Entry& entry : node_.entries) { // it may be there, written nearly so
      const bool asked = std::find(known_.begin(), known_.end(), entry.key) != known_.end();
      if (!asked && key.size() >= kLong && !nearest(entry.key, {std::string(key)}).empty() &&
          node_.find(key) == nullptr) {
        throw InputError(entry.where, "unknown key '" + excerpt(entry.key) + "'; did you mean '" + std::string(key) +
                                          "'? which is missing in " + what_);
      }
    }
    throw InputError(node_.where, "missing key '" + std::string(key) + "' in " + what_);
  }
  return *found;
}

std::string Map::text(std::string_view key) { return scalar(node(key), key); }

std::string Map::text(std::string_view key, std::string_view otherwise) {
  const Node* found = find(key);
  return found != nullptr ? scalar(*found, key) : std::string(otherwise);
}

int Map::integer(std::string_view key, int low, int high) { return yaml::integer(node(key), key, low, high); }

int Map::integer(std::string_view key, int low, int high, int otherwise) {
  const Node* found = find(key);
  return found != nullptr ? yaml::integer(*found, key, low, high) : otherwise;
}

double Map::number(std::string_view key, const Range& range) { return yaml::number(node(key), key, range); }

double Map::number(std::string_view key, const Range& range, double otherwise) {
  const Node* found = find(key);
  return found != nullptr ? yaml::number(*found, key, range) : otherwise;
}

bool Map::boolean(std::string_view key, bool otherwise) {
  const Node* found = find(key);
  return found == nullptr ? otherwise : yaml::boolean(*found, key);
}

std::vector<const Node*> Map::list(std::string_view key) {
  std::vector<const Node*> items;
  const Node* found = find(key);
  if (found == nullptr) {
    return items;
  }
  if (found->kind == Node::Kind::map) {
    throw InputError(found->where, "'" + std::string(key) + "' must be a list");
  }
  if (found->kind == Node::Kind::scalar) {
    return {found};
  }
  for (const Node& item : found->items) {
    items.push_back(&item);
  }
  return items;
}

void Map::finish() const {
  for (const Node::Entry& entry : node_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) == known_.end()) {
      throw InputError(entry.where, unknown_name("key", entry.key, known_) + " (in " + what_ + ")");
    }
  }
}

} // namespace stagecraft::yaml
