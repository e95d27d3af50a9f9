// What a file of a stranger, and a command that it names, may come to at most, in one place; docs/reliability.md tells
// users. A limit is far above what people write and far below what a machine of 4 GiB could not bear.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace stagecraft::limits {

/// Size of a file that is read whole, in MiB.
inline constexpr int kFileMebibytes = 256;
/// Values of a YAML or JSON document, those that its aliases repeat among them.
inline constexpr std::size_t kValues = 64'000'000;
/// Values of a YAML document, whose reader takes a kilobyte for each.
inline constexpr std::size_t kYamlValues = 1'000'000;
/// Depth to which lists, mappings and objects lie within each other.
inline constexpr int kDepth = 100;

// Of a command that a study names.

/// Address space of each process of a command, in MiB, where the study names no other.
inline constexpr int kCommandMemoryMebibytes = 4096;
/// The most that a study may name, in MiB.
inline constexpr int kMostCommandMemoryMebibytes = 65'536;
/// Seconds of one call of a command, where the study names no other; the time of processors is this for each core.
inline constexpr int kCommandSeconds = 60;
/// What a command may print on its standard output, and on its standard error, in MiB.
inline constexpr int kCommandOutputMebibytes = 64;
/// Size of each file that a command writes, in MiB.
inline constexpr int kCommandFileMebibytes = 256;
/// Processes and threads of a command, beside those that its user has.
inline constexpr int kCommandProcesses = 512;

} // namespace stagecraft::limits
