// How training data reaches the devices: read from disk, decoded on host cores, copied.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sim/base/units.hpp"
#include "sim/base/yaml.hpp"

namespace stagecraft {

/// What a host core does that has nothing to do. Each device in use has a core that drives it, and each worker of a
/// loader one that decodes.
enum class HostWait { unmodelled, spin, block };

struct HostWaitRow {
  std::string_view name, help;
  HostWait wait;
};
inline constexpr std::array kHostWaits = {
    HostWaitRow{"spin", "waiting cores spin, as frameworks do unless told", HostWait::spin},
    HostWaitRow{"block", "waiting cores sleep until they are woken", HostWait::block},
};

/// The loader of a study: every device of the first stage has one of its own, and a batch of it is one micro-batch.
struct Loader {
  std::optional<int> workers; ///< of each loader; nothing: chosen so that host and device balance
  std::optional<int> queue;   ///< batches begun and not yet taken; nothing: chosen with the workers
  Bytes bytes_per_sample;     ///< on disk
  Seconds decode;             ///< of one sample on one core
  Flops decode_work;          ///< likewise, divided by the core's speed; the two add up
  HostWait host = HostWait::spin;
};

/// Reads the `loader` mapping of a study: docs/formats/study.md. Throws InputError.
Loader load_loader(const yaml::Node& node);

} // namespace stagecraft
