// Adds keys to a result that is written already.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/result/run.hpp"

namespace stagecraft {

/// The JSON object `object` with further keys at its end; parts without a value are left out. It is added as text: a
/// value may take 100 MB, which no parser has to read.
std::string with_parts(std::string object, const std::vector<JsonPart>& parts);

} // namespace stagecraft
