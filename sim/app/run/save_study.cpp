// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/save_study.hpp"

#include <algorithm>

#include "sim/app/common/program.hpp"
#include "sim/base/format/yaml_text.hpp"
#include "sim/study/keys/node_shorthand.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// A value on one line, its texts in quotes only where they need them.
std::string flow(const yaml::Node& node) {
  std::string text;
  switch (node.kind) {
  case yaml::Node::Kind::null:
    return "null";
  case yaml::Node::Kind::scalar:
    return yaml_text(node.text);
  case yaml::Node::Kind::sequence:
    for (const yaml::Node& item : node.items) {
      text += (text.empty() ? "" : ", ") + flow(item);
    }
    return "[" + text + "]";
  case yaml::Node::Kind::map:
    for (const yaml::Node::Entry& entry : node.entries) {
      text += (text.empty() ? "" : ", ") + yaml_text(entry.key) + ": " + flow(entry.value);
    }
    return "{" + text + "}";
  }
  return text;
}

// The value behind "KEY:", on the same line where that is short, else one key or item a line, deeper by two blanks.
std::string block(const yaml::Node& node, const std::string& indent) {
  constexpr std::size_t kShort = 100;
  const std::string line = flow(node);
  if (line.size() + indent.size() <= kShort || node.kind == yaml::Node::Kind::scalar) {
    return " " + line + "\n";
  }
  std::string text = "\n";
  for (const yaml::Node& item : node.items) {
    text += indent + "- " + flow(item) + "\n";
  }
  for (const yaml::Node::Entry& entry : node.entries) {
    text += indent + yaml_text(entry.key) + ":" + block(entry.value, indent + "  ");
  }
  return text;
}

// Puts the platform in place of its name, with the settings below "platform."; several nodes like a shipped one stay a
// few words, with another network.
void embed_platform(yaml::Node& platform, const std::vector<Setting>& settings, const Folders& folders) {
  const Where where = platform.where;
  if (const std::optional<NodeShorthand> nodes = node_shorthand(platform.text, where)) {
    yaml::Node map{.kind = yaml::Node::Kind::map, .where = where};
    map.entries.push_back({"nodes", where, platform});
    for (const Setting& setting : settings) {
      if (!setting.key.starts_with("network.")) {
        throw InputError({"--save-study", 0, 0}, "no study file can say platform." + setting.key + " of '" +
                                                     platform.text + "'; allowed: keys of platform.network");
      }
      apply(map, setting, "platform.");
    }
    platform = std::move(map);
    return;
  }
  platform = yaml::load(find_file(folders, "platforms", platform.text, where));
  for (const Setting& setting : settings) {
    apply(platform, setting, "platform.");
  }
}

// Puts a model in YAML in place of its name, with the settings below "model.".
void embed_model(yaml::Node& model, const std::vector<Setting>& settings, const Folders& folders) {
  const fs::path file = find_file(folders, "workloads", model.text, model.where);
  if (!yaml::is_named_yaml(file)) {
    throw InputError({"--set model." + settings.front().key, 0, 0}, "only models in YAML have keys to set");
  }
  yaml::Node map{.kind = yaml::Node::Kind::map, .where = model.where};
  map.entries.push_back({"workload", model.where, yaml::load(file)});
  for (const Setting& setting : settings) {
    apply(map.entries.front().value, setting, "model.");
  }
  model = std::move(map);
}

// The name of a file as a study in `folder` gives it; a shipped name stays as it is.
void rename(yaml::Node& name, std::string_view kind, const Folders& folders, const fs::path& folder) {
  std::error_code failure;
  for (const fs::path& place : places_of(folders, name.text)) {
    if (name.kind == yaml::Node::Kind::scalar && fs::is_regular_file(place, failure) &&
        path_below(folders.shipped / kind, fs::absolute(place).lexically_normal()).empty()) {
      name.text = fs::absolute(place).lexically_normal().lexically_relative(fs::absolute(folder).lexically_normal());
      return;
    }
  }
}

void rename_files(yaml::Node& document, const Folders& folders, const fs::path& folder) {
  for (const auto& [key, kind] : {std::pair{"model", "workloads"}, {"platform", "platforms"}}) {
    if (yaml::Node* value = value_at(document, key)) {
      yaml::Node* file = value->kind == yaml::Node::Kind::map ? value_at(*value, "file") : value;
      if (file != nullptr && file->kind == yaml::Node::Kind::scalar) {
        rename(*file, kind, folders, folder);
      }
    }
  }
  if (yaml::Node* training = value_at(document, "training"); training != nullptr) {
    if (yaml::Node* config = value_at(*training, "config")) {
      rename(name_of_file(*config), "", folders, folder);
    }
  }
  if (yaml::Node* compare = value_at(document, "compare")) {
    for (const char* key : {"plans", "schedules"}) {
      yaml::Node* listed = value_at(*compare, key);
      for (yaml::Node* item = listed; item != nullptr && item->kind == yaml::Node::Kind::scalar; item = nullptr) {
        rename(*item, "", folders, folder);
      }
      for (std::size_t i = 0; listed != nullptr && i < listed->items.size(); ++i) {
        yaml::Node& item = listed->items[i];
        yaml::Node* file = item.kind == yaml::Node::Kind::map ? value_at(item, "file") : &item;
        if (file != nullptr && file->kind == yaml::Node::Kind::scalar) {
          rename(*file, "", folders, folder);
        }
      }
    }
  }
}

} // namespace

yaml::Node* value_at(yaml::Node& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const yaml::Node::Entry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &found->value;
}

yaml::Node& name_of_file(yaml::Node& config) {
  yaml::Node* file = value_at(config, "file");
  return file != nullptr ? *file : config;
}

std::string study_text(const yaml::Node& document, const std::vector<Setting>& settings, const Folders& folders,
                       const fs::path& folder) {
  ChangedStudy changed = changed_study(document, settings);
  yaml::Node& study = changed.document;
  if (!changed.of_model.empty()) {
    embed_model(*value_at(study, "model"), changed.of_model, folders);
  }
  if (!changed.of_platform.empty()) {
    embed_platform(*value_at(study, "platform"), changed.of_platform, folders);
  }
  rename_files(study, folders, folder);
  std::string text;
  for (const yaml::Node::Entry& entry : study.entries) {
    text += yaml_text(entry.key) + ":" + block(entry.value, "  ");
  }
  return text;
}

} // namespace stagecraft
