// The table of backends: one file each, one row each.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr std::array kBackends = {
    BackendRow{"emulated", "computations sleep, transfers are TCP over links shaped to their bandwidths (root)", true,
               true, make_emulated},
    BackendRow{"sleeping", "every task sleeps its time; transfers meet no other", true, false, make_sleeping},
};

} // namespace

std::span<const BackendRow> backends() { return kBackends; }

} // namespace stagecraft::pipeline
