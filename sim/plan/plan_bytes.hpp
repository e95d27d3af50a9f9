// Plans as bytes and back, for messages between processes of one program (sim/base/bytes.hpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/bytes.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Appends a plan with everything that it says, or the reason why there is none.
void put_plan(std::string& bytes, const PlanResult& result);

/// Reads what put_plan() wrote. Throws std::logic_error where bytes are missing.
PlanResult take_plan(ByteReader& bytes);

} // namespace stagecraft
