// stagecraft show: a model, platform, device, study or plan, summed up.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/app/common/job.hpp"
#include "sim/app/common/kinds_of_file.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/run/given_run.hpp"
#include "sim/app/run/given_study.hpp"
#include "sim/app/run/model_summary.hpp"
#include "sim/app/run/plan_ranks.hpp"
#include "sim/app/run/platform_summary.hpp"
#include "sim/base/named_table.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/report/table.hpp"
#include "sim/study/keys/node_shorthand.hpp"

namespace stagecraft {
namespace {

struct ShowCommand {
  std::string what, plan_format;
  ModelOptions model; // that a plan splits
  OutputOptions output;
  SettingOptions settings;
  bool all = false; ///< operators
};

void add_flags(Flags& flags, ShowCommand& options) {
  flags.add("WHAT", &options.what, "a name or a file; a plan, in any form, with MODEL and --platform after it",
            {.required = true});
  add_plan_format_flag(flags, options.plan_format);
  add_model_flags(flags, options.model, {.required = false});
  add_result_flags(flags, options.output, {"table", "json"});
  flags.add("--all", &options.all, "every operator of a model; in JSON its name and block, as plan files need them");
  add_setting_flags(flags, options.settings);
}

std::string show_device(const DeviceType& type) {
  std::string text = type.name + " (" + type.vendor + "): " + to_text(type.memory) + " at " +
                     to_text(type.memory_bandwidth) + " effective, launch " + to_text(type.launch_overhead) + ", " +
                     to_text(type.idle) + " idle, " + to_text(type.busy) + " busy, " + in_words(type.price) + "\n";
  if (const BesideExchange& beside = type.beside_exchange; beside != BesideExchange{}) {
    text += "beside an exchange passes take " + to_text(beside.matrix, 2) + " times as long, other kernels " +
            to_text(beside.other, 2) + "\n";
  }
  Table table{{{"kernel"}}, {}};
  std::vector<PrecisionRow> shown(kPrecisions.begin(), kPrecisions.end());
  std::copy_if(kNumberFormats.begin() + kPrecisions.size(), kNumberFormats.end(), std::back_inserter(shown),
               [&](const PrecisionRow& row) { return type.rate(KernelKind::matmul, row.precision).has_value(); });
  for (const PrecisionRow& precision : shown) {
    table.columns.push_back({std::string(precision.name), Align::right});
  }
  for (const KernelKindRow& kind : kKernelKinds) {
    std::vector<Cell> row = {{std::string(kind.name)}};
    for (const PrecisionRow& precision : shown) {
      const auto rate = type.rate(kind.kind, precision.precision);
      row.push_back(rate ? Cell{to_text(*rate)} : Cell{"-", Style::dim});
    }
    table.rows.push_back(std::move(row));
  }
  return text + to_text(table, use_color());
}

std::string show_study(const Study& study) {
  std::vector<std::string> counts;
  for (const int count : study.training.micro_batches) {
    counts.push_back(std::to_string(count));
  }
  const std::size_t splits = study.strategies.size() + study.plans.size();
  const std::size_t runs = splits * study.schedules.size() * counts.size();
  const std::string given = study.plans.empty() ? "" : " and " + std::to_string(study.plans.size()) + " plan files";
  return study.name + (study.description.empty() ? "" : ": " + study.description) + "\n" + study.model->name + " on " +
         study.platform.name + ", " + std::to_string(study.training.global_batch) + " samples per iteration in " +
         join(counts, ", ") + " micro-batches, " + std::string(study.engine->name) + " engine, seed " +
         std::to_string(study.seed) + "\n" + std::to_string(runs) +
         " runs: " + std::to_string(study.strategies.size()) + " strategies" + given + " x " +
         std::to_string(study.schedules.size()) + " schedules x " + std::to_string(counts.size()) +
         " numbers of micro-batches\n";
}

// Throws for JSON, which only models and plans have.
void refuse_json(const ShowCommand& options) {
  if (options.output.format == "json") {
    throw InputError({"--format json", 0, 0}, "'" + options.what + "' is no model and no plan; allowed: table");
  }
}

// The shipped file that a name means, whatever its case; empty: none. `known`: the names of all.
std::filesystem::path shipped_file(const Folders& folders, const std::string& name, std::vector<std::string>& known) {
  std::filesystem::path file;
  for (const char* kind : {"platforms/devices", "platforms", "workloads"}) {
    const std::vector<std::string> names = shipped_names(folders, kind);
    const auto found =
        std::find_if(names.begin(), names.end(), [&](const std::string& one) { return same_name(one, name); });
    if (file.empty() && found != names.end()) {
      file = folders.shipped / kind / (*found + ".yaml");
    }
    known.insert(known.end(), names.begin(), names.end());
  }
  return file;
}

// The ranks of a plan.
ExitStatus show_plan(const ShowCommand& options) {
  const Study study = study_of_model(options.model, settings_of(options.settings, options.model)).study;
  const Plan plan = load_plan(options.what, options.plan_format, *study.model, study.platform);
  if (const auto defects = plan_defects(plan, *study.model, study.platform); !defects.empty()) {
    throw InputError({options.what, 0, 0}, defects.front() + "; stagecraft check lists all that is wrong");
  }
  emit_ranks(options.output, plan, study.platform);
  return kDone;
}

// A plan names operators and devices, which only its model and its platform have.
void refuse_lone_plan(const std::string& file) {
  if (const std::optional<KnownInput> known = known_input(file); known && known->what == "is a plan") {
    throw InputError({file, 0, 0}, "a plan is shown with its model; allowed: show " + file + " MODEL --platform P");
  }
}

ExitStatus run(const ShowCommand& options) {
  if (!options.model.model.empty()) {
    return show_plan(options);
  }
  refuse_lone_plan(options.what);
  if (!options.model.platform.empty()) { // the ranks of a plan need one, and nothing else has any use of it
    throw InputError({"--platform", 0, 0}, "goes with a plan and its MODEL; allowed: stagecraft compare " +
                                               options.what + " --platform '" + options.model.platform + "'");
  }
  const Folders folders{".", shipped_folder()};
  if (const Where where{"show", 0, 0}; node_shorthand(options.what, where)) {
    refuse_json(options);
    emit(options.output,
         platform_summary(
             read_platform({.kind = yaml::Node::Kind::scalar, .text = options.what, .where = where}, folders, {}),
             use_color()));
    return kDone;
  }
  std::vector<std::string> known;
  std::filesystem::path file = shipped_file(folders, options.what, known);
  if (file.empty() && !std::filesystem::is_regular_file(options.what)) {
    const std::filesystem::path path(options.what);
    const bool is_path = path.has_parent_path() || yaml::is_named_yaml(path) || path.extension() == ".json";
    throw InputError({"show", 0, 0},
                     is_path ? "no such file: '" + options.what + "'; allowed: a file, or a name of `stagecraft list`"
                             : "no such file, and " + unknown_name("name", options.what, known));
  }
  const bool is_shipped = !file.empty();
  file = is_shipped ? file : std::filesystem::path(options.what);
  const DeviceTypeSource types = device_types_in(folders.shipped / "platforms" / "devices");
  const yaml::Node document = yaml::is_named_yaml(file) ? yaml::load(file) : yaml::Node{};
  if (document.find("nodes") != nullptr) {
    refuse_json(options);
    emit(options.output, platform_summary(load_platform(document, types), use_color()));
  } else if (document.find("vendor") != nullptr) {
    refuse_json(options);
    emit(options.output, show_device(load_device_type(document, types)));
  } else if (document.find("model") != nullptr) {
    refuse_json(options);
    emit(options.output,
         show_study(load_study(document, {file.parent_path(), folders.shipped}, {}, Purpose::comparison)));
  } else {
    const ModelReading& reading = options.model.reading;
    emit_model(options.output, load_model(file, import_options(reading)),
               device_fits(is_shipped ? file.stem().string() : options.what, reading), options.all);
  }
  return kDone;
}

} // namespace

Job command_show(Flags& flags) { return make_job<ShowCommand>(flags, add_flags, run); }

} // namespace stagecraft
