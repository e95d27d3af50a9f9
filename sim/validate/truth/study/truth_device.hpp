// Which shipped device type a row means by the words that it calls its devices by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"

namespace stagecraft {

/// The platform of devices of which no node is shipped.
inline constexpr std::string_view kPlainNode = "pcie-v100";
/// The shipped platform that is a node of such devices.
std::string_view node_of(const std::string& device);

/// The shipped device type that a row's words mean: that of its model, form factor and memory, as far as they are
/// stated. Infeasible with the nearest ones where there is none.
std::variant<std::string, Infeasible> truth_device(const TruthRow& row, const std::filesystem::path& shipped);

/// What is assumed of the row's device beyond its words, as a clause; "": nothing.
std::string assumed_device(const TruthRow& row, const std::string& device, const std::filesystem::path& shipped);

/// The precisions of which the row's device type states a peak; none where no shipped one is called like it.
std::set<std::string> device_precisions(const TruthRow& row, const std::filesystem::path& shipped);

/// Whether shipped device types of the row's name differ in memory, of which it does not say.
bool leaves_memory_open(const TruthRow& row, const std::filesystem::path& shipped);

} // namespace stagecraft
