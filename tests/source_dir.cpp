// SPDX-License-Identifier: Apache-2.0
#include "tests/source_dir.hpp"

namespace stagecraft::test {

std::filesystem::path source_dir() { return STAGECRAFT_SOURCE_DIR; }

} // namespace stagecraft::test
