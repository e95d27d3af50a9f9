// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/megatron/megatron_yaml.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace stagecraft {
namespace {

// "[attn mamba]", which the shell would take apart, is attn mamba.
std::string without_brackets(std::string text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

std::string quoted(const std::string& text) {
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
    return c == '|' || c == '*' || c == '(' || c == ')' || c == '$' || c == '"' || c == '\'' || c == '#' || c == ';' ||
           c == '&' || c == '<' || c == '>' || c == '\\';
  });
  return plain ? text : "'" + text + "'";
}

// An argument as it is typed; "" where the value switches it off.
std::string typed(const yaml::Node::Entry& entry) {
  std::string flag = entry.key;
  flag.erase(0, std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(flag.begin(), flag.end(), '_', '-');
  flag.insert(0, "--");
  if (entry.value.kind == yaml::Node::Kind::sequence) {
    for (const yaml::Node& item : entry.value.items) {
      flag += " " + quoted(yaml::scalar(item, entry.key));
    }
    return flag;
  }
  const std::string value = entry.value.kind == yaml::Node::Kind::null ? "null" : yaml::scalar(entry.value, entry.key);
  if (value == "false" || value == "null") {
    return "";
  }
  return value == "true" ? flag : flag + " " + quoted(without_brackets(value));
}

} // namespace

const yaml::Node* arguments_in(const yaml::Node& document) {
  const yaml::Node* named = document.find("ARGS");
  return named != nullptr ? named : document.find("MODEL_ARGS");
}

std::string typed_arguments(const yaml::Node& arguments) {
  if (arguments.kind != yaml::Node::Kind::map) {
    throw InputError(arguments.where, "these arguments are no mapping; allowed: names with their values");
  }
  std::vector<std::string> lines;
  for (const yaml::Node::Entry& entry : arguments.entries) {
    const auto line = static_cast<std::size_t>(std::max(entry.where.line, 1));
    const auto column = static_cast<std::size_t>(std::max(entry.where.column, 1));
    lines.resize(std::max(lines.size(), line));
    std::string& text = lines[line - 1];
    text.resize(std::max(text.size(), column - 1), ' ');
    text += (text.empty() || text.back() == ' ' ? "" : " ") + typed(entry);
  }
  std::string script;
  for (const std::string& line : lines) {
    script += line + " \\\n";
  }
  return script;
}

} // namespace stagecraft
