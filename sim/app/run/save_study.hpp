// Writing the study that a command line describes, so that it can be kept, changed and run again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// The text of a study file that means the document with the settings on top; it will lie in `folder`, from which it
/// names files, and `folders` are those of the document. InputError for settings that no study file can say.
std::string study_text(const yaml::Node& document, const std::vector<Setting>& settings, const Folders& folders,
                       const std::filesystem::path& folder);

/// The value of a key; null where the value is no mapping, or lacks it.
yaml::Node* value_at(yaml::Node& map, std::string_view key);

/// What names the file of a configuration, which is a name or a mapping with `file`.
yaml::Node& name_of_file(yaml::Node& config);

} // namespace stagecraft
