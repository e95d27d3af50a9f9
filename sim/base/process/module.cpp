// SPDX-License-Identifier: Apache-2.0
#include "sim/base/process/module.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/system/program_places.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

fs::path place_of_module(const char* file) {
  const std::vector<fs::path> places = program_places(file);
  std::error_code failure;
  for (fs::path place : places) {
    place = place.lexically_normal();
    if (fs::exists(place, failure)) {
      return place;
    }
  }
  if (places.empty()) {
    throw InputError({file, 0, 0},
                     "this part of the program cannot be found, since /proc does not say where the program "
                     "is; allowed: a system with /proc");
  }
  const auto folder = [&](int place) { return places[place].parent_path().string(); };
  throw InputError({file, 0, 0}, "no such part of the program in " + folder(0) + " or " + folder(1) +
                                     "; allowed: a program that was built whole: build it with ./dev build, or copy "
                                     "the folder modules/ beside it");
}

} // namespace

void* find_in_module(const char* file, const char* name) {
  void* const module = dlopen(place_of_module(file).c_str(), RTLD_LAZY | RTLD_LOCAL);
  void* const function = module != nullptr ? dlsym(module, name) : nullptr;
  if (function == nullptr) {
    throw InputError({file, 0, 0}, std::string("this part of the program cannot be loaded: ") + dlerror() +
                                       "; allowed: the one that was built with the program");
  }
  return function;
}

} // namespace stagecraft
