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

/// Text between an SGR escape sequence ("1" bold, "2" dim, "32" green, …) and its end; as it is without codes.
inline std::string with_style(std::string_view text, std::string_view codes) {
  if (codes.empty()) {
    return std::string(text);
  }
  return "\x1b[" + std::string(codes) + "m" + std::string(text) + "\x1b[0m";
}

} // namespace stagecraft
