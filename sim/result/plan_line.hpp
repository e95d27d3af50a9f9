// The plan of a run in the words of those who train: degrees, ZeRO, recomputation, micro-batches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/result/run.hpp"

namespace stagecraft {

/// "data 32, tensor 1, pipeline 1, ZeRO 3 (FSDP), no recomputation, 8 micro-batches of 2 sequences a replica". Of a
/// feasible run that has stages; else "".
std::string plan_line(const Run& run);

/// The ranks of its pipeline: places of its stages, of which several may stand in one. 0 for a run without stages.
int pipeline_ranks(const Run& run);

} // namespace stagecraft
