// The flag --workers of commands that share their work out over processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/common/flags.hpp"
#include "sim/base/process/worker_pool.hpp"

namespace stagecraft {

inline void add_workers_flag(Flags& flags, int& workers) {
  constexpr int kMostWorkers = 1024;
  flags.add("--workers", &workers, "processes that work (default: one per core)",
            {.name = "N", .check = whole_number(1, kMostWorkers)});
}

/// What the flag says; where it is not given, which 0 stands for, one per core.
inline int workers_of(int flag) { return flag > 0 ? flag : cores(); }

} // namespace stagecraft
