// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutate.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace stagecraft::fuzz {
namespace {

// At the edges of types and of what is usual.
constexpr std::string_view kNumbers =
    "0 1 2 3 -1 0.5 0.1 7 16 255 1000 65536 100000 1000000 16777216 2147483647 2147483648 4294967296 1000000000000 "
    "9223372036854775807 9223372036854775808 18446744073709551616 1e18 1e308 1e-308 99999999999999999999999";

/// A part of a text.
struct Part {
  std::size_t begin = 0, size = 0;
};

// The longest runs of characters that belong to parts.
template <class Belongs> std::vector<Part> parts_of(std::string_view text, Belongs belongs) {
  std::vector<Part> parts;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!belongs(text[at])) {
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && belongs(text[at])) {
      ++at;
    }
    parts.push_back({begin, at - begin});
  }
  return parts;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}
bool is_of_line(char c) { return c != '\n'; }

template <class Value> const Value& one_of(const std::vector<Value>& values, std::mt19937& random) {
  return values[random() % values.size()];
}

void replace_number(std::string& text, std::mt19937& random) {
  const std::vector<Part> numbers = parts_of(text, is_digit);
  const std::vector<Part> edges = parts_of(kNumbers, [](char c) { return c != ' '; });
  if (!numbers.empty()) {
    const Part part = one_of(numbers, random), other = one_of(edges, random);
    text.replace(part.begin, part.size, kNumbers.substr(other.begin, other.size));
  }
}

void replace_word(std::string& text, std::mt19937& random) {
  const std::vector<Part> words = parts_of(text, is_of_word);
  if (!words.empty()) {
    const Part part = one_of(words, random), other = one_of(words, random);
    text.replace(part.begin, part.size, text.substr(other.begin, other.size));
  }
}

void change_line(std::string& text, std::mt19937& random) {
  const std::vector<Part> lines = parts_of(text, is_of_line);
  if (lines.empty()) {
    return;
  }
  const Part part = one_of(lines, random), other = one_of(lines, random);
  if (random() % 2 == 0) {
    text.insert(other.begin, text.substr(part.begin, part.size) + "\n");
  } else {
    text.erase(part.begin, part.size);
  }
}

} // namespace

std::string mutated(std::string text, std::mt19937& random) {
  constexpr std::array kChanges = {replace_number, replace_number, replace_word, change_line};
  kChanges[random() % kChanges.size()](text, random);
  return text;
}

} // namespace stagecraft::fuzz
