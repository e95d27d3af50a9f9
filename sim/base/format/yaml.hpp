// Reading YAML: every value knows its file, line and column; unknown keys, duplicates and bare quantities are errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"

namespace stagecraft::yaml {

/// One value of a document, with its place. A mapping keeps its keys in the order of the file.
struct Node {
  enum class Kind { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  std::string text;           ///< a scalar's text
  std::vector<Node> items;    ///< a sequence's items
  std::vector<Entry> entries; ///< a mapping's entries
  Where where;

  /// The value under `key`, or nullptr.
  const Node* find(std::string_view key) const;
};

struct Node::Entry {
  std::string key;
  Where where; ///< place of the key
  Node value;
};

/// Whether a file is called as YAML is: .yaml, or .yml.
bool is_named_yaml(const std::filesystem::path& path);

/// Reads one YAML document; `file` is named in errors. Throws InputError on bad syntax, a duplicate key, a second
/// document, an alias within the value that it names, and what goes beyond sim/base/limits.hpp.
Node parse(std::string_view text, const std::string& file);

/// Reads a file as parse() does; InputError when it cannot be read or is too large.
Node load(const std::filesystem::path& path);

/// Loads the file that `name`, a scalar, names, in the folder of the file that `name` stands in. InputError naming
/// `what` where the name leads to another folder.
Node load_beside(const Node& name, std::string_view what);

/// The value at a dotted key of nested mappings, "training.global_batch"; null where there is none.
const Node* find(const Node& root, std::string_view dotted_key);

/// Sets the value at a dotted key, "training.global_batch", making missing mappings on the way. The value is parsed as
/// YAML and placed at `where`. List items are named by number: "nodes.0.count".
void set(Node& root, std::string_view dotted_key, std::string_view value, const Where& where);
/// The same with a parsed value, which keeps its own place.
void set(Node& root, std::string_view dotted_key, const Node& value);

/// A scalar with this text, as if it stood there.
Node text_node(std::string text, const Where& where);

/// Removes these keys from a mapping; missing ones are ignored.
void erase(Node& map, std::initializer_list<std::string_view> keys);

/// The value on one line, in a form that YAML and JSON share; plain scalars are quoted. Equal values have equal texts.
std::string flow_text(const Node& node);

/// Bounds of a number or quantity, in SI units.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_included = true;
  const char* text = "any number"; ///< the range as errors name it
};
inline constexpr Range kPositive{0, std::numeric_limits<double>::infinity(), false, "more than 0"};
inline constexpr Range kNotNegative{0, std::numeric_limits<double>::infinity(), true, "0 or more"};
inline constexpr Range kDelay{0, 3600, true, "0 to 1 h"};
inline constexpr Range kFraction{0, 1, false, "more than 0, at most 1"};

/// A scalar's text; InputError naming `what` when the node is no scalar.
const std::string& scalar(const Node& node, std::string_view what);
/// A scalar that is true or false.
bool boolean(const Node& node, std::string_view what);
/// A scalar as an integer, a number or a quantity, within its range.
int integer(const Node& node, std::string_view what, int low, int high);
double number(const Node& node, std::string_view what, const Range& range);
template <class Q> Q quantity(const Node& node, std::string_view what, const Range& range) {
  const Q read = parse_quantity<Q>(scalar(node, what), node.where);
  check_range(node, what, read.value, range);
  return read;
}
void check_range(const Node& node, std::string_view what, double value, const Range& range);

/// One mapping while it is read: each key asked for is marked, finish() refuses the others. Getters with a default
/// return it when the key is absent; the others throw InputError "missing key".
class Map {
public:
  /// `what` names the mapping in errors: "device type", "study".
  Map(const Node& node, std::string what);

  bool has(std::string_view key);
  const Where& where() const { return node_.where; }
  Where where(std::string_view key) const; ///< place of the value, or of the mapping where the key is absent

  /// The raw value; `find` gives nullptr where it is absent.
  const Node& node(std::string_view key);
  const Node* find(std::string_view key);

  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string_view otherwise);
  int integer(std::string_view key, int low, int high);
  int integer(std::string_view key, int low, int high, int otherwise);
  double number(std::string_view key, const Range& range);
  double number(std::string_view key, const Range& range, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  /// The items of a sequence; empty where the key is absent. A scalar counts as a sequence of one.
  std::vector<const Node*> list(std::string_view key);

  template <class Q> Q quantity(std::string_view key, const Range& range) {
    return yaml::quantity<Q>(node(key), key, range);
  }
  template <class Q> Q quantity(std::string_view key, const Range& range, Q otherwise) {
    const Node* found = find(key);
    return found != nullptr ? yaml::quantity<Q>(*found, key, range) : otherwise;
  }
  /// The row of `table` that the value names.
  template <class Table> const auto& choice(std::string_view key, const Table& table) {
    const Node& found = node(key);
    return find_by_name(table, scalar(found, key), key, found.where);
  }
  template <class Table> const auto& choice(std::string_view key, const Table& table, std::string_view otherwise) {
    const Node* found = find(key);
    return found != nullptr ? find_by_name(table, scalar(*found, key), key, found->where)
                            : find_by_name(table, otherwise, key, node_.where);
  }

  /// Throws InputError at the first key that was never asked for, naming the known ones.
  void finish() const;

private:
  const Node& node_;
  std::string what_;
  std::vector<std::string> known_;
};

} // namespace stagecraft::yaml
