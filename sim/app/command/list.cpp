// stagecraft list: the names that other commands accept.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <functional>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/replay/engines.hpp"
#include "sim/report/table.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/study/keys/take_config.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/training/token_dispatcher.hpp"

#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft {
namespace {

struct ListCommand {
  std::string kind;
  OutputOptions output;
};

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
  std::string_view name, help;
  std::function<std::vector<Entry>()> entries;
};

const std::vector<Listing>& listings() {
  static const std::vector<Listing> kListings = {
      {"workloads", "models that come with the program; also: models", [] { return shipped_entries("workloads"); }},
      {"platforms", "clusters, for --platform NAME or --platform 'N x NAME'",
       [] { return shipped_entries("platforms"); }},
      {"devices", "types of devices that platforms are made of", [] { return shipped_entries("platforms/devices"); }},
      {"strategies", "how a model is split over devices", [] { return entries_of(strategies()); }},
      {"schedules", "in which order a pipeline works", [] { return entries_of(schedules()); }},
      {"collectives", "algorithms by which devices reduce and exchange data", [] { return entries_of(algorithms()); }},
      {"frameworks", "recipes of training frameworks, for training.framework",
       [] { return shipped_entries(kFrameworksFolder); }},
      {"cost-models", "where times of kernels come from", [] { return entries_of(cost_models()); }},
      {"engines", "how a run is replayed", [] { return entries_of(kEngines); }},
      {"metrics", "figures of a result, with their units", metric_entries},
      {"formats", "files that hold a model", [] { return entries_of(model_formats()); }},
      {"configs", "configurations of training frameworks", [] { return entries_of(config_formats()); }},
      {"plan-formats", "files that hold a plan", [] { return entries_of(plan_formats()); }},
      {"schedule-formats", "files that hold a schedule", [] { return entries_of(schedule_dialects()); }},
      {"measurement-formats", "files that hold measurements of other tools",
       [] { return entries_of(foreign::foreign_formats()); }},
      {"token-dispatchers", "how tokens reach the ranks of their experts", [] { return entries_of(kDispatchers); }},
  };
  return kListings;
}

void add_flags(Flags& flags, ListCommand& options) {
  flags.add("KIND", &options.kind, "one of " + join(names_of(listings())) + "; without it, these with their numbers");
  add_result_flags(flags, options.output, {"table", "json", "csv", "md"});
}

void emit_table(const OutputOptions& options, const Table& table) {
  TableView view = plain_view_of(options);
  view.wrap = true;
  if (options.format == "md") {
    emit(options, to_markdown(table));
  } else if (options.format == "csv") {
    std::string text;
    for (const Column& column : table.columns) {
      text += (text.empty() ? "" : ",") + csv_cell(column.title);
    }
    for (const auto& row : table.rows) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        text += (c == 0 ? "\n" : ",") + csv_cell(row[c].text);
      }
    }
    emit(options, text + "\n");
  } else {
    emit(options, to_text(table, view));
  }
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
  emit_table(options, table);
}

void emit_kinds(const OutputOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  Table table{{{"kind"}, {"number", Align::right}, {"what it is"}}, {}};
  for (const Listing& listing : listings()) {
    const std::size_t number = listing.entries().size();
    json.push_back({{"name", listing.name}, {"number", number}, {"help", listing.help}});
    table.rows.push_back(
        {{std::string(listing.name), Style::strong}, {std::to_string(number)}, {std::string(listing.help)}});
  }
  if (options.format == "json") {
    emit(options, json.dump(1, ' ') + "\n");
  } else {
    emit_table(options, table);
  }
}

// The kind that a word means: models are workloads, and one strategy is asked for among the strategies.
std::string kind_of(std::string word) {
  if (word == "models" || word == "model") {
    return "workloads";
  }
  for (const Listing& listing : listings()) {
    const std::string_view name = listing.name;
    if (word + "s" == name || (word.ends_with('y') && word.substr(0, word.size() - 1) + "ies" == name)) {
      return std::string(name);
    }
  }
  return word;
}

ExitStatus run(const ListCommand& options) {
  if (options.kind.empty()) {
    emit_kinds(options.output);
    return kDone;
  }
  const Listing& listing = find_by_name(listings(), kind_of(options.kind), "kind", {"list", 0, 0});
  emit_entries(options.output, listing.entries());
  return kDone;
}

} // namespace

Job command_list(Flags& flags) { return make_job<ListCommand>(flags, add_flags, run); }

} // namespace stagecraft
