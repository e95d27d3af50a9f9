// Text for terminals: display width and colours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "sim/base/utf8.hpp"

namespace stagecraft {

/// Columns that UTF-8 text takes: its code points.
inline std::size_t display_width(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

/// Text in an SGR style ("1" bold, "2" dim, "32" green, …), whose end is marked too; unchanged if `codes` is empty.
inline std::string with_style(std::string_view text, std::string_view codes) {
  if (codes.empty()) {
    return std::string(text);
  }
  return "\x1b[" + std::string(codes) + "m" + std::string(text) + "\x1b[0m";
}

/// Text without the sequences of with_style().
inline std::string without_styles(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find("\x1b[", at), text.size());
    plain += text.substr(at, begin - at);
    const std::size_t end = text.find('m', begin);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return plain;
}

/// Text that is safe to print on a terminal: what does not show itself, which a name in a file may contain, becomes
/// words (utf8.hpp). Line ends and tabs stay, and with `colors` also the sequences of with_style().
inline std::string printable(std::string_view text, bool colors) {
  constexpr std::string_view kBegin = "\x1b[";
  std::string safe;
  std::size_t done = 0; // the bytes before are in `safe`
  for (std::size_t at = text.find(kBegin); colors && at != std::string_view::npos; at = text.find(kBegin, at + 1)) {
    const std::size_t end = text.find_first_not_of("0123456789;", at + kBegin.size());
    if (end != std::string_view::npos && text[end] == 'm') {
      safe += with_visible_controls(text.substr(done, at - done));
      safe += text.substr(at, end + 1 - at);
      done = end + 1;
    }
  }
  return safe + with_visible_controls(text.substr(done));
}

} // namespace stagecraft
