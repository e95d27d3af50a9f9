// Modules: parts of the program that are loaded when they are first needed. docs/decisions/0017-short-runs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stagecraft {

/// The address of the function called `name` in the module `file`, which is loaded unless it is already, and stays.
/// Throws InputError where the module does not lie where it was built or installed with the program, or lacks the
/// function.
void* find_in_module(const char* file, const char* name);

/// The same as a function of the type `Function`.
template <class Function> Function* module_function(const char* file, const char* name) {
  return reinterpret_cast<Function*>(find_in_module(file, name));
}

} // namespace stagecraft
