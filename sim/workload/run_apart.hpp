// Running what may crash in a process of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stagecraft {

/// What `work` returns, computed in a child process that writes nothing to the terminal; nothing when the child dies
/// or takes longer than a minute. std::runtime_error when there can be no child.
std::optional<std::string> run_apart(const std::function<std::string()>& work);

} // namespace stagecraft
