// Writing the study that a command line describes, so that it can be kept, changed and run again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/study/inputs.hpp"

namespace stagecraft {

/// The text of a study file that means the document with the settings on top; it will lie in `folder`, from which it
/// names files, and `folders` are those of the document. InputError for settings that no study file can say.
std::string study_text(const yaml::Node& document, const std::vector<Setting>& settings, const Folders& folders,
                       const std::filesystem::path& folder);

} // namespace stagecraft
