// Operators by their names in numbered blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// `layer.0.NAME`, …, `layer.0.LAST`, `layer.1.NAME`, … of so many blocks.
std::vector<std::string> in_all_blocks(int blocks, std::span<const std::string_view> names);

} // namespace stagecraft
