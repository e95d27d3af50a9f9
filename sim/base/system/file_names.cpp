// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file_names.hpp"

#include <algorithm>

#include "sim/base/utf8.hpp"

namespace stagecraft {

std::string safe_file_name(std::string_view text) {
  constexpr std::size_t kMost = 200; // bytes; file systems allow 255, and an ending and a number follow
  std::string name;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const std::size_t bytes = std::max<std::size_t>(point.bytes, 1);
    const bool separates = text[at] == '/' || text[at] == '\\' || (text[at] == '.' && name.empty());
    const bool shows = point.bytes > 0 && !is_control(point.code) && !separates;
    if (name.size() + bytes > kMost) {
      break;
    }
    name += shows ? std::string(text.substr(at, bytes)) : "-";
    at += bytes;
  }
  return name.empty() ? "unnamed" : name;
}

std::string FileNames::unique(std::string_view text, std::string_view group) {
  const std::string own = safe_file_name(text);
  std::string name = own;
  if (taken_.contains(name) && !group.empty()) {
    name += " (" + safe_file_name(group) + ")";
  }
  const std::string first = name;
  for (int again = 2; !taken_.insert(name).second; ++again) {
    name = first + " (" + std::to_string(again) + ")";
  }
  return name;
}

} // namespace stagecraft
