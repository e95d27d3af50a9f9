// The functions of the table of readers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace stagecraft::fuzz {

// read_base.cpp
void read_yaml(std::string_view bytes);
void read_json(std::string_view bytes);
void read_csv(std::string_view bytes);
void read_quantities(std::string_view bytes);

// read_inputs.cpp
void read_platform(std::string_view bytes);
void read_device_type(std::string_view bytes);
void read_measurements_file(std::string_view bytes);
void read_workload(std::string_view bytes);
void read_hugging_face(std::string_view bytes);
void read_onnx_model(std::string_view bytes);
void read_pipedream(std::string_view bytes);
void read_dnn_partitioning(std::string_view bytes);
void read_piper(std::string_view bytes);
void read_schedule_file(std::string_view bytes);
void read_plan_of_chain(std::string_view bytes);
void read_plan_of_blocks(std::string_view bytes);
void read_framework_config(std::string_view bytes);

// read_studies.cpp
void read_study(std::string_view bytes);
void read_sweep(std::string_view bytes);
void read_judge_study(std::string_view bytes);
void read_buy_question(std::string_view bytes);

// read_measured.cpp
void read_kernel_tables(std::string_view bytes);
void read_shape_list(std::string_view bytes);
void read_pipeline(std::string_view bytes);
void read_times(std::string_view bytes);
void read_kineto_trace(std::string_view bytes);
void read_nccl_output(std::string_view bytes);
void read_topology(std::string_view bytes);

// read_results.cpp
void read_run(std::string_view bytes);
void read_perseus(std::string_view bytes);
void read_witness_file(std::string_view bytes);
void read_report_document(std::string_view bytes);
void read_sweep_file(std::string_view bytes);

} // namespace stagecraft::fuzz
