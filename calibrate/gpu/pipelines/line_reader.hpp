// Line-based files: a word that says what a line is, then words as key=value. Whatever is wrong has its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft::gpu {

/// One line, of which each value may be asked for once; finish() refuses what nobody asked for.
class KeyedLine {
public:
  KeyedLine(const std::string& file, int number, std::string_view text) : file_(&file), number_(number), text_(text) {}

  /// The next word that is no key=value; `allowed` is said where there is none.
  std::string_view word(std::string_view allowed);
  /// Whatever is left, without blanks around it.
  std::string_view rest();
  /// Splits what is left into keys and values, to be asked for.
  void read_keys();
  bool has(std::string_view key) const;
  std::string_view text(std::string_view key);
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  /// A number of 0 or more.
  double amount(std::string_view key);
  std::vector<int> integers(std::string_view key, int low, int high);
  std::vector<double> amounts(std::string_view key);
  void finish() const;

  /// Throws std::invalid_argument with the place of a part of this line, or of its beginning.
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

/// The lines of a text that say something, without what follows '#'. The text and `file` outlive them.
std::vector<KeyedLine> keyed_lines(const std::string& text, const std::string& file);

/// A number with all its digits.
std::string exact(double value);
/// "1,2,3".
std::string listed(const std::vector<int>& values);
std::string listed(const std::vector<double>& values);

} // namespace stagecraft::gpu
