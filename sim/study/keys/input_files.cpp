// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/input_files.hpp"

#include <algorithm>

#include "sim/base/system/file.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

InputFiles::File& InputFiles::file(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  auto found = files_.find(normal);
  if (found == files_.end()) {
    found = files_.emplace(normal, File{read_file(normal), nullptr}).first;
  }
  asked_.insert(normal);
  return found->second;
}

const std::string& InputFiles::bytes(const fs::path& path) { return file(path).bytes; }

const yaml::Node& InputFiles::document(const fs::path& path) {
  File& read = file(path);
  if (!read.document) {
    read.document = std::make_unique<yaml::Node>(yaml::parse(read.bytes, path.string()));
  }
  return *read.document;
}

const yaml::Node& InputFiles::document(const fs::path& path, const std::vector<Setting>& settings,
                                       std::string_view prefix) {
  const yaml::Node& read = document(path);
  if (settings.empty()) {
    return read;
  }
  std::string keys;
  bool apart = true; // no key below another
  for (const Setting& setting : settings) {
    keys += setting.key + "\n";
    apart = apart && std::none_of(settings.begin(), settings.end(),
                                  [&](const Setting& other) { return other.key.starts_with(setting.key + "."); });
  }
  Changed& changed = changed_[path.lexically_normal()];
  if (!apart || changed.keys != keys) {
    changed = {"", read};
  }
  changed.keys.clear(); // a setting may throw: the document counts only once all are set
  for (const Setting& setting : settings) {
    apply(changed.document, setting, prefix);
  }
  changed.keys = keys;
  return changed.document;
}

DeviceTypeSource InputFiles::device_types(const fs::path& folder) {
  return [this, folder](const std::string& name, const Where& where) {
    const fs::path path = folder / (name + ".yaml");
    const bool known = files_.contains(path.lexically_normal());
    const yaml::Node& read = document(known ? path : find_device_type(folder, name, where));
    note_beside(read);
    return read;
  };
}

void InputFiles::note_beside(const yaml::Node& document) {
  for (const yaml::Node::Entry& entry : document.entries) {
    if (entry.key == "device_types" || entry.key == "measurements") {
      for (const yaml::Node& item : entry.value.items) {
        const fs::path beside = fs::path(item.where.file).parent_path() / item.text;
        std::error_code failure;
        if (item.kind == yaml::Node::Kind::scalar && fs::is_regular_file(beside, failure)) {
          note_beside(this->document(beside));
        }
        note_beside(item);
      }
    }
  }
}

template <class Value>
std::shared_ptr<const Value> InputFiles::keep(std::map<std::string, Made<Value>>& made, const std::string& key,
                                              const std::function<Value()>& make) {
  auto found = made.find(key);
  if (found == made.end()) {
    constexpr std::size_t kMost = 4;
    if (made.size() >= kMost) {
      made.clear();
    }
    std::set<fs::path> before;
    before.swap(asked_);
    Made<Value> fresh{std::make_shared<const Value>(make()), asked_};
    asked_.merge(before);
    found = made.emplace(key, std::move(fresh)).first;
  }
  asked_.insert(found->second.files.begin(), found->second.files.end());
  return found->second.value;
}

std::shared_ptr<const ModelGraph> InputFiles::model(const std::string& key, const std::function<ModelGraph()>& make) {
  return keep(models_, key, make);
}

std::shared_ptr<const Platform> InputFiles::platform(const std::string& key, const std::function<Platform()>& make) {
  return keep(platforms_, key, make);
}

std::shared_ptr<const Schedule> InputFiles::schedule(const std::string& key, const std::function<Schedule()>& make) {
  return keep(schedules_, key, make);
}

} // namespace stagecraft
