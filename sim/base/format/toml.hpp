// Reading TOML as the same nodes that YAML is read as.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// Reads a TOML document; `file` is named in errors. A mapping keeps its keys in the order of the file. Throws
/// InputError on bad syntax, a key or table given twice, and what goes beyond sim/base/limits.hpp.
yaml::Node parse_toml(std::string_view text, const std::string& file);

} // namespace stagecraft
