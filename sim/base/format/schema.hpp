// The schema of the documents that the program writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stagecraft {

/// `schema` of every JSON and plan file: keys may be added to it, never renamed.
inline constexpr const char* kSchema = "stagecraft/1";

} // namespace stagecraft
