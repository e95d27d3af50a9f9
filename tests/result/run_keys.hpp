// The keys of a run in JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace stagecraft::test {

/// That each run has, feasible or not.
inline constexpr std::array kRunKeys = {"strategy",
                                        "schedule",
                                        "engine",
                                        "devices",
                                        "micro_batches",
                                        "feasible",
                                        "why_not",
                                        "iteration_seconds",
                                        "makespan_seconds",
                                        "samples_per_second",
                                        "speedup",
                                        "bubble_fraction",
                                        "load_imbalance",
                                        "utilization",
                                        "waiting_seconds",
                                        "exposed_communication_seconds",
                                        "data_stall_seconds",
                                        "peak_memory_bytes",
                                        "energy_joules",
                                        "energy",
                                        "mean_power_watts",
                                        "joules_per_sample",
                                        "usd_per_million_samples",
                                        "cost_usd",
                                        "tokens_per_second",
                                        "tokens_per_device_second",
                                        "mfu",
                                        "interval",
                                        "cost_basis",
                                        "exact_training",
                                        "estimate_seconds",
                                        "bottleneck_seconds",
                                        "optimal_bottleneck_seconds",
                                        "lower_bound_seconds",
                                        "over_bound",
                                        "objective",
                                        "tasks",
                                        "folded_replicas",
                                        "stages"};

} // namespace stagecraft::test
