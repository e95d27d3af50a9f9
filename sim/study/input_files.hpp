// What studies read, kept: files with their bytes and documents, and the models and platforms made of them, so that a
// thousand studies that differ in one number read and build the rest once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "sim/platform/known_types.hpp"
#include "sim/study/inputs.hpp"

namespace stagecraft {

/// Remembers every file that it was asked for, and the values made last.
class InputFiles {
public:
  /// The bytes of a file. Throws InputError.
  const std::string& bytes(const std::filesystem::path& path);
  /// A file's YAML document.
  const yaml::Node& document(const std::filesystem::path& path);
  /// A file's YAML document with settings on top, made from the one made last where that had the same keys set. Valid
  /// until the next call.
  const yaml::Node& document(const std::filesystem::path& path, const std::vector<Setting>& settings,
                             std::string_view prefix);
  /// device_types_in() whose files are kept.
  DeviceTypeSource device_types(const std::filesystem::path& folder);
  /// Device types read before, for load_platform(); nothing unless keep_types() was called.
  KnownTypes* types() { return keeps_types_ ? &types_ : nullptr; }
  /// From now on device types are read once, and their files no longer noted each time.
  void keep_types() { keeps_types_ = true; }
  /// Notes the files that a platform or a device type names beside itself.
  void note_beside(const yaml::Node& document);

  /// The model or platform made under this key, or what `make` gives, with the files it was made of.
  std::shared_ptr<const ModelGraph> model(const std::string& key, const std::function<ModelGraph()>& make);
  std::shared_ptr<const Platform> platform(const std::string& key, const std::function<Platform()>& make);

  /// Forgets which files were asked for, not what is in them.
  void forget_asked() { asked_.clear(); }
  /// Files asked for since, those of values made earlier included.
  const std::set<std::filesystem::path>& asked() const { return asked_; }

private:
  struct File {
    std::string bytes;
    std::unique_ptr<yaml::Node> document;
  };
  template <class Value> struct Made {
    std::shared_ptr<const Value> value;
    std::set<std::filesystem::path> files;
  };
  template <class Value>
  std::shared_ptr<const Value> keep(std::map<std::string, Made<Value>>& made, const std::string& key,
                                    const std::function<Value()>& make);
  File& file(const std::filesystem::path& path);

  /// A document with the values of these keys set.
  struct Changed {
    std::string keys;
    yaml::Node document;
  };

  std::map<std::filesystem::path, File> files_;
  std::map<std::filesystem::path, Changed> changed_;
  KnownTypes types_;
  bool keeps_types_ = false;
  std::set<std::filesystem::path> asked_;
  std::map<std::string, Made<ModelGraph>> models_;
  std::map<std::string, Made<Platform>> platforms_;
};

} // namespace stagecraft
