// Writing texts into YAML so that they read back unchanged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// A text as a value or key of YAML: as it stands where it is plainly words or a quantity, in double quotes otherwise.
std::string yaml_text(std::string_view text);

} // namespace stagecraft
