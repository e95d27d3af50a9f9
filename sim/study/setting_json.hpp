// What a result rests on, for those who only have the result: training, model, devices and the links between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sim/study/study.hpp"

namespace stagecraft {

/// The key `setting` of a result, as JSON (docs/formats/results.md). `program` is the version that made it.
std::string setting_json(const Study& study, std::string_view program);

} // namespace stagecraft
