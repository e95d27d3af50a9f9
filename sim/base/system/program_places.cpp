// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/program_places.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

std::vector<fs::path> program_places(const std::string& file) {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure).parent_path();
  if (failure) {
    return {};
  }
  return {program / "modules" / file, program.parent_path() / "lib/stagecraft" / file,
          program.parent_path().parent_path() / "modules" / file};
}

} // namespace stagecraft
