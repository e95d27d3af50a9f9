// Platforms, devices, models, plans and schedules: each read, and what a study does first with it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "sim/cost/cost_model.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "sim/platform/route.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/study/study.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/import/import.hpp"
#include "tests/fuzz/fuzz_files.hpp"
#include "tests/fuzz/read.hpp"

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/write_device.hpp"

namespace stagecraft::fuzz {
namespace {

void check_edges(const ModelGraph& model) {
  const auto size = static_cast<std::size_t>(model.size());
  require(model.predecessors.size() == size && model.successors.size() == size, "every operator has its edges");
  for (OperatorId op = 0; op < model.size(); ++op) {
    for (const OperatorId before : model.predecessors[op]) {
      const std::vector<OperatorId>& after = model.successors[before];
      require(before < op, "operators stand in a topological order");
      require(std::binary_search(after.begin(), after.end(), op), "edges are known at both ends");
    }
  }
}

// The times of the first operators on a shipped device, as the model's cost model has them.
void cost(const ModelGraph& model) {
  static const DeviceType kDevice = shipped_type("a100-sxm-80gb");
  constexpr int kMostOperators = 100;
  for (const CostModelRow& row : cost_models()) {
    const CostModelResult made = row.make({model, &kDevice});
    if (const auto* costs = std::get_if<std::unique_ptr<CostModel>>(&made)) {
      for (OperatorId op = 0; op < std::min(model.size(), kMostOperators); ++op) {
        (*costs)->time(op, kDevice, 4, Precision::fp32);
        (*costs)->time_of_shard(op, kDevice, 4, Precision::fp16, {2, true});
        (*costs)->error(op, kDevice, 4, Precision::fp32);
      }
    }
  }
}

void use(const ModelGraph& model) {
  check_edges(model);
  totals_of(model);
  cost(model);
  if (!model.devices.empty()) {
    brought_platform(model);
  }
}

void import(std::string_view bytes, std::string_view format, const ImportOptions& options) {
  const std::span<const ModelFormat> formats = model_formats();
  const auto row =
      std::find_if(formats.begin(), formats.end(), [&](const ModelFormat& one) { return one.name == format; });
  require(row != formats.end(), "the format has a row");
  use(import_model(*row, std::string(bytes), "file", options));
}

ImportOptions with_cost_scale() {
  ImportOptions options;
  options.cost_scale = 2;
  return options;
}

// The ways from the first device to some others, and back.
void find_routes(const Platform& platform) {
  Router router(platform);
  constexpr std::size_t kMostRoutes = 20;
  const std::size_t step = std::max<std::size_t>(1, platform.devices.size() / kMostRoutes);
  for (std::size_t device = 0; device < platform.devices.size(); device += step) {
    router.cost(0, static_cast<DeviceId>(device));
    router.cost(static_cast<DeviceId>(device), 0);
    router.from_host(static_cast<DeviceId>(device));
  }
}

// Kernels of every kind and size.
void predict_kernels(const DeviceType& type) {
  for (const KernelOpRow& op : kKernelOps) {
    for (const double extent : {1.0, 64.0, 1000.0}) {
      for (std::size_t precision = 0; type.fits != nullptr && precision < kPrecisions.size(); ++precision) {
        Kernel kernel{.op = op.op, .precision = static_cast<Precision>(precision), .shape = {}};
        std::fill_n(kernel.shape.begin(), op.rank(), extent);
        predict(*type.fits, kernel);
      }
    }
  }
}

// Reads a plan of this study in every format, and writes it in every format where it is valid.
void read_plan(const Study& study, std::string_view bytes) {
  const auto read = [&](std::string_view format) {
    const Plan plan = read_plan_text({std::string(bytes), "file", *study.model, study.platform}, format);
    if (plan_defects(plan, *study.model, study.platform).empty()) {
      for (const PlanFormat& other : plan_formats()) {
        write_plan(other, {plan, *study.model, study.platform, study.training, 4});
      }
    }
  };
  for (const PlanFormat& format : plan_formats()) {
    try {
      read(format.name);
    } catch (const InputError&) { // of another format
    }
  }
  read("");
}

} // namespace

void read_platform(std::string_view bytes) { find_routes(load_platform(yaml::parse(bytes, "file"), shipped_types())); }

void read_device_type(std::string_view bytes) {
  predict_kernels(load_device_type(yaml::parse(bytes, "file"), shipped_types()));
}

void read_measurements_file(std::string_view bytes) {
  const yaml::Node document = yaml::parse(bytes, "file");
  const Measurements measurements = read_measurements(document);
  measured_kernels(measurements);
  fit::FitInput input;
  add(input, measurements);
  constexpr std::size_t kMostRows = 40; // fits take a second beyond that
  if (input.kernels.size() + input.copies.size() + input.collectives.size() > kMostRows) {
    return;
  }
  static const DeviceType kDevice = shipped_type("h100-sxm-80gb");
  const KernelFits fits = fit_device(input, kDevice, 100, {});
  const std::string sections = fit::measurements_text({document}) + fit::fits_text(fits, {"a file"});
  const std::string sheet = fit::device_text(measurements);
  const std::string text = fit::with_sections(sheet, "fitted", sections, !fits.kernels.empty());
  predict_kernels(load_device_type(yaml::parse(text, "the new file"), shipped_types()));
}

void read_workload(std::string_view bytes) { use(load_workload(yaml::parse(bytes, "file"))); }

void read_onnx_model(std::string_view bytes) {
  ImportOptions options;
  options.dimensions = {{"batch", 2}, {"sequence", 8}};
  import(bytes, "onnx", options);
}

void read_hugging_face(std::string_view bytes) { import(bytes, "hugging-face", {}); }

void read_pipedream(std::string_view bytes) { import(bytes, "pipedream", {}); }

void read_dnn_partitioning(std::string_view bytes) { import(bytes, "dnn-partitioning", with_cost_scale()); }

void read_piper(std::string_view bytes) { import(bytes, "piper", with_cost_scale()); }

void read_schedule_file(std::string_view bytes) {
  const ScheduleFile file = read_schedule(bytes, "file");
  if (!schedule_defects(file).empty()) {
    return;
  }
  for (const ScheduleDialect& dialect : schedule_dialects()) {
    for (const bool messages : {false, true}) {
      const std::variant<std::string, Infeasible> text = to_csv(file.schedule, dialect.name, messages);
      if (std::holds_alternative<std::string>(text)) {
        const ScheduleFile again = read_schedule(std::get<std::string>(text), "written");
        require(schedule_defects(again).empty(), "a schedule that was written can run");
      }
    }
  }
}

void read_plan_of_chain(std::string_view bytes) {
  static const Study kStudy = load_study(yaml::parse("model: chain.yaml\nplatform: {devices: 4}\n", "study"),
                                         {kRoot / "tests/study", kRoot}, {});
  read_plan(kStudy, bytes);
}

void read_plan_of_blocks(std::string_view bytes) {
  static const Study kStudy = load_study(
      yaml::parse("model: gpt2\nplatform: nvlink-v100\ntraining: {global_batch: 32}\n", "study"), {kRoot, kRoot}, {});
  read_plan(kStudy, bytes);
}

void read_framework_config(std::string_view bytes) {
  static const ModelGraph kModel = load_model(kRoot / "workloads/gpt2.yaml");
  for (const char* file : {"c.toml", "c.yaml", "c.csv", "c.sh"}) {
    const ConfigSource source(std::string(bytes), file);
    for (const ConfigFormat& format : config_formats()) {
      try {
        if (shows(format, source)) {
          load_training(format.read(source, {kModel, 8}).training);
        }
      } catch (const InputError&) { // another format may take it
      }
    }
  }
}

} // namespace stagecraft::fuzz
