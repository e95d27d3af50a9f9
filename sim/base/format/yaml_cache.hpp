// Recordings of what yaml-cpp says of texts that are known beforehand: the YAML files that come with the program. To
// replay one takes a small part of what parsing takes. docs/decisions/0017-short-runs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace YAML {
class EventHandler;
}

namespace stagecraft::yaml {

/// Reads one YAML document with yaml-cpp; throws as parse() does, save for what parse() itself refuses in the events.
void read_events(std::string_view text, const std::string& file, YAML::EventHandler& to);

/// The bytes of a cache: each text, and the events that read_events() gives. Texts that it refuses are left out.
std::string make_cache(const std::vector<std::string>& texts);

/// The events of `text` in a cache; nothing where the file lacks this very text, or is missing, cut, damaged or of
/// another version.
std::optional<std::string> find_recording(const std::filesystem::path& cache, std::string_view text);

/// The same in the cache that was built with the program.
std::optional<std::string> find_recording(std::string_view text);

/// Says the events that find_recording() gave.
void replay_events(std::string_view recording, YAML::EventHandler& to);

} // namespace stagecraft::yaml
