// A command: its flags, and what it does once they are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "sim/app/common/flags.hpp"

namespace stagecraft {

/// What a command does once the command line is read. InputError where its flags or files are wrong.
using Job = std::function<ExitStatus()>;

/// The job of a command whose flags fill `Options`.
template <class Options>
Job make_job(Flags& flags, void (*add_flags)(Flags&, Options&), ExitStatus (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  add_flags(flags, *options);
  return [options, run] { return run(*options); };
}

} // namespace stagecraft
