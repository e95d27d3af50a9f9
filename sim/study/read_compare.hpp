// Keys `compare` and `dynamic` of a study: what is tried.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/format/yaml.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// Reads strategies, schedules, plans and the ranking of a study whose model, platform and training are known. Throws
/// InputError.
void read_compare(yaml::Map& map, const Folders& folders, Study& study);

/// Key `dynamic`: options of the strategy of that name. Throws InputError.
BalanceOptions read_balance(yaml::Map& study);

} // namespace stagecraft
