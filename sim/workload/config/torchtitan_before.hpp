// TorchTitan's files of 2024 and early 2025, whose fields lay in other sections.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// The document with its fields where TorchTitan had them from March 2025 on, each at its own place in the file.
yaml::Node with_sections_of_today(yaml::Node document);

} // namespace stagecraft
