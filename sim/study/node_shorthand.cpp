// SPDX-License-Identifier: Apache-2.0
#include "sim/study/node_shorthand.hpp"

namespace stagecraft {

std::optional<NodeShorthand> node_shorthand(const std::string& text, const Where& where) {
  constexpr std::string_view kTimes = " x ";
  const std::size_t times = text.find(kTimes);
  if (times == std::string::npos || times == 0 || text.find_first_not_of("0123456789") != times) {
    return std::nullopt;
  }
  constexpr int kMostNodes = 100'000;
  return NodeShorthand{parse_integer(text.substr(0, times), 1, kMostNodes, where), text.substr(times + kTimes.size())};
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
