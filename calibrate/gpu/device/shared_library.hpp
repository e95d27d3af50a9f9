// Libraries opened at run time, so that the program starts without them and says what is missing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft::gpu {

/// An open library, or the reason why there is none. Never closed, which libraries of this kind do not survive.
class SharedLibrary {
public:
  SharedLibrary() = default;

  /// Opens the first of `names` that the loader knows or that is in one of `folders`.
  static SharedLibrary open(const std::vector<std::string>& names, const std::vector<std::string>& folders);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& problem() const { return problem_; }

  /// Stores a function's address; if there is none, records the problem and drops the library.
  template <class Function> void load(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(address(name));
  }

private:
  void* address(const char* name);

  void* handle_ = nullptr;
  std::string problem_ = "not opened";
};

/// Where CUDA's libraries may be: `given`, the toolkit of CUDA_HOME or CUDA_PATH or its default place, and the wheels
/// of the Python that PATH finds.
std::vector<std::string> library_folders(const std::vector<std::string>& given);

} // namespace stagecraft::gpu
