// The table of backends: one file and one row for each.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "calibrate/pipeline/backend.hpp"
#include "calibrate/pipeline/measure_cores.hpp"
#include "calibrate/pipeline/measure_parts.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr std::array kBackends = {
    BackendRow{"emulated", "computations sleep, transfers are TCP over links shaped to their bandwidths (root)", true,
               true, make_emulated, measure_parts},
    BackendRow{"sleeping", "every task sleeps its time; transfers meet no other", true, false, make_sleeping,
               measure_parts},
    BackendRow{"cpu", "a core per device runs the model's kernels, transfers are copies in memory", false, false,
               make_cpu, measure_on_cores, true},
    BackendRow{"gpu", "partitions of one GPU run the model's kernels, and threads of its host beside it", false, false,
               nullptr, nullptr},
};

} // namespace

std::span<const BackendRow> backends() { return kBackends; }

} // namespace stagecraft::pipeline
