// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/unique_name.hpp"

#include <algorithm>

namespace stagecraft {

std::string unique_name(const std::string& own, const std::filesystem::path& path,
                        const std::vector<std::string>& taken) {
  const auto is_free = [&](const std::string& name) {
    return std::find(taken.begin(), taken.end(), name) == taken.end();
  };
  std::string name = own;
  std::filesystem::path folder = path, file; // file: as much of the path as makes the name unique
  while (!is_free(name) && folder.has_filename()) {
    file = file.empty() ? folder.filename() : folder.filename() / file;
    folder = folder.parent_path();
    name = own == path.filename() ? file.string() : own + " (" + file.string() + ")";
  }
  for (int again = 2; !is_free(name); ++again) { // one file twice
    name = own + " (" + std::to_string(again) + ")";
  }
  return name;
}

} // namespace stagecraft
