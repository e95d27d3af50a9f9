// Schedule files: a line per device with its tokens, as `stagecraft schedule --format csv` writes them.
// docs/formats/schedule.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// One line per rank, tokens like F0@1 joined by commas.
std::string to_csv(const Schedule& schedule);

/// Reads what to_csv() writes; stages and micro-batches are those that occur, backward is split where a W occurs.
/// Throws InputError at a token that is none. Whether the orders can run is schedule_defects()'s to say.
Schedule read_schedule(std::string_view text, const std::string& file);

} // namespace stagecraft
