// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/shared_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace stagecraft::gpu {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The roots of the active virtual environment, and of the installation of the first python3 in PATH, both where it is
// found and where its link leads.
std::vector<fs::path> python_roots() {
  std::vector<fs::path> roots;
  if (const std::string active = environment("VIRTUAL_ENV"); !active.empty()) {
    roots.emplace_back(active);
  }
  std::istringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    std::error_code error;
    if (fs::exists(fs::path(folder) / "python3", error)) {
      roots.push_back(fs::path(folder).parent_path());
      roots.push_back(fs::canonical(fs::path(folder) / "python3", error).parent_path().parent_path());
      break;
    }
  }
  return roots;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

} // namespace

SharedLibrary SharedLibrary::open(const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  SharedLibrary library;
  for (const std::string& name : names) {
    std::vector<std::string> paths = {name};
    for (const std::string& folder : folders) {
      paths.push_back(folder + "/" + name);
    }
    for (const std::string& path : paths) {
      library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (library.handle_ != nullptr) {
        library.problem_.clear();
        return library;
      }
      if (path == name) { // keep the loader's own message for the bare name; a folder without the library adds nothing
        library.problem_ = dlerror();
      }
    }
  }
  return library;
}

void* SharedLibrary::address(const char* name) {
  void* found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
  if (handle_ != nullptr && found == nullptr) {
    problem_ = std::string("has no function ") + name;
    handle_ = nullptr;
  }
  return found;
}

std::vector<std::string> library_folders(const std::vector<std::string>& given) {
  std::vector<std::string> folders = given;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = environment(name); !root.empty()) {
      folders.push_back(root + "/lib64");
    }
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const fs::path& root : python_roots()) {
    for (const fs::path& python : entries_of(root / "lib")) {
      for (const fs::path& package : entries_of(python / "site-packages" / "nvidia")) {
        folders.push_back((package / "lib").string());
      }
    }
  }
  return folders;
}

} // namespace stagecraft::gpu
