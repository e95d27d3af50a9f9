// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/program.hpp"

#include <unistd.h>

#include <cstdlib>

#include "sim/base/error.hpp"

namespace stagecraft {

std::string_view program_version() { return STAGECRAFT_VERSION; }

std::filesystem::path shipped_folder() {
  if (const char* given = std::getenv("STAGECRAFT_DATA"); given != nullptr) {
    return given;
  }
  return STAGECRAFT_DATA_DIR;
}

std::string path_below(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const std::filesystem::path below = file.lexically_relative(folder.lexically_normal());
  return below.empty() || *below.begin() == ".." ? "" : below.string();
}

std::string input_name(const std::filesystem::path& file) {
  const std::string shipped = path_below(shipped_folder(), file);
  return shipped.empty() ? file.string() : shipped;
}

std::string gpu_program(const std::string& given) {
  std::string file = !given.empty()
                         ? given
                         : (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "calibrate_gpu").string();
  if (access(file.c_str(), X_OK) != 0) {
    throw InputError({"--backend gpu", 0, 0},
                     "no program " + file +
                         "; it is built where there is a CUDA Toolkit: cmake --build BUILD --target calibrate_gpu, or "
                         "alone from calibrate/gpu (docs/calibration.md). allowed: --gpu-binary FILE");
  }
  return file;
}

} // namespace stagecraft
