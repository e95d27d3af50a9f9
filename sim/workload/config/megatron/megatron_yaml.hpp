// Megatron-LM's arguments as its own recipes and functional tests have them: a mapping `ARGS` or `MODEL_ARGS` of a YAML
// document (examples/moe_recipes, tests/functional_tests of NVIDIA/Megatron-LM), with underscores or as they are typed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/format/yaml.hpp"

namespace stagecraft {

/// The mapping of arguments in such a document, or null.
const yaml::Node* arguments_in(const yaml::Node& document);

/// The arguments as they are typed, each where the document has it, so that messages name its place. InputError where
/// `arguments` is no mapping, or a value is one.
std::string typed_arguments(const yaml::Node& arguments);

} // namespace stagecraft
