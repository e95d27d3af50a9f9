// Whether the conditions of a sweep compare like with like, whatever values its axes take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/sweep/space/sweep.hpp"

namespace stagecraft {

/// Condition::check_kinds() for every kind of value that the axes have, those of zipped axes together.
void check_kinds(const Sweep& sweep, const Condition& condition);

} // namespace stagecraft
