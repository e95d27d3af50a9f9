// What the command line was asked, and what every command has in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/analysis/judge.hpp"
#include "sim/base/figure.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

struct SweepInputs; // sim/sweep/run/sweep_evaluate.hpp

/// Exit statuses, docs/formats/results.md.
enum ExitStatus {
  kDone = 0,
  kNothingFeasible = 1,
  kBadInput = 2,
  kSomeFailed = 3,
  kNoHardware = 4,
  kBug = 70,
  kInterrupted = 130
};

/// Times of `schedule` have no unit; beyond this their sums would lose digits.
inline constexpr double kLongestPlainTime = 1e12;

/// One record for all commands; each reads what concerns it.
struct Options {
  // common
  std::string format = "table";
  std::vector<std::string> settings;
  std::string engine, cost_model;
  std::string seed;
  std::string confidence; ///< draws
  std::string output;
  bool quiet = false;
  // inputs
  std::string study, model, platform;
  int devices = 0;
  std::string bandwidth, latency, memory;
  std::vector<std::string> dimensions;
  std::string cost_scale;
  // plan, replay, schedule, check, compare
  std::string strategy, schedule, plan, plan_format, trace, memory_series;
  std::vector<std::string> plans;
  std::string training_micro_batches; ///< "", "auto", or a number
  int shown_iterations = 0; ///< of a replay's picture, trace and memory; 0: as many as its figures need, the last drawn
  int timelines = 0;        ///< of the best runs, that a comparison keeps
  bool timeline = false, pictures = false, all_rows = false;
  // sweep, points, merge
  bool count = false, retry = false;
  int workers = 0; ///< 0: one per core
  std::string shard, point, results;
  std::vector<std::string> files;
  std::string title; ///< of a report
  // schedule
  int stages = 4, micro_batches = 0, chunks = 0, iterations = 3;
  std::vector<double> forward = {1}, backward, backward_input, backward_weight;
  double fused = 0; ///< 0: forward and backward together take as long as one after the other
  double hop_latency = 0;
  std::string recompute;
  std::string dialect = "stagecraft"; ///< of schedules in CSV
  bool messages = false;
  // train, execute
  int steps = 20;                          ///< of the optimiser
  std::string time_scale, bandwidth_scale; ///< "", "auto", or a number
  int attempts = 3;
  int runs = 7;
  bool measured = false;                      ///< the strategy's plans by real runs instead of replays
  std::string copies = "device", carried_out; ///< of backend gpu: the route of copies; times that came of it elsewhere
  // list, show, import
  std::string what, file;
  std::string collective;            ///< that nccl-tests measured
  int ranks = 0, nodes = 0;          ///< 0: as the file says, one
  bool collectives = false;          ///< of a trace
  std::string nvlink, pcie, network; ///< bandwidths that a matrix does not tell
  // calibrate
  std::string calibrate_action;                           ///< fit, predict or show
  std::vector<std::string> raw;                           ///< files of measurements
  std::map<std::string, std::vector<std::string>> tables; ///< foreign tables by the name of their kind
  std::vector<std::string> provenance;                    ///< sentences for readers
  std::string device, select, figures;
  double hold_out = 0;
  int processors = 0; ///< 0: as the measurements or the device file say
  // calibrate, measuring
  std::string backend = "cpu", budget, shapes, gpu_binary, device_name;
  std::string library = "eigen"; ///< for products on the processor
  std::vector<std::string> groups;
  int threads = 1;
  bool quick = false;
  std::vector<int> sizes; ///< of micro-batches, to measure a model at
};

/// Where shipped data lies: beside the build's sources, or as installed.
std::filesystem::path shipped_folder();

/// Throws InputError where the output is one of the inputs, which would be lost.
void keep_inputs(const std::string& output, const std::vector<std::string>& inputs);

/// The path of a file below a folder; "" of one that is elsewhere.
std::string path_below(const std::filesystem::path& folder, const std::filesystem::path& file);

/// What flags change of a study: --set, and those that stand for one of its keys. Throws InputError.
std::vector<Setting> settings_from(const Options& options);

/// A file as results name it: shipped ones by their path in the shipped folder.
std::string input_name(const std::filesystem::path& file);

/// The study's own file and those that were asked for, as results name them.
std::vector<std::string> inputs_of(const Options& options, const InputFiles& files);

/// The study that flags describe: a study file, or MODEL with --platform, --devices or devices of its own.
/// `inputs`, where given, hears which files were read.
Study study_from(const Options& options, std::vector<std::string>* inputs = nullptr);

/// The sweep of a study file; `files` must outlive it.
SweepInputs sweep_inputs_from(const Options& options, InputFiles& files);

/// The judge study of a file.
JudgeStudy judge_study_from(const Options& options);

/// KEY=VALUE of --set.
std::vector<Setting> parse_settings(const std::vector<std::string>& texts);

/// The model named, with what --dim and --cost-scale say of it.
yaml::Node model_node(const Options& options);

/// What --dim and --cost-scale say.
ImportOptions import_options(const Options& options);

/// Text to stdout, control bytes of names written out; InputError when it is lost there.
void print(const std::string& text);
/// The same to stderr.
void remark(const std::string& text);

/// Results: to the file of -o, or stdout.
void emit(const Options& options, const std::string& text);

/// A result that is a table for people and a document besides, each made when asked for.
struct ResultForms {
  std::function<std::string()> table, json, csv;
};
/// With -o the file holds the document, JSON where no CSV is asked for, and the terminal still shows a table asked for.
void emit(const Options& options, const ResultForms& forms);

/// calibrate_gpu beside this program, where it was built, or as told. InputError where it is not there.
std::string gpu_program(const Options& options);

/// Results: a model summed up.
void emit_model(const Options& options, const ModelGraph& model);

/// Draws them into the folder of --figures, and says where; or why not, and where the scripts are. Nothing without.
void draw_figures(const Options& options, const std::vector<Figure>& figures);

/// Whether stdout may be coloured: a terminal, and NO_COLOR not set.
bool use_color();
/// Columns of the terminal; 120 where there is none.
int terminal_width();

int command_compare(const Options& options);
int command_sweep(const Options& options);
int command_points(const Options& options);
int command_merge(const Options& options);
int command_judge(const Options& options);
int command_adapt(const Options& options);
int command_plan(const Options& options);
int command_replay(const Options& options);
int command_explain(const Options& options);
int command_report(const Options& options);
int command_execute(const Options& options);
int command_train(const Options& options);
int command_schedule(const Options& options);
int command_check(const Options& options);
int command_show(const Options& options);
int command_list(const Options& options);
int command_import(const Options& options);
int command_export(const Options& options);
int command_validate(const Options& options);
int command_calibrate(const Options& options);
/// `export pipeline`.
int command_export_pipeline(const Options& options);
/// `calibrate` with none of its actions.
int command_measure(const Options& options);
/// The same with --workload.
int command_profile(const Options& options);

} // namespace stagecraft
