// The commands of the program, one row each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sim/app/common/job.hpp"

namespace stagecraft {

/// A command: where the help lists it, what it does in a few words, a whole call of it, and the function that declares
/// its flags.
struct CommandRow {
  const char* group;
  const char* name;
  const char* help;
  const char* example;
  Job (*declare)(Flags& flags);
};

std::span<const CommandRow> commands();

} // namespace stagecraft
