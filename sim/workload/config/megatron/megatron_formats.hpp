// Formats that say what Megatron-LM's arguments say: its own, and those of what is built on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/config/common/config_source.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"

namespace stagecraft {

/// Megatron-LM's arguments, as in a launch script.
ImportedTraining import_megatron(const ConfigSource& source, const ConfigContext& context);
/// A ConfigContainer of Megatron-Bridge, or part of one, as YAML or JSON.
ImportedTraining import_megatron_bridge(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_megatron_bridge(const ConfigToWrite& what);
/// A row of NeMo's recommended_model_configs.
ImportedTraining import_nemo(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_nemo(const ConfigToWrite& what);
/// MLPerf's config_*.sh: exported variables, which are read and never executed.
ImportedTraining import_mlperf(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_mlperf(const ConfigToWrite& what);

} // namespace stagecraft
