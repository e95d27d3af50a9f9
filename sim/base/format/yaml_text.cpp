// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/yaml_text.hpp"

#include <algorithm>
#include <array>

#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kLettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool is_letter_or_digit(char c) { return kLettersAndDigits.find(c) != std::string_view::npos; }

// Whether YAML, of any version, reads a word as nothing or as a truth value.
bool is_other_value(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  constexpr std::array<std::string_view, 9> kValues = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  return std::find(kValues.begin(), kValues.end(), lower) != kValues.end();
}

bool is_plain(std::string_view text) {
  constexpr std::string_view kWithin = "-_./+ ";
  return !text.empty() && is_letter_or_digit(text.front()) && text.back() != ' ' && !is_other_value(text) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter_or_digit(c) || kWithin.find(c) != std::string_view::npos; });
}

} // namespace

std::string yaml_text(std::string_view text) { return is_plain(text) ? std::string(text) : in_double_quotes(text); }

} // namespace stagecraft
