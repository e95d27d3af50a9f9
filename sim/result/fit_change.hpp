// Which of two changes that make runs fit is the smaller one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace stagecraft {

/// Compares changes as Run::would_fit says them: a setting is smaller than memory, which has to be bought, and less
/// memory is smaller than more; "", no change known, is the largest. Settings are alike.
bool is_smaller_change(std::string_view one, std::string_view other);

} // namespace stagecraft
