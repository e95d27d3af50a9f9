// Where the sources lie. Only one file is compiled with that path, so that a compiler's cache serves every clone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace stagecraft::test {

/// The root of the repository that the tests were built from.
std::filesystem::path source_dir();

} // namespace stagecraft::test
