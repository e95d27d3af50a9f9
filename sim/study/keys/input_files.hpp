// Keeps what studies read: the bytes and documents of files, and the models and platforms made of them. A thousand
// studies that differ in one number then read and build the rest once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "sim/platform/known_types.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// Remembers every file that it was asked for, and the values made last.
class InputFiles {
public:
  /// The bytes of a file. Throws InputError.
  const std::string& bytes(const std::filesystem::path& path);
  /// A file's YAML document.
  const yaml::Node& document(const std::filesystem::path& path);
  /// A file's YAML document with settings on top. Reuses the document of the last call where that set the same keys.
  /// Valid until the next call.
  const yaml::Node& document(const std::filesystem::path& path, const std::vector<Setting>& settings,
                             std::string_view prefix);
  /// As device_types_in(), but keeps the files.
  DeviceTypeSource device_types(const std::filesystem::path& folder);
  /// Device types read before, for load_platform(); nullptr unless keep_types() was called.
  KnownTypes* types() { return keeps_types_ ? &types_ : nullptr; }
  /// From now on each device type is read once, and its files are not noted again.
  void keep_types() { keeps_types_ = true; }
  /// Notes the files that a platform or a device type names and that lie beside it.
  void note_beside(const yaml::Node& document);

  /// The model, platform or schedule kept under this key; where there is none, `make` makes it. The files it was made
  /// of count as asked for.
  std::shared_ptr<const ModelGraph> model(const std::string& key, const std::function<ModelGraph()>& make);
  std::shared_ptr<const Platform> platform(const std::string& key, const std::function<Platform()>& make);
  std::shared_ptr<const Schedule> schedule(const std::string& key, const std::function<Schedule()>& make);

  /// Forgets which files were asked for, not what is in them.
  void forget_asked() { asked_.clear(); }
  /// Files asked for since forget_asked(), including those of models and platforms that were kept.
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
  std::map<std::string, Made<Schedule>> schedules_;
};

} // namespace stagecraft
