// Libraries that are opened at run time: the program starts where they are missing, and says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft::gpu {

/// An open library, or the reason why there is none. Never closed: libraries of this kind do not like it.
class SharedLibrary {
public:
  SharedLibrary() = default;

  /// Opens the first of `names` that the loader knows or that stands in one of `folders`.
  static SharedLibrary open(const std::vector<std::string>& names, const std::vector<std::string>& folders);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& problem() const { return problem_; }

  /// Stores a function's address; where there is none, notes it as the problem and gives up the library.
  template <class Function> void load(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(address(name));
  }

private:
  void* address(const char* name);

  void* handle_ = nullptr;
  std::string problem_ = "not opened";
};

/// Where CUDA's libraries may stand: `given`, the toolkit of CUDA_HOME or CUDA_PATH and its default place, and the
/// wheels of the Python that PATH finds.
std::vector<std::string> library_folders(const std::vector<std::string>& given);

} // namespace stagecraft::gpu
