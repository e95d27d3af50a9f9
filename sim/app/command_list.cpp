// stagecraft list and show: what there is, and what is in it.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

#include "sim/app/options.hpp"
#include "sim/base/file.hpp"
#include "sim/base/schema.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/report/table.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/schedule/format/schedule_file.hpp"

#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft {
namespace {

struct Entry {
  std::string name, help;
};

template <class Rows> std::vector<Entry> entries_of(const Rows& rows) {
  std::vector<Entry> entries;
  for (const auto& row : rows) {
    entries.push_back({std::string(row.name), std::string(row.help)});
  }
  return entries;
}

// Names of shipped files with the description that each holds.
std::vector<Entry> shipped_entries(const char* kind) {
  const Folders folders{".", shipped_folder()};
  std::vector<Entry> entries;
  for (const std::string& name : shipped_names(folders, kind)) {
    const yaml::Node document = yaml::load(folders.shipped / kind / (name + ".yaml"));
    const yaml::Node* description = document.find("description");
    entries.push_back({name, description != nullptr ? description->text : ""});
  }
  return entries;
}

// With their units: "busy / iteration, per device".
std::vector<Entry> metric_entries() {
  std::vector<Entry> entries;
  for (const Metric& metric : kMetrics) {
    entries.push_back({std::string(metric.name), std::string(metric.help) +
                                                     (metric.per_device != nullptr ? ", per device" : "") +
                                                     (metric.unit.empty() ? "" : ", ") + std::string(metric.unit)});
  }
  return entries;
}

struct Listing {
  std::string_view name;
  std::function<std::vector<Entry>()> entries;
};

const std::vector<Listing>& listings() {
  static const std::vector<Listing> kListings = {
      {"strategies", [] { return entries_of(strategies()); }},
      {"schedules", [] { return entries_of(schedules()); }},
      {"devices", [] { return shipped_entries("platforms/devices"); }},
      {"platforms", [] { return shipped_entries("platforms"); }},
      {"workloads", [] { return shipped_entries("workloads"); }},
      {"cost-models", [] { return entries_of(cost_models()); }},
      {"engines", [] { return entries_of(kEngines); }},
      {"formats", [] { return entries_of(model_formats()); }},
      {"measurement-formats", [] { return entries_of(foreign::foreign_formats()); }},
      {"schedule-formats", [] { return entries_of(schedule_dialects()); }},
      {"plan-formats", [] { return entries_of(plan_formats()); }},
      {"metrics", metric_entries},
  };
  return kListings;
}

void emit_entries(const Options& options, const std::vector<Entry>& entries) {
  if (options.format == "json") {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Entry& entry : entries) {
      json.push_back({{"name", entry.name}, {"help", entry.help}});
    }
    emit(options, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  Table table{{{"name"}, {"what it is"}}, {}};
  for (const Entry& entry : entries) {
    table.rows.push_back({{entry.name, Style::strong}, {entry.help}});
  }
  emit(options, to_text(table, use_color()));
}

std::string summary_json(const ModelGraph& model) {
  const ModelTotals totals = totals_of(model);
  const nlohmann::ordered_json json = {{"schema", kSchema},
                                       {"name", model.name},
                                       {"operators", model.size()},
                                       {"parameters", totals.parameters},
                                       {"forward_flops", totals.forward.value},
                                       {"backward_flops", totals.backward.value},
                                       {"activation_bytes", totals.output_elements * row_of(Precision::fp32).bytes}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string show_model(const ModelGraph& model) {
  const ModelTotals totals = totals_of(model);
  std::string text = model.name + (model.description.empty() ? "" : ": " + model.description) + "\n" +
                     std::to_string(model.size()) + " operators, " + to_text(totals.parameters / 1e6, 2) +
                     " M parameters; per sample: forward " + to_text(totals.forward) + ", backward " +
                     to_text(totals.backward) + ", activations " + to_text(Bytes{4 * totals.output_elements}) +
                     " (fp32)\n";
  for (const Profile& profile : model.profiles) {
    Seconds forward;
    Seconds backward;
    for (const MeasuredTime& time : profile.times) {
      forward += time.forward;
      backward += time.backward;
    }
    text += "measured" + (profile.device.empty() ? "" : " on " + profile.device) +
            (profile.samples > 0 ? " with " + to_text(profile.samples, 0) + " samples" : " per minibatch") +
            ": forward " + to_text(forward) + ", backward " + to_text(backward) + "\n";
  }
  Table table{{{"operator"},
               {"type"},
               {"kind"},
               {"forward", Align::right},
               {"parameters", Align::right},
               {"output", Align::right},
               {"inputs"}},
              {}};
  for (OperatorId op = 0; op < model.size(); ++op) {
    const Operator& what = model.operators[op];
    std::vector<std::string> inputs;
    for (const OperatorId maker : model.predecessors[op]) {
      inputs.push_back(model.operators[maker].name);
    }
    table.rows.push_back({{what.name},
                          {what.type},
                          {std::string(row_of(what.kind).name)},
                          {to_text(what.forward.flops)},
                          {to_text(what.parameters, 0)},
                          {to_text(what.output_elements, 0)},
                          {join(inputs)}});
  }
  return text + "\n" + to_text(table, use_color());
}

std::string show_device(const DeviceType& type) {
  std::string text = type.name + " (" + type.vendor + "): " + to_text(type.memory) + " at " +
                     to_text(type.memory_bandwidth) + " effective, launch " + to_text(type.launch_overhead) + ", " +
                     to_text(type.idle) + " idle, " + to_text(type.busy) + " busy, " +
                     to_text(type.price.value * 3600, 2) + " USD/h\n";
  Table table{{{"kernel"}}, {}};
  for (const PrecisionRow& precision : kPrecisions) {
    table.columns.push_back({std::string(precision.name), Align::right});
  }
  for (const KernelKindRow& kind : kKernelKinds) {
    std::vector<Cell> row = {{std::string(kind.name)}};
    for (const PrecisionRow& precision : kPrecisions) {
      const auto rate = type.rate(kind.kind, precision.precision);
      row.push_back(rate ? Cell{to_text(*rate)} : Cell{"-", Style::dim});
    }
    table.rows.push_back(std::move(row));
  }
  return text + to_text(table, use_color());
}

std::string show_platform(const Platform& platform) {
  std::string text = platform.name + (platform.description.empty() ? "" : ": " + platform.description) + "\n\n";
  Table devices{{{"device"}, {"memory", Align::right}, {"node"}}, {}};
  constexpr std::size_t kMostShown = 64;
  for (std::size_t d = 0; d < std::min(platform.devices.size(), kMostShown); ++d) {
    devices.rows.push_back({{platform.devices[d].name},
                            {to_text(platform.type_of(static_cast<int>(d)).memory)},
                            {platform.nodes[platform.devices[d].node].name}});
  }
  text += to_text(devices, use_color());
  text +=
      platform.devices.size() > kMostShown ? "… " + std::to_string(platform.devices.size()) + " devices in all\n" : "";
  Table paths{{{"from \\ to"}}, {}};
  constexpr std::size_t kMostPaths = 8;
  Router router(platform);
  const auto shown = static_cast<DeviceId>(std::min(platform.devices.size(), kMostPaths));
  for (DeviceId to = 0; to < shown; ++to) {
    paths.columns.push_back({platform.devices[to].name, Align::right});
  }
  for (DeviceId from = 0; from < shown; ++from) {
    std::vector<Cell> row = {{platform.devices[from].name}};
    for (DeviceId to = 0; to < shown; ++to) {
      const PathCost path = router.cost(from, to);
      row.push_back(
          {from == to ? "-" : to_text(BytesPerSecond{1 / path.seconds_per_byte}) + ", " + to_text(path.latency)});
    }
    paths.rows.push_back(std::move(row));
  }
  return text + "\nBandwidth and latency of a lone transfer:\n" + to_text(paths, use_color());
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

// Only what a model sums up to has a JSON form.
void refuse_json(const Options& options) {
  if (options.format == "json") {
    throw InputError({"--format json", 0, 0}, "'" + options.file + "' is no model; allowed: table");
  }
}

// Whether `name` is the name of a shipped file of the kind.
bool is_shipped(const Folders& folders, const char* kind, const std::string& name) {
  return std::filesystem::is_regular_file(folders.shipped / kind / (name + ".yaml"));
}

} // namespace

void emit_model(const Options& options, const ModelGraph& model) {
  emit(options, options.format == "json" ? summary_json(model) : show_model(model));
}

int command_list(const Options& options) {
  emit_entries(options, find_by_name(listings(), options.what, "kind", {"list", 0, 0}).entries());
  return kDone;
}

int command_show(const Options& options) {
  const Folders folders{".", shipped_folder()};
  std::filesystem::path file;
  std::vector<std::string> known;
  for (const char* kind : {"platforms/devices", "platforms", "workloads"}) {
    if (file.empty() && is_shipped(folders, kind, options.file)) {
      file = folders.shipped / kind / (options.file + ".yaml");
    }
    const std::vector<std::string> names = shipped_names(folders, kind);
    known.insert(known.end(), names.begin(), names.end());
  }
  if (file.empty() && !std::filesystem::is_regular_file(options.file)) {
    throw InputError({"show", 0, 0}, "no such file, and " + unknown_name("name", options.file, known));
  }
  file = file.empty() ? std::filesystem::path(options.file) : file;
  const DeviceTypeSource types = device_types_in(folders.shipped / "platforms" / "devices");
  const yaml::Node document = file.extension() == ".yaml" ? yaml::load(file) : yaml::Node{};
  if (document.find("nodes") != nullptr) {
    refuse_json(options);
    emit(options, show_platform(load_platform(document, types)));
  } else if (document.find("vendor") != nullptr) {
    refuse_json(options);
    emit(options, show_device(load_device_type(document, types)));
  } else if (document.find("model") != nullptr) {
    refuse_json(options);
    emit(options, show_study(load_study(document, {file.parent_path(), folders.shipped}, {})));
  } else {
    emit_model(options, load_model(file, import_options(options)));
  }
  return kDone;
}

} // namespace stagecraft
