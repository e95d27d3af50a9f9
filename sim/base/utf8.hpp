// UTF-8: the one encoding of every text that is read, and what of it is safe to show.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// A character of Unicode and the bytes that it takes; no bytes where the text is not UTF-8.
struct CodePoint {
  char32_t code = 0;
  std::size_t bytes = 0;
};

/// The code point that begins at byte `at`, which the text has. Overlong forms, surrogates and what lies above U+10FFFF
/// are not UTF-8 (RFC 3629).
CodePoint code_point_at(std::string_view text, std::size_t at);

/// The place of the first byte that is not UTF-8.
std::optional<std::size_t> first_bad_byte(std::string_view text);

/// Throws InputError with the line and the byte in it where a file's text is not UTF-8.
void check_utf8(std::string_view text, const std::string& file);

/// The beginning of a text, for messages: at most so many bytes, and whole characters.
std::string excerpt(std::string_view text, std::size_t most = 60);

/// A text with its letters of ASCII in lower case.
std::string lower_case(std::string_view text);

/// Whether a code point does not show itself: it controls a terminal (C0, C1 and DEL, among them tabs and line ends) or
/// turns the direction of the text around it, so that a name would look like another.
bool is_control(char32_t code);

/// A text with each control and each byte that is not UTF-8 in words: "\x1b", "\u202e". Line ends and tabs stay. A JSON
/// document remains one and keeps its meaning.
std::string with_visible_controls(std::string_view text);
/// The same for a text within a line: line ends and tabs become words too, "\x0a".
std::string on_one_line(std::string_view text);

/// A string of YAML and JSON in double quotes, on one line, which reads back as the text. Controls are escaped; bytes
/// that are not UTF-8 become U+FFFD.
std::string in_double_quotes(std::string_view text);

} // namespace stagecraft
