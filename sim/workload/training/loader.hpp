// How training data reaches the devices: read from disk, decoded on host cores, copied to the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sim/base/format/yaml.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {

/// What an idle host core does. Each device in use has a core that drives it, and each loader worker a core that
/// decodes.
enum class HostWait { unmodelled, spin, block };

struct HostWaitRow {
  std::string_view name, help;
  HostWait wait;
};
inline constexpr std::array kHostWaits = {
    HostWaitRow{"spin", "waiting cores spin, as frameworks do unless told", HostWait::spin},
    HostWaitRow{"block", "waiting cores sleep until they are woken", HostWait::block},
};

/// The loader of a study. Every device of the first stage has a loader of its own, whose batches are micro-batches.
struct Loader {
  std::optional<int> workers; ///< per loader; nothing: chosen so that host and device balance
  std::optional<int> queue;   ///< batches begun and not yet taken, at most; nothing: chosen with the workers
  Bytes bytes_per_sample;     ///< size of a sample on disk
  Seconds decode;             ///< per sample on one core
  Flops decode_work;          ///< per sample, divided by the core's speed; added to `decode`
  HostWait host = HostWait::spin;
};

/// Reads the `loader` mapping of a study: docs/formats/study.md. Throws InputError.
Loader load_loader(const yaml::Node& node);

} // namespace stagecraft
