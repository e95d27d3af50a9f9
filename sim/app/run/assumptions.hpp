// How a model is trained, and what is tried, where a comparison is asked for without a study.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/study.hpp"

namespace stagecraft {

/// The recipe that is assumed of transformers on NVIDIA's devices.
inline constexpr const char* kUsualFramework = "megatron-lm-2025";

/// Degrees of parallelism that were tried, as `training.parallel` says them, and the time of an iteration; none where
/// nothing fits.
struct TriedDegrees {
  std::string parallel;
  std::optional<Seconds> iteration;
};

/// The time of an iteration with these settings beside those given; none where nothing fits.
using TryDegrees = std::function<std::optional<Seconds>(const std::vector<Setting>& settings)>;

/// What nobody said, and what it was chosen from.
struct Assumptions {
  std::vector<Setting> settings;
  std::vector<TriedDegrees> tried; ///< none where degrees are given, or only one choice is open
};

/// Where degrees of parallelism are assumed.
enum class AssumedDegrees {
  where_needed, ///< on many devices, or on few that must share what Adam keeps
  anywhere,     ///< on all devices that are several and alike, so that platforms of many sizes compare
};

/// What a comparison of this model on this platform assumes where the settings given do not say it: a batch for the
/// number of devices, Adam, 16 bits where the devices have them, degrees of parallelism where devices are many or must
/// share what Adam keeps, and strategies and schedules that take seconds. Of several degrees it takes the fastest by
/// `attempt`, without which it takes the first. Nothing for a model with measured times, which are of one way to train.
/// docs/formats/study.md, "A comparison without a study".
Assumptions assumptions_for(const ModelGraph& model, const Platform& platform, const std::vector<Setting>& given,
                            const TryDegrees& attempt = {}, AssumedDegrees degrees = AssumedDegrees::where_needed);

/// "training.global_batch=64, training.optimizer=adam"; "" where there are none.
std::string in_words(const std::vector<Setting>& assumptions);
/// Which degrees were tried, in a sentence, the fastest first; "" where none were.
std::string in_words(std::vector<TriedDegrees> tried);

} // namespace stagecraft
