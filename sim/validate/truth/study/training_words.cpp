// What words of tables and flags say.
// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/study/training_rules.hpp"

namespace stagecraft {
namespace {

// Whether the words, which blanks, commas, colons and pluses part, have one that is the module's name.
bool has_word(const std::string& words, std::string_view name) {
  const auto parts = [](char c) { return std::string_view(" ,:+").find(c) != std::string_view::npos; };
  for (std::size_t at = words.find(name); at != std::string::npos; at = words.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || parts(words[at - 1])) && (end == words.size() || parts(words[end]))) {
      return true;
    }
  }
  return false;
}

} // namespace

bool says_no(const std::string& words) {
  return words == "none" || words == "no" || words == "false" || words == "off" || words == "0" ||
         words.starts_with("no ");
}

std::string modules_named(const std::string& words, std::span<const ModuleRow> modules) {
  std::string named;
  for (const ModuleRow& row : modules) {
    named += has_word(words, row.name) ? (named.empty() ? "" : ", ") + std::string(row.name) : "";
  }
  return named;
}

} // namespace stagecraft
