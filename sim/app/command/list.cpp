// stagecraft list: the names that other commands accept.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <functional>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/replay/engines.hpp"
#include "sim/report/table.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/study/take_config.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/token_dispatcher.hpp"

#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft {
namespace {

struct ListCommand {
  std::string kind;
  OutputOptions output;
};

void add_flags(Flags& flags, ListCommand& options) {
  flags.add(
      "KIND", &options.kind,
      "strategies, schedules, collectives, devices, platforms, workloads, frameworks, cost-models, engines, formats, "
      "measurement-formats, configs, plan-formats, schedule-formats, token-dispatchers or metrics",
      {.required = true});
  add_output_flags(flags, options.output, {"table", "json"});
}

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

// The names of shipped files, each with the description in the file.
std::vector<Entry> shipped_entries(std::string_view kind) {
  const Folders folders{".", shipped_folder()};
  std::vector<Entry> entries;
  for (const std::string& name : shipped_names(folders, kind)) {
    const yaml::Node document = yaml::load(folders.shipped / kind / (name + ".yaml"));
    const yaml::Node* description = document.find("description");
    entries.push_back({name, description != nullptr ? description->text : ""});
  }
  return entries;
}

// The metrics with their units: "busy / iteration, per device".
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
      {"collectives", [] { return entries_of(algorithms()); }},
      {"devices", [] { return shipped_entries("platforms/devices"); }},
      {"platforms", [] { return shipped_entries("platforms"); }},
      {"workloads", [] { return shipped_entries("workloads"); }},
      {"frameworks", [] { return shipped_entries(kFrameworksFolder); }},
      {"cost-models", [] { return entries_of(cost_models()); }},
      {"engines", [] { return entries_of(kEngines); }},
      {"formats", [] { return entries_of(model_formats()); }},
      {"measurement-formats", [] { return entries_of(foreign::foreign_formats()); }},
      {"schedule-formats", [] { return entries_of(schedule_dialects()); }},
      {"configs", [] { return entries_of(config_formats()); }},
      {"plan-formats", [] { return entries_of(plan_formats()); }},
      {"token-dispatchers", [] { return entries_of(kDispatchers); }},
      {"metrics", metric_entries},
  };
  return kListings;
}

void emit_entries(const OutputOptions& options, const std::vector<Entry>& entries) {
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

ExitStatus run(const ListCommand& options) {
  emit_entries(options.output, find_by_name(listings(), options.kind, "kind", {"list", 0, 0}).entries());
  return kDone;
}

} // namespace

Job command_list(Flags& flags) { return make_job<ListCommand>(flags, add_flags, run); }

} // namespace stagecraft
