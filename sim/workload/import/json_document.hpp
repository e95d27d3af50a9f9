// Reading JSON. Syntax errors give line and column, other errors the path of the value; unknown and duplicate keys are
// errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "sim/base/error.hpp"

namespace stagecraft::json {

using Value = nlohmann::json;

/// Reads one JSON document; `file` is named in errors. Throws InputError on bad syntax, a number too large for a
/// double, a duplicate key in an object, or values nested more than 100 deep.
Value parse(std::string_view text, const std::string& file);

/// One object while it is read: each key asked for is marked, finish() refuses the others. Getters with a default
/// return it when the key is absent; the others throw InputError "missing key". Errors say "file: path: what".
class Object {
public:
  /// `path` is the path of the object in the document, such as "nodes[3]"; "" for the whole document.
  Object(const Value& value, const std::string& file, std::string path);

  bool has(const std::string& key);
  /// The raw value; `find` gives nullptr where it is absent.
  const Value& value(const std::string& key);
  const Value* find(const std::string& key);

  /// A number of at least 0.
  double amount(const std::string& key);
  double amount(const std::string& key, double otherwise);
  int integer(const std::string& key, int low, int high = std::numeric_limits<int>::max());
  /// true, false, 1 or 0.
  bool flag(const std::string& key);
  std::string text(const std::string& key, const std::string& otherwise);
  /// The value of a key, which must be an array.
  const Value& list(const std::string& key);

  /// Path of a key of this object, "nodes[3].id".
  std::string path(const std::string& key) const;
  /// An InputError that blames a key, or the object itself for "".
  InputError error(const std::string& key, const std::string& what) const;

  /// Throws InputError at the first key that was never asked for, naming the known ones.
  void finish() const;

private:
  const Value& value_;
  const std::string& file_;
  std::string path_;
  std::set<std::string> known_;
};

} // namespace stagecraft::json
