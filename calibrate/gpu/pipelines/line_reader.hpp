// Reads line-based files: the first word of a line says what it is, the others are key=value. Errors name the place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft::gpu {

/// One line. Each value may be read once; finish() refuses values that were not read.
class KeyedLine {
public:
  KeyedLine(const std::string& file, int number, std::string_view text) : file_(&file), number_(number), text_(text) {}

  /// The next word, which must not be key=value; errors say `allowed`.
  std::string_view word(std::string_view allowed);
  /// The rest of the line, without blanks around it.
  std::string_view rest();
  /// Splits the rest of the line into keys and values, to be read.
  void read_keys();
  bool has(std::string_view key) const;
  std::string_view text(std::string_view key);
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  /// A number that is at least 0.
  double amount(std::string_view key);
  std::vector<int> integers(std::string_view key, int low, int high);
  std::vector<double> amounts(std::string_view key);
  void finish() const;

  /// Throws std::invalid_argument at the place `at` in this line, or at its beginning.
  [[noreturn]] void refuse(const std::string& what, std::string_view at = {}) const;

private:
  struct Value {
    std::string_view key, value;
    bool asked = false;
  };
  double amount_of(std::string_view word) const;
  std::int64_t integer_of(std::string_view word, std::int64_t low, std::int64_t high) const;

  const std::string* file_;
  int number_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Value> values_;
};

/// The lines of a text, without empty ones and without comments after '#'. `text` and `file` must outlive them.
std::vector<KeyedLine> keyed_lines(const std::string& text, const std::string& file);

/// A number with all its digits.
std::string exact(double value);
/// A list as text: "1,2,3".
std::string listed(const std::vector<int>& values);
std::string listed(const std::vector<double>& values);

} // namespace stagecraft::gpu
