// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/node_shorthand.hpp"

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

namespace {

std::string without_blanks_around(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string text_at(const yaml::Node* map, const char* key, const char* otherwise) {
  const yaml::Node* value = map != nullptr ? map->find(key) : nullptr;
  return value != nullptr ? value->text : otherwise;
}

// The one node of a platform; InputError where it has several.
const yaml::Node& one_node_of(const NodeShorthand& shorthand, const yaml::Node& document, const Where& where) {
  const yaml::Node* nodes = document.find("nodes");
  const yaml::Node* count = nodes != nullptr && nodes->items.size() == 1 ? nodes->items.front().find("count") : nullptr;
  if (nodes == nullptr || nodes->items.size() != 1 || (count != nullptr && count->text != "1")) {
    throw InputError(where, "'" + shorthand.node +
                                "' is not one node; allowed: N x a platform of one node, such as "
                                "dgx-h100");
  }
  return nodes->items.front();
}

} // namespace

std::vector<NodeShorthand> node_sum(const std::string& text, const Where& where) {
  std::vector<NodeShorthand> sum;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string part = without_blanks_around(text.substr(begin, end - begin));
    const auto shorthand = node_shorthand(part, where);
    if (!shorthand && (sum.empty() || part.empty())) {
      return {};
    }
    sum.push_back(shorthand.value_or(NodeShorthand{1, part}));
    begin = end + 1;
  }
  return sum.size() > 1 ? sum : std::vector<NodeShorthand>{};
}

yaml::Node document_of(const std::vector<NodeShorthand>& sum, const std::vector<yaml::Node>& documents,
                       const Where& where) {
  yaml::Node nodes{.kind = yaml::Node::Kind::sequence, .where = where};
  yaml::Node document{.kind = yaml::Node::Kind::map, .where = where};
  std::string name, nics;
  const yaml::Node* network = nullptr;
  for (std::size_t part = 0; part < sum.size(); ++part) {
    yaml::Node node = one_node_of(sum[part], documents[part], where);
    const yaml::Node* own = documents[part].find("network");
    if (own == nullptr) {
      throw InputError(where, "'" + sum[part].node +
                                  "' says no 'network' to join its nodes by; allowed: a platform that "
                                  "does, such as dgx-h100");
    }
    if (network != nullptr && text_at(own, "nic", "node") != text_at(network, "nic", "node")) {
      throw InputError(where, "'" + sum.front().node + "' has a NIC for each " + text_at(network, "nic", "node") +
                                  ", and '" + sum[part].node + "' for each " + text_at(own, "nic", "node") +
                                  "; allowed: alike, or a platform file of your own");
    }
    network = network == nullptr ? own : network;
    const std::string bandwidth = text_at(own, "bandwidth", "");
    yaml::erase(node, {"name", "count"});
    node.entries.insert(node.entries.begin(),
                        {{"name", where, yaml::text_node(documents[part].find("name")->text, where)},
                         {"count", where, yaml::text_node(std::to_string(sum[part].count), where)}});
    if (!bandwidth.empty() && node.find("nic_bandwidth") == nullptr) {
      node.entries.push_back({"nic_bandwidth", where, yaml::text_node(bandwidth, where)});
    }
    nodes.items.push_back(std::move(node));
    nics += (part == 0 ? "" : ", ") + sum[part].node + " " + bandwidth;
    name += (part == 0 ? "" : " + ") + std::to_string(sum[part].count) + " x " + sum[part].node;
  }
  document.entries = {{"name", where, yaml::text_node(name, where)},
                      {"description", where,
                       yaml::text_node("nodes of several kinds on one network; assumed: each keeps its NICs (" + nics +
                                           "), latency and switches are those of " + sum.front().node,
                                       where)},
                      {"nodes", where, std::move(nodes)},
                      {"network", where, *network}};
  return document;
}

std::vector<Setting> settings_of(const NodeShorthand& shorthand, const yaml::Node& document, const yaml::Node* network,
                                 const Where& where) {
  one_node_of(shorthand, document, where);
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
