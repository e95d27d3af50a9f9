// Reading JSON. Errors give line and column, and the path of the value where there is one; unknown and duplicate keys
// are errors.
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

/// A document's text, in which the place of a value is looked up where it is to be blamed. Both must outlive it.
class Source {
public:
  Source(std::string_view text, const std::string& file) : text_(text), file_(&file) {}
  Source(std::string_view text, std::string&& file) = delete;

  std::string_view text() const { return text_; }
  const std::string& file() const { return *file_; }

  /// Where the value with this path begins, such as "nodes[3].id"; "" is the whole document. A path that the document
  /// does not have gives the place of the longest beginning that it has.
  Where place(const std::string& path) const;
  /// Line and column of a byte, counted from 1 as nlohmann's errors do.
  Where place_of_byte(std::size_t byte) const;
  /// An InputError that blames the value with this path.
  InputError error(const std::string& path, const std::string& what) const;

private:
  std::string_view text_;
  const std::string* file_;
};

/// Whether a text has no document: nothing but blanks.
bool is_blank(std::string_view text);

/// Reads one JSON document. Throws InputError on bad syntax, a number too large for a double, a duplicate key in an
/// object, and what goes beyond sim/base/limits.hpp.
Value parse(const Source& source);

/// One object while it is read: each key asked for is marked, finish() refuses the others. Getters with a default
/// return it when the key is absent; the others throw InputError "missing key". Errors say "file:line:column: path:
/// what".
class Object {
public:
  /// `path` is the path of the object in the document, such as "nodes[3]"; "" for the whole document.
  Object(const Value& value, const Source& source, std::string path);

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
  const Source& source_;
  std::string path_;
  std::set<std::string> known_;
};

} // namespace stagecraft::json
