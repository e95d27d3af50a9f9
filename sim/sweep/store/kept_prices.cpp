// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/kept_prices.hpp"

#include <array>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {
namespace {

void add_price_of(const yaml::Node& node, const std::string& of, std::vector<NamedPrice>& prices) {
  if (node.kind == yaml::Node::Kind::map && node.find("price") != nullptr) {
    yaml::Map map(node, of);
    add_prices(prices, std::array{NamedPrice{of, read_price(map)}});
  }
}

void add_type(const yaml::Node& type, std::vector<NamedPrice>& prices) {
  const yaml::Node* name = type.find("name");
  if (name != nullptr && type.find("vendor") != nullptr) {
    add_price_of(type, name->text, prices);
  }
}

// A device type, or a platform with its own types and its hosts.
void add_document(const yaml::Node& document, std::vector<NamedPrice>& prices) {
  add_type(document, prices);
  if (const yaml::Node* types = document.find("device_types")) {
    for (const yaml::Node& type : types->items) {
      add_type(type, prices);
    }
  }
  if (const yaml::Node* nodes = document.find("nodes")) {
    for (const yaml::Node& node : nodes->items) {
      if (const yaml::Node* host = node.find("host")) {
        add_price_of(*host, "host", prices);
      }
    }
  }
}

} // namespace

std::vector<NamedPrice> kept_prices(SweepStore& store, std::int64_t sweep) {
  std::vector<NamedPrice> prices;
  for (const KeptFile& file : store.files(sweep)) {
    if (!yaml::is_named_yaml(file.path) || !file.bytes) {
      continue;
    }
    try {
      add_document(yaml::parse(*file.bytes, file.path), prices);
    } catch (const InputError&) { // a file of strangers: what it says of prices is not known
      continue;
    }
  }
  return prices;
}

} // namespace stagecraft
