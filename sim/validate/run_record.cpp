// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/run_record.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "sim/base/file.hpp"
#include "sim/base/improves.hpp"
#include "sim/base/schema.hpp"
#include "sim/base/units.hpp"
#include "sim/workload/import/json_document.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kNano = 1e9;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Infinity is null.
Json finite(double value) { return std::isinf(value) ? Json() : Json(value); }

Json to_value(const Work& work) {
  return {std::string(1, kTaskLetters[static_cast<std::size_t>(work.kind)]),
          work.device,
          work.leg,
          work.stage,
          work.to_stage,
          work.seconds.value,
          work.latency.value,
          work.bytes,
          work.acquire.value,
          work.release.value};
}

Json platform_value(const Platform& platform) {
  Json json = {{"name", platform.name}, {"devices", Json::array()}, {"links", Json::array()}};
  for (const Device& device : platform.devices) {
    json["devices"].push_back(device.name);
  }
  for (const Link& link : platform.links) {
    json["links"].push_back({link.name, finite(link.bandwidth.value), link.latency.value});
  }
  return json;
}

Json graph_value(const TaskGraph& graph) {
  Json json = {{"devices", graph.devices}, {"works", Json::array()}, {"legs", Json::array()}};
  for (const Work& work : graph.works) {
    json["works"].push_back(to_value(work));
  }
  for (const Leg& leg : graph.legs) {
    json["legs"].push_back({leg.links, leg.latency.value, finite(leg.bandwidth.value)});
  }
  json["work"] = graph.work;
  json["micro_batch"] = graph.micro_batch;
  json["successors"] = Json::array();
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    json["successors"].push_back(graph.successors_of(task));
  }
  json["programs"] = Json::array();
  for (std::size_t device = 0; device < graph.devices.size(); ++device) {
    json["programs"].push_back(graph.program_of(device));
  }
  json["ties"] = Json::array();
  for (TaskId task = 0; task < graph.tasks(); ++task) {
    for (const Tie& tie : graph.ties_of(task)) {
      json["ties"].push_back({task, tie.to, tie.iterations});
    }
  }
  json["overlaps"] = graph.overlaps;
  return json;
}

// A row for each pair that was measured; the others have no effect.
Json contention_value(const PartTimes& parts, std::size_t works) {
  constexpr double kDigits = 1e4;
  Json json = Json::array();
  for (std::size_t pair = 0; pair < parts.contention.size(); ++pair) {
    if (parts.contention[pair] != 1) {
      json.push_back({pair / works, pair % works, std::round(parts.contention[pair] * kDigits) / kDigits});
    }
  }
  return json;
}

Json parts_value(const RunRecord& record) {
  if (!record.parts) {
    return {};
  }
  Json json = {{"computation_seconds", record.parts->computation.value}, {"legs", Json::array()}};
  for (const PathCost& leg : record.parts->legs) {
    json["legs"].push_back({leg.latency.value, leg.seconds_per_byte});
  }
  if (!record.parts->works.empty()) {
    json["work_seconds"] = Json::array();
    for (const Seconds work : record.parts->works) {
      json["work_seconds"].push_back(work.value);
    }
  }
  if (!record.parts->slowdowns.empty()) {
    json["slowdowns"] = record.parts->slowdowns;
  }
  if (!record.parts->contention.empty()) {
    json["contention"] = contention_value(*record.parts, record.graph.works.size());
  }
  return json;
}

} // namespace

double RunRecord::condition(std::string_view wanted) const {
  for (const auto& [name, value] : conditions) {
    if (name == wanted) {
      return parse_number(value, {name, 0, 0});
    }
  }
  return 0;
}

double RunRecord::latest_sleeper() const { return condition("latest_sleeper_seconds"); }

bool RunRecord::disturbed() const {
  constexpr double kShare = 0.002, kWaking = 0.5e-3; // s
  const bool all = condition("runs") > 0 && condition("disturbed_runs") == condition("runs");
  return all || latest_sleeper() > std::max(kWaking, kShare * makespan());
}

std::string to_json(const RunRecord& record) {
  const RunInputs& inputs = record.inputs;
  std::vector<std::int64_t> start, duration;
  for (std::size_t entry = 0; entry < record.timeline.start.size(); ++entry) {
    start.push_back(std::llround(record.timeline.start[entry] * kNano));
    duration.push_back(std::llround(record.timeline.finish[entry] * kNano) - start.back());
  }
  Json conditions = Json::object();
  for (const auto& [name, value] : record.conditions) {
    conditions[name] = value;
  }
  const Json graph = graph_value(record.graph);
  std::string text = "{\n\"schema\": " + dump(kSchema) + ",\n\"executed\": " +
                     dump({{"backend", record.backend},
                           {"shares_links", record.shares_links},
                           {"time_scale", record.time_scale},
                           {"bandwidth_scale", record.bandwidth_scale},
                           {"iterations", record.timeline.iterations},
                           {"makespan_seconds", record.makespan()}}) +
                     ",\n\"conditions\": " + dump(conditions) + ",\n\"inputs\": " +
                     dump({{"model", inputs.model},
                           {"platform", inputs.platform},
                           {"strategy", inputs.strategy},
                           {"schedule", inputs.schedule},
                           {"global_batch", inputs.global_batch},
                           {"micro_batches", inputs.micro_batches},
                           {"plan", inputs.plan},
                           {"orders", inputs.orders}}) +
                     ",\n\"parts\": " + dump(parts_value(record)) +
                     ",\n\"platform\": " + dump(platform_value(record.platform)) + ",\n\"graph\": {\n";
  bool first = true;
  for (const auto& [key, value] : graph.items()) {
    text += (first ? "\"" : ",\n\"") + key + "\": " + dump(value);
    first = false;
  }
  const std::string rounds = record.rounds.empty() ? "" : ",\n\"rounds\": " + to_json(record.rounds);
  return text + "\n}" + rounds + ",\n\"start_nanoseconds\": " + dump(start) +
         ",\n\"duration_nanoseconds\": " + dump(duration) + "\n}\n";
}

namespace {

using json::Object;
using json::Value;

class Reader {
public:
  Reader(const Value& document, std::string file) : document_(document), file_(std::move(file)) {}

  RunRecord read() {
    Object top(document_, file_, "");
    top.value("schema");
    read_executed(Object(top.value("executed"), file_, "executed"));
    Object conditions(top.value("conditions"), file_, "conditions");
    for (const auto& [name, value] : top.value("conditions").items()) {
      record_.conditions.emplace_back(name, conditions.text(name, ""));
    }
    read_inputs(Object(top.value("inputs"), file_, "inputs"));
    read_platform(Object(top.value("platform"), file_, "platform"));
    read_graph(Object(top.value("graph"), file_, "graph"));
    read_times(top);
    if (!top.value("parts").is_null()) {
      read_parts(Object(top.value("parts"), file_, "parts"));
    }
    top.find("rounds");
    top.finish();
    check_times();
    return std::move(record_);
  }

private:
  [[noreturn]] void fail(const std::string& path, const std::string& what) const {
    throw InputError({file_, 0, 0}, path + ": " + what);
  }

  double number(const Value& value, const std::string& path, double otherwise = kInfinity) const {
    if (value.is_null()) {
      return otherwise;
    }
    if (!value.is_number() || !(value.get<double>() >= 0)) {
      fail(path, "not a number of 0 or more");
    }
    return value.get<double>();
  }

  std::int32_t index(const Value& value, const std::string& path, std::int64_t low, std::int64_t high) const {
    if (!value.is_number_integer() || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
      fail(path, "not a whole number; allowed: " + std::to_string(low) + " to " + std::to_string(high));
    }
    return value.get<std::int32_t>();
  }

  const Value& row(const Value& value, const std::string& path, std::size_t size) const {
    if (!value.is_array() || value.size() != size) {
      fail(path, "not a list of " + std::to_string(size));
    }
    return value;
  }

  static std::string at(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

  std::string text(const Value& value, const std::string& path) const {
    if (!value.is_string()) {
      fail(path, "not a text");
    }
    return value.get<std::string>();
  }

  void read_executed(Object object) {
    record_.backend = object.text("backend", "");
    record_.shares_links = object.flag("shares_links");
    record_.time_scale = object.amount("time_scale");
    record_.bandwidth_scale = object.amount("bandwidth_scale");
    constexpr int kMostIterations = 1'000'000;
    record_.timeline.iterations = object.integer("iterations", 1, kMostIterations);
    object.amount("makespan_seconds");
    object.finish();
  }

  void read_inputs(Object object) {
    RunInputs& inputs = record_.inputs;
    inputs.model = object.text("model", "");
    inputs.platform = object.text("platform", "");
    inputs.strategy = object.text("strategy", "");
    inputs.schedule = object.text("schedule", "");
    inputs.global_batch = object.integer("global_batch", 1);
    inputs.micro_batches = object.integer("micro_batches", 1);
    inputs.plan = object.text("plan", "");
    inputs.orders = object.text("orders", "");
    object.finish();
  }

  void read_platform(Object object) {
    Platform& platform = record_.platform;
    platform.name = object.text("name", "");
    platform.types.emplace_back();
    platform.nodes.emplace_back();
    for (const Value& name : object.list("devices")) {
      platform.devices.push_back({text(name, object.path("devices")), 0, 0});
    }
    const Value& links = object.list("links");
    for (std::size_t i = 0; i < links.size(); ++i) {
      const std::string path = at(object.path("links"), i);
      const Value& link = row(links[i], path, 3);
      Link& read = platform.links.emplace_back();
      read.name = text(link[0], path);
      read.bandwidth = BytesPerSecond{number(link[1], path)};
      read.latency = Seconds{number(link[2], path, 0)};
      if (read.bandwidth.value <= 0) {
        fail(path, "a link without bandwidth");
      }
    }
    object.finish();
  }

  void read_work(const Value& value, const std::string& path) {
    row(value, path, 10);
    const std::string letter = text(value[0], path);
    const std::size_t kind = letter.size() == 1 ? kTaskLetters.find(letter[0]) : std::string::npos;
    if (kind == std::string::npos) {
      fail(path, "no kind of task '" + letter + "'; allowed: one of " + std::string(kTaskLetters));
    }
    const TaskGraph& graph = record_.graph;
    Work work;
    work.kind = static_cast<TaskKind>(kind);
    work.device = index(value[1], path, -1, static_cast<std::int64_t>(graph.devices.size()) - 1);
    work.leg = index(value[2], path, -1, static_cast<std::int64_t>(graph.legs.size()) - 1);
    work.stage = index(value[3], path, 0, std::numeric_limits<std::int32_t>::max());
    work.to_stage = index(value[4], path, 0, std::numeric_limits<std::int32_t>::max());
    work.seconds = Seconds{number(value[5], path)};
    work.latency = Seconds{number(value[6], path)};
    work.bytes = number(value[7], path);
    work.acquire = Bytes{number(value[8], path)};
    work.release = Bytes{number(value[9], path)};
    if (work.transfers() && work.device < 0) {
      fail(path, "a transfer without a sender");
    }
    record_.graph.works.push_back(work);
  }

  void read_graph(Object object) {
    TaskGraph& graph = record_.graph;
    for (const Value& device : object.list("devices")) {
      graph.devices.push_back(
          index(device, object.path("devices"), 0, static_cast<std::int64_t>(record_.platform.devices.size()) - 1));
    }
    graph.fixed_memory.resize(graph.devices.size());
    const Value& legs = object.list("legs");
    for (std::size_t i = 0; i < legs.size(); ++i) {
      const std::string path = at(object.path("legs"), i);
      row(legs[i], path, 3);
      Leg& leg = graph.legs.emplace_back();
      if (!legs[i][0].is_array()) {
        fail(path, "not a list of links");
      }
      for (const Value& link : legs[i][0]) {
        leg.links.push_back(index(link, path, 0, static_cast<std::int64_t>(record_.platform.links.size()) - 1));
      }
      leg.latency = Seconds{number(legs[i][1], path)};
      leg.bandwidth = BytesPerSecond{number(legs[i][2], path)};
      if (leg.bandwidth.value <= 0) {
        fail(path, "a leg without bandwidth");
      }
    }
    const Value& works = object.list("works");
    for (std::size_t i = 0; i < works.size(); ++i) {
      read_work(works[i], at(object.path("works"), i));
    }
    read_tasks(object);
    read_ties(object);
    graph.overlaps = object.flag("overlaps");
    object.finish();
  }

  void read_tasks(Object& object) {
    TaskGraph& graph = record_.graph;
    for (const Value& work : object.list("work")) {
      graph.work.push_back(index(work, object.path("work"), 0, static_cast<std::int64_t>(graph.works.size()) - 1));
      const Work& one = graph.works[graph.work.back()];
      graph.joins += one.computes() || one.transfers() ? 0 : 1;
    }
    const auto tasks = static_cast<std::size_t>(graph.tasks());
    for (const Value& number : row(object.list("micro_batch"), object.path("micro_batch"), tasks)) {
      graph.micro_batch.push_back(
          index(number, object.path("micro_batch"), 0, std::numeric_limits<std::int32_t>::max()));
    }
    graph.waits.assign(tasks, 0);
    graph.successor_begin.push_back(0);
    for (const Value& list : row(object.list("successors"), object.path("successors"), tasks)) {
      for (const TaskId next : tasks_of(list, object.path("successors"))) {
        graph.successors.push_back(next);
        ++graph.waits[next];
      }
      graph.successor_begin.push_back(static_cast<std::int32_t>(graph.successors.size()));
    }
    std::vector<char> seen(tasks, 0);
    graph.program_begin.push_back(0);
    for (const Value& list : row(object.list("programs"), object.path("programs"), graph.devices.size())) {
      const auto device = static_cast<std::int32_t>(graph.program_begin.size()) - 1;
      for (const TaskId task : tasks_of(list, object.path("programs"))) {
        const Work& work = graph.works[graph.work[task]];
        if (!work.computes() || work.device != device || seen[task]++ != 0) {
          fail(object.path("programs"),
               "task " + std::to_string(task) + " is not this device's, or stands there twice");
        }
        graph.program.push_back(task);
      }
      graph.program_begin.push_back(static_cast<std::int32_t>(graph.program.size()));
    }
    for (std::size_t task = 0; task < tasks; ++task) {
      if (graph.works[graph.work[task]].computes() && seen[task] == 0) {
        fail(object.path("programs"), "task " + std::to_string(task) + " is in no program");
      }
    }
  }

  std::vector<TaskId> tasks_of(const Value& list, const std::string& path) const {
    if (!list.is_array()) {
      fail(path, "not a list of lists");
    }
    std::vector<TaskId> tasks;
    for (const Value& task : list) {
      tasks.push_back(index(task, path, 0, record_.graph.tasks() - 1));
    }
    return tasks;
  }

  void read_ties(Object& object) {
    TaskGraph& graph = record_.graph;
    const Value& ties = object.list("ties");
    if (ties.empty()) {
      return;
    }
    graph.tie_begin.assign(graph.work.size() + 1, 0);
    TaskId before = 0;
    for (const Value& tie : ties) {
      const std::string path = object.path("ties");
      row(tie, path, 3);
      const TaskId from = index(tie[0], path, before, graph.tasks() - 1); // in the order of their first
      graph.ties.push_back({index(tie[1], path, 0, graph.tasks() - 1), index(tie[2], path, 1, 1'000'000), false});
      ++graph.tie_begin[from + 1];
      before = from;
    }
    for (std::size_t task = 0; task < graph.work.size(); ++task) {
      graph.tie_begin[task + 1] += graph.tie_begin[task];
    }
  }

  void read_times(Object& top) {
    Timeline& timeline = record_.timeline;
    const std::size_t entries = static_cast<std::size_t>(record_.graph.tasks()) * timeline.iterations;
    const Value& start = row(top.list("start_nanoseconds"), "start_nanoseconds", entries);
    const Value& duration = row(top.list("duration_nanoseconds"), "duration_nanoseconds", entries);
    constexpr std::int64_t kLongest = 1'000'000'000'000'000'000;
    const auto nanoseconds = [&](const Value& value, const char* path) {
      if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > kLongest) {
        fail(path, "not whole nanoseconds of 0 or more");
      }
      return value.get<std::int64_t>();
    };
    for (std::size_t entry = 0; entry < entries; ++entry) {
      const std::int64_t begin = nanoseconds(start[entry], "start_nanoseconds");
      const std::int64_t lasts = nanoseconds(duration[entry], "duration_nanoseconds");
      timeline.start.push_back(static_cast<double>(begin) / kNano);
      timeline.finish.push_back(static_cast<double>(begin + lasts) / kNano);
    }
  }

  void read_parts(Object object) {
    PartTimes& parts = record_.parts.emplace();
    parts.computation = Seconds{object.amount("computation_seconds")};
    for (const Value& leg : row(object.list("legs"), object.path("legs"), record_.graph.legs.size())) {
      row(leg, object.path("legs"), 2);
      parts.legs.push_back({Seconds{number(leg[0], object.path("legs"))}, number(leg[1], object.path("legs"))});
    }
    if (object.has("work_seconds")) {
      for (const double seconds : numbers(object, "work_seconds", record_.graph.works.size())) {
        parts.works.push_back(Seconds{seconds});
      }
    }
    if (object.has("slowdowns")) {
      parts.slowdowns = numbers(object, "slowdowns", record_.graph.devices.size());
    }
    if (object.has("contention")) {
      read_contention(object, parts);
    }
    object.finish();
  }

  void read_contention(Object& object, PartTimes& parts) const {
    const std::size_t works = record_.graph.works.size();
    const auto last = static_cast<std::int64_t>(works) - 1;
    const std::string path = object.path("contention");
    parts.contention.assign(works * works, 1.0);
    for (const Value& pair : object.list("contention")) {
      row(pair, path, 3);
      double& slowdown = parts.contention[index(pair[0], path, 0, last) * works + index(pair[1], path, 0, last)];
      slowdown = number(pair[2], path);
      if (!(slowdown > 0)) {
        fail(path, "a slowdown of 0");
      }
    }
  }

  std::vector<double> numbers(Object& object, const std::string& key, std::size_t size) const {
    std::vector<double> values;
    for (const Value& value : row(object.list(key), object.path(key), size)) {
      values.push_back(number(value, object.path(key)));
    }
    return values;
  }

  // What really happened kept to the graph; a graph that could not have run like this is no record.
  void check_times() const {
    const TaskGraph& graph = record_.graph;
    const Timeline& timeline = record_.timeline;
    const auto tasks = static_cast<std::size_t>(graph.tasks());
    for (std::size_t entry = 0; entry < timeline.start.size(); ++entry) {
      for (const TaskId next : graph.successors_of(static_cast<TaskId>(entry % tasks))) {
        if (timeline.start[entry - entry % tasks + next] < timeline.finish[entry]) {
          fail("start_nanoseconds", "task " + std::to_string(next) + " starts before task " +
                                        std::to_string(entry % tasks) + " has ended, which it waits for");
        }
      }
    }
    for (std::size_t device = 0; device < graph.devices.size(); ++device) {
      double free = 0;
      for (int iteration = 0; iteration < timeline.iterations; ++iteration) {
        for (const TaskId task : graph.program_of(device)) {
          const std::size_t entry = static_cast<std::size_t>(iteration) * tasks + task;
          if (timeline.start[entry] < free) {
            fail("start_nanoseconds", "task " + std::to_string(task) + " overlaps the one before it on its device");
          }
          free = timeline.finish[entry];
        }
      }
    }
  }

  const Value& document_;
  std::string file_;
  RunRecord record_;
};

} // namespace

RunRecord read_run_record(const std::filesystem::path& path) {
  const Value document = json::parse(read_file(path), path.string());
  return Reader(document, path.string()).read();
}

bool is_run_record(const std::filesystem::path& path) {
  std::error_code failure;
  if (path.extension() != ".json" || !std::filesystem::is_regular_file(path, failure)) {
    return false;
  }
  constexpr std::size_t kHead = 200;
  std::string head(kHead, '\0');
  std::ifstream(path).read(head.data(), kHead);
  return head.find("\"executed\"") != std::string::npos;
}

} // namespace stagecraft
