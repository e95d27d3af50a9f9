// What comes with the program as it was built: its version and its files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stagecraft {

std::string_view program_version();

/// The folder of the shipped models and platforms: beside the build's sources, where it was installed, or where the
/// user says.
std::filesystem::path shipped_folder();

/// The path of a file relative to a folder that it is below; "" for a file elsewhere.
std::string path_below(const std::filesystem::path& folder, const std::filesystem::path& file);

/// A file as results name it: a shipped one by its path in the shipped folder.
std::string input_name(const std::filesystem::path& file);

/// calibrate_gpu as --gpu-binary names it, or beside this program. InputError where it is not there.
std::string gpu_program(const std::string& given);

} // namespace stagecraft
