// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_files.hpp"

#include <cstdlib>
#include <stdexcept>

namespace stagecraft::fuzz {

namespace fs = std::filesystem;

Folder::Folder() {
  const fs::path memory = "/dev/shm";
  std::error_code failure;
  const bool in_memory = std::getenv("TMPDIR") == nullptr && fs::is_directory(memory, failure);
  std::string name = ((in_memory ? memory : fs::temp_directory_path()) / "stagecraft-fuzz-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error(name + ": no folder can be made here");
  }
  path_ = name;
}

Folder::~Folder() {
  std::error_code failure;
  fs::remove_all(path_, failure);
}

} // namespace stagecraft::fuzz
