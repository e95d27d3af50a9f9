// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/readers.hpp"

#include <algorithm>

#include "tests/fuzz/read.hpp"
#include "tests/fuzz/seeds.hpp"

namespace stagecraft::fuzz {
namespace {

constexpr std::array kReaders = {
    Reader{"yaml", "YAML, whatever it says", read_yaml, {"tests/bad_input/*/*.yaml", "tests/study/*.yaml"}, "yaml"},
    Reader{"json", "JSON, whatever it says", read_json, {"CMakePresets.json", "../shared/samples/*.json"}, "json"},
    Reader{"csv", "CSV with columns a and b", read_csv, {}, "csv"},
    Reader{"quantities", "numbers with units", read_quantities, {}, "quantities"},
    Reader{"platform", "platforms", read_platform, {"platforms/*.yaml", "tests/bad_input/platform/*.yaml"}, "platform"},
    Reader{"device", "device types", read_device_type, {"platforms/devices/*.yaml"}, "platform"},
    Reader{"measurements", "measurements, and fits to them", read_measurements_file, {}, "measured"},
    Reader{"workload",
           "models in our YAML",
           read_workload,
           {"workloads/*.yaml", "tests/study/*.yaml", "tests/bad_input/workload/*.yaml"},
           "workload"},
    Reader{"hugging-face",
           "Hugging Face's config.json",
           read_hugging_face,
           {"../shared/samples/hf_config.json"},
           "hugging-face"},
    Reader{"onnx", "ONNX models", read_onnx_model, {}, "onnx", onnx_seeds},
    Reader{"pipedream", "PipeDream's graphs", read_pipedream, {"../shared/samples/pipedream_graph.txt"}, "pipedream"},
    Reader{"dnn-partitioning", "problems of dnn-partitioning", read_dnn_partitioning, {}, "dnn-partitioning"},
    Reader{"piper", "Piper's planning inputs", read_piper, {}, "piper"},
    Reader{
        "schedule", "schedule files of any dialect", read_schedule_file, {"../shared/samples/torch_*.csv"}, "schedule"},
    Reader{"plan",
           "plans of four operators, in every format",
           read_plan_of_chain,
           {"tests/bad_input/plan/*.yaml"},
           "plan"},
    Reader{"plan-blocks",
           "plans of a transformer, in every format",
           read_plan_of_blocks,
           {"../shared/samples/megatron_args.sh", "../shared/samples/torchgpipe_balance.json"},
           "plan"},
    Reader{"framework-config",
           "configurations of frameworks, of every format",
           read_framework_config,
           {"tests/config/*.toml", "tests/config/*.[sj]*", "tests/config/*.y*ml", "tests/bad_input/config/*"},
           "framework-config"},
    Reader{"study", "studies with settings", read_study, {"reports/*/*.yaml", "tests/bad_input/study/*.yaml"}, "study"},
    Reader{"sweep", "sweeps with settings", read_sweep, {"reports/*/study.yaml"}, "study"},
    Reader{"buy", "key 'buy' of a study with settings", read_buy_question, {"reports/*/study.yaml"}, "study"},
    Reader{"judge", "judge studies with settings", read_judge_study, {"reports/*/study.yaml"}, "study"},
    Reader{"kernel-table", "tables of measured kernels, of every kind", read_kernel_tables, {}, "measured"},
    Reader{"shape-list", "lists of kernels to measure", read_shape_list, {}, "measured"},
    Reader{"pipeline", "pipelines to be run on a GPU", read_pipeline, {}, "pipeline"},
    Reader{"times", "times of such a pipeline", read_times, {}, "pipeline"},
    Reader{"kineto", "traces of PyTorch's profiler", read_kineto_trace, {"../shared/samples/kineto.json"}, "kineto"},
    Reader{"nccl-tests",
           "output of nccl-tests, text or JSON",
           read_nccl_output,
           {"../shared/samples/nccl_tests.txt"},
           "nccl"},
    Reader{
        "topology", "output of nvidia-smi topo", read_topology, {"../shared/samples/nvidia_smi_topo.txt"}, "topology"},
    Reader{"run", "records of real runs", read_run, {"reports/reality-cores/runs/*-2-*.json"}, "run"},
    Reader{"perseus", "measured pipelines at many clocks", read_perseus, {}, "perseus"},
    Reader{"witness", "layers as a framework measured them", read_witness_file, {}, "measured"},
    Reader{"document",
           "documents of the report, traces among them",
           read_report_document,
           {"../shared/samples/kineto.json"},
           "document",
           document_seeds},
    Reader{"sweep-results", "results of sweeps in SQLite", read_sweep_file, {}, "sweep-results", sweep_seeds},
};

} // namespace

std::span<const Reader> readers() { return kReaders; }

const Reader* find_reader(std::string_view name) {
  const auto found =
      std::find_if(kReaders.begin(), kReaders.end(), [&](const Reader& row) { return row.name == name; });
  return found != kReaders.end() ? &*found : nullptr;
}

} // namespace stagecraft::fuzz
