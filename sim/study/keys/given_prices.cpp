// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/given_prices.hpp"

#include <algorithm>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

// "2.49 USD/h", and as people write it: "$2.49/h". A number alone has no unit, which is told.
DollarsPerSecond read_rate(const yaml::Node& node) {
  std::string text = yaml::scalar(node, "price");
  if (text.starts_with('$')) { // "$2.49/h" as "2.49 $/h"
    const std::size_t unit = std::min(text.find('/'), text.size());
    text = text.substr(1, unit - 1) + " $" + text.substr(unit);
  }
  const bool number = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos && text != "0";
  if (number) {
    throw InputError(node.where, "unknown price '" + excerpt(text) + "'; did you mean '" + excerpt(text) +
                                     " USD/h'? allowed: money per time of one device, as 2.49 USD/h or $2.49/h");
  }
  const auto rate = parse_quantity<DollarsPerSecond>(text, node.where);
  yaml::check_range(node, "price", rate.value, physical::kPrice);
  return rate;
}

std::vector<std::string> types_in_use(const Platform& platform) { return names_of(platform.types); }

} // namespace

void take_prices(const yaml::Node& node, Platform& platform) {
  const auto set = [](DeviceType& type, DollarsPerSecond rate) {
    type.price = {.rate = rate, .source = kGivenHere, .date = "", .assumed = false};
  };
  if (node.kind != yaml::Node::Kind::map) {
    const DollarsPerSecond rate = read_rate(node);
    if (platform.types.size() > 1) {
      throw InputError(node.where, "one price for " + std::to_string(platform.types.size()) +
                                       " device types; allowed: a price of each, of " + join(types_in_use(platform)) +
                                       " (--price '" + platform.types.front().name + "=2.49 USD/h')");
    }
    set(platform.types.front(), rate);
    return;
  }
  for (const yaml::Node::Entry& entry : node.entries) {
    const auto type = std::find_if(platform.types.begin(), platform.types.end(),
                                   [&](const DeviceType& one) { return same_name(one.name, entry.key); });
    if (type == platform.types.end()) {
      throw InputError(entry.where, unknown_name("device type of the platform", entry.key, types_in_use(platform)));
    }
    set(*type, read_rate(entry.value));
  }
}

} // namespace stagecraft
