// SPDX-License-Identifier: Apache-2.0
#include "sim/base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/error.hpp"

namespace stagecraft {
namespace {

// "ff" for 255 and two digits.
std::string in_hex(char32_t code, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    text += kDigits[(code >> static_cast<unsigned>(shift)) & 15U];
  }
  return text;
}

char32_t byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

// Bytes of ASCII as programmers write them, the others as JSON has them in strings.
std::string in_words(char32_t code) { return code < 0x7fU ? "\\x" + in_hex(code, 2) : "\\u" + in_hex(code, 4); }

// A text whose code points become what `instead` gives for them, or stay where it gives "".
template <class Instead, class OfBadByte>
std::string rewritten(std::string_view text, const Instead& instead, const OfBadByte& of_bad_byte) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const std::string other = point.bytes == 0 ? of_bad_byte(byte_at(text, at)) : instead(point.code);
    result += other.empty() ? text.substr(at, point.bytes) : std::string_view(other);
    at += std::max<std::size_t>(point.bytes, 1);
  }
  return result;
}

} // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const char32_t lead = byte_at(text, at);
  if (lead < 0x80U) {
    return {lead, 1};
  }
  // The lowest code point that needs so many bytes: a lower one is an overlong form.
  constexpr std::array<char32_t, 5> kLowest = {0, 0, 0x80U, 0x800U, 0x10000U};
  const std::size_t bytes = lead >= 0xf8U ? 0 : lead >= 0xf0U ? 4 : lead >= 0xe0U ? 3 : lead >= 0xc0U ? 2 : 0;
  if (bytes == 0 || text.size() - at < bytes) {
    return {};
  }
  char32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const char32_t next = byte_at(text, at + i);
    if ((next & 0xc0U) != 0x80U) {
      return {};
    }
    code = code << 6U | (next & 0x3fU);
  }
  const bool is_surrogate = code >= 0xd800U && code <= 0xdfffU;
  return code < kLowest[bytes] || code > 0x10ffffU || is_surrogate ? CodePoint{} : CodePoint{code, bytes};
}

std::optional<std::size_t> first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = code_point_at(text, at).bytes;
    if (bytes == 0) {
      return at;
    }
    at += bytes;
  }
  return std::nullopt;
}

void check_utf8(std::string_view text, const std::string& file) {
  const std::optional<std::size_t> bad = first_bad_byte(text);
  if (!bad) {
    return;
  }
  const std::string_view before = text.substr(0, *bad);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1; // npos + 1 is 0
  throw InputError({file, static_cast<int>(line), static_cast<int>(*bad - line_begin) + 1},
                   "the byte 0x" + in_hex(byte_at(text, *bad), 2) + " is not UTF-8; allowed: text in UTF-8");
}

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) {
    return std::string(text);
  }
  const auto continues = [](char letter) { return (static_cast<unsigned char>(letter) & 0xC0U) == 0x80U; };
  std::size_t end = most;
  while (end > 0 && continues(text[end])) {
    --end;
  }
  return std::string(text.substr(0, end));
}

bool is_control(char32_t code) {
  const auto between = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  const bool is_terminal = code < 0x20U || between(0x7fU, 0x9fU);
  const bool is_direction =
      code == 0x61cU || between(0x200eU, 0x200fU) || between(0x202aU, 0x202eU) || between(0x2066U, 0x2069U);
  return is_terminal || is_direction;
}

std::string with_visible_controls(std::string_view text) {
  return rewritten(
      text, [](char32_t code) { return is_control(code) && code != '\n' && code != '\t' ? in_words(code) : ""; },
      [](char32_t byte) { return "\\x" + in_hex(byte, 2); });
}

std::string on_one_line(std::string_view text) {
  return rewritten(
      text, [](char32_t code) { return is_control(code) ? in_words(code) : ""; },
      [](char32_t byte) { return "\\x" + in_hex(byte, 2); });
}

std::string in_double_quotes(std::string_view text) {
  const auto escaped = [](char32_t code) -> std::string {
    const bool ends_line = code == 0x2028U || code == 0x2029U; // not for YAML 1.2, but for readers of 1.1
    const bool is_mark = code == 0xfeffU;                      // the mark of byte order
    return code == '"' || code == '\\'                ? std::string("\\") + static_cast<char>(code)
           : is_control(code) || ends_line || is_mark ? "\\u" + in_hex(code, 4)
                                                      : "";
  };
  return '"' + rewritten(text, escaped, [](char32_t) { return std::string("\xef\xbf\xbd"); }) + '"';
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

} // namespace stagecraft
