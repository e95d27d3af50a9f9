// How a model is trained, and what is tried, where a comparison is asked for without a study.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/study/study.hpp"

namespace stagecraft {

/// What a comparison of this model on this platform assumes where the settings given do not say it: a batch for the
/// number of devices, Adam, 16 bits where the devices have them, degrees of parallelism on more than sixteen devices,
/// and strategies and schedules that take seconds. Nothing for a model with measured times, which are of one way to
/// train. docs/formats/study.md, "A comparison without a study".
std::vector<Setting> assumptions_for(const ModelGraph& model, const Platform& platform,
                                     const std::vector<Setting>& given);

/// "training.global_batch=64, training.optimizer=adam"; "" where there are none.
std::string in_words(const std::vector<Setting>& assumptions);

} // namespace stagecraft
