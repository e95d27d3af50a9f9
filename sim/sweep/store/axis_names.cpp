// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/axis_names.hpp"

#include <algorithm>
#include <cctype>

#include "sim/base/format/yaml.hpp"
#include "sim/report/page/sweep/sweep_scale.hpp"

namespace stagecraft {
namespace {

// "A100" of "a100-sxm-80gb".
std::string family_of(const std::string& type) {
  std::string name = type.substr(0, type.find('-'));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

std::string text_at(const yaml::Node* node, std::string_view key) {
  const yaml::Node* found = node != nullptr ? node->find(key) : nullptr;
  return found != nullptr ? found->text : "";
}

// The item of a list at a key; nullptr where there is none.
const yaml::Node* item_at(const yaml::Node* node, std::string_view key, const std::string& number) {
  const yaml::Node* list = node != nullptr ? node->find(key) : nullptr;
  const bool digits = !number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == number.npos;
  const std::size_t at = digits ? std::stoul(number) : 0;
  return list != nullptr && digits && at < list->items.size() ? &list->items[at] : nullptr;
}

std::vector<std::string> split(const std::string& key) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    parts.push_back(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The name of a key "platform.nodes.N.…" on one platform; "" for others.
std::string name_on(const yaml::Node& platform, const std::vector<std::string>& parts) {
  constexpr std::size_t kCount = 4, kPart = 6; // platform.nodes.N.count, platform.nodes.N.links.M.bandwidth
  if (parts.size() < kCount || parts[0] != "platform" || parts[1] != "nodes") {
    return "";
  }
  const yaml::Node* node = item_at(&platform, "nodes", parts[2]);
  const yaml::Node* devices = node != nullptr ? node->find("devices") : nullptr;
  if (devices == nullptr) {
    return "";
  }
  const bool one_type = devices->items.size() == 1;
  const std::string servers = (one_type ? family_of(text_at(&devices->items[0], "type")) : text_at(node, "name"));
  if (parts.size() == kCount && parts[3] == "count") {
    return servers + " servers";
  }
  if (parts.size() != kPart) {
    return "";
  }
  const yaml::Node* part = item_at(node, parts[3], parts[4]);
  if (parts[3] == "devices" && parts[5] == "count") {
    return family_of(text_at(part, "type")) + "s per server";
  }
  const std::string kind = text_at(part, "kind");
  return parts[3] == "links" && !kind.empty() ? kind + " " + parts[5] + " in " + servers + " servers" : "";
}

} // namespace

AxisNames::AxisNames(SweepStore& store) {
  for (const KeptFile& file : store.files(0)) {
    if (!yaml::is_named_yaml(file.path) || !file.bytes) {
      continue;
    }
    try {
      yaml::Node document = yaml::parse(*file.bytes, file.path);
      if (document.find("nodes") != nullptr) {
        platforms_.push_back(std::move(document));
      }
    } catch (const InputError&) { // a file of strangers: the axis keeps its key
      continue;
    }
  }
}

std::string AxisNames::name_of(const std::vector<std::string>& keys) const {
  std::vector<std::string> names;
  bool found = false;
  for (const std::string& key : keys) {
    std::string name;
    for (std::size_t at = 0; at < platforms_.size(); ++at) {
      const std::string one = name_on(platforms_[at], split(key));
      name = at == 0 || one == name ? one : "";
      if (name.empty()) {
        break;
      }
    }
    found = found || !name.empty();
    names.push_back(name.empty() ? short_name(key) : name);
  }
  return found ? as_one_axis(names) : "";
}

} // namespace stagecraft
