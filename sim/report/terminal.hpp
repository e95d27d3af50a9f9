// Text for terminals: display width and colours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

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

/// Text that is safe to print on a terminal: control bytes, which a name in a file may contain, become "\x1b" and the
/// like. Line ends and tabs stay, and with `colors` also the sequences of with_style().
inline std::string printable(std::string_view text, bool colors) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t end = byte == 0x1bU && colors && text.substr(i + 1, 1) == "["
                                ? text.find_first_not_of("0123456789;", i + 2)
                                : std::string_view::npos;
    const bool eight_bit = byte == 0xc2U && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0U;
    if (end != std::string_view::npos && text[end] == 'm') {
      safe += text.substr(i, end + 1 - i);
      i = end;
    } else if ((byte >= 0x20U && byte != 0x7fU && !eight_bit) || byte == '\n' || byte == '\t') {
      safe += text[i];
    } else {
      const unsigned char code = eight_bit ? static_cast<unsigned char>(text[++i]) : byte;
      safe += std::string("\\x") + kHex[code >> 4U] + kHex[code & 15U];
    }
  }
  return safe;
}

} // namespace stagecraft
