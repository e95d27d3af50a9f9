// Clusters in few words: "128 x dgx-h100" is a platform of that many nodes like the one of platforms/dgx-h100.yaml.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// So many nodes of a platform that is one node.
struct NodeShorthand {
  int count = 1;
  std::string node;
};

/// What "N x NAME" says, with or without the blanks; nothing where the text has another form. InputError where N is no
/// number of nodes.
std::optional<NodeShorthand> node_shorthand(const std::string& text, const Where& where);

/// The changes that make the node's document one of so many nodes, joined as `network` says where that is given and as
/// the document says otherwise. InputError, blaming `where`, where the document is more than one node, or nothing says
/// how several are joined.
std::vector<Setting> settings_of(const NodeShorthand& shorthand, const yaml::Node& document, const yaml::Node* network,
                                 const Where& where);

/// "2 x dgx-h100 + 4 x dgx-a100" in its parts; nothing where the text is no sum of such.
std::vector<NodeShorthand> node_sum(const std::string& text, const Where& where);

/// One document of all nodes of a sum, whose documents are given: nodes are called as their platforms, and keep their
/// NICs (`nic_bandwidth`); the network is the first one's. InputError where a document is more than one node, or its
/// NICs serve a node in one and a device in another.
yaml::Node document_of(const std::vector<NodeShorthand>& sum, const std::vector<yaml::Node>& documents,
                       const Where& where);

} // namespace stagecraft
