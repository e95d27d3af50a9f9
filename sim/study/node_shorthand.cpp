// SPDX-License-Identifier: Apache-2.0
#include "sim/study/node_shorthand.hpp"

namespace stagecraft {

std::optional<NodeShorthand> node_shorthand(const std::string& text, const Where& where) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::size_t times = text.find_first_not_of(' ', digits);
  if (digits == 0 || times == std::string::npos || (text[times] != 'x' && text[times] != 'X')) {
    return std::nullopt;
  }
  const std::size_t node = text.find_first_not_of(' ', times + 1);
  const bool may_be_a_file = text.find(' ') == std::string::npos && text.find_first_of("./") != std::string::npos;
  if (node == std::string::npos || may_be_a_file) {
    return std::nullopt;
  }
  constexpr int kMostNodes = 100'000;
  return NodeShorthand{parse_integer(text.substr(0, digits), 1, kMostNodes, where), text.substr(node)};
}

std::vector<Setting> settings_of(const NodeShorthand& shorthand, const yaml::Node& document, const yaml::Node* network,
                                 const Where& where) {
  const yaml::Node* nodes = document.find("nodes");
  const yaml::Node* count = nodes != nullptr && nodes->items.size() == 1 ? nodes->items.front().find("count") : nullptr;
  if (nodes == nullptr || nodes->items.size() != 1 || (count != nullptr && count->text != "1")) {
    throw InputError(where, "'" + shorthand.node +
                                "' is not one node; allowed: N x a platform of one node, such as "
                                "dgx-h100");
  }
  if (shorthand.count > 1 && network == nullptr && document.find("network") == nullptr) {
    throw InputError(where, "'" + shorthand.node + "' says no 'network' to join its nodes by; allowed: {nodes: " +
                                std::to_string(shorthand.count) + " x " + shorthand.node + ", network: {…}}");
  }
  const std::string number = std::to_string(shorthand.count);
  std::vector<Setting> settings = {{"name", number + " x " + shorthand.node}, {"nodes.0.count", number}};
  for (const yaml::Node::Entry& entry : network != nullptr ? network->entries : std::vector<yaml::Node::Entry>{}) {
    settings.push_back({"network." + entry.key, "", entry.value});
  }
  return settings;
}

} // namespace stagecraft
