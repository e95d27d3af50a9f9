// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <limits>

#include "sim/base/system/file.hpp"
#include "sim/validate/run_record.hpp"
#include "sim/validate/run_record_rows.hpp"

namespace stagecraft {
namespace {

constexpr double kNano = 1e9;

using json::Object;
using json::Value;

class Reader {
public:
  Reader(const Value& document, const json::Source& source) : document_(document), source_(source) {}

  RunRecord read() {
    Object top(document_, source_, "");
    top.value("schema");
    read_executed(Object(top.value("executed"), source_, "executed"));
    Object conditions(top.value("conditions"), source_, "conditions");
    for (const auto& [name, value] : top.value("conditions").items()) {
      record_.conditions.emplace_back(name, conditions.text(name, ""));
    }
    read_inputs(Object(top.value("inputs"), source_, "inputs"));
    read_platform(Object(top.value("platform"), source_, "platform"));
    read_graph(Object(top.value("graph"), source_, "graph"));
    read_times(top);
    if (!top.value("parts").is_null()) {
      read_parts(Object(top.value("parts"), source_, "parts"));
    }
    top.find("rounds");
    top.finish();
    check_times();
    return std::move(record_);
  }

private:
  [[noreturn]] void fail(const std::string& path, const std::string& what) const { throw source_.error(path, what); }

  RunCounts counts() const {
    const TaskGraph& graph = record_.graph;
    return {static_cast<std::int64_t>(graph.devices.size()), static_cast<std::int64_t>(record_.platform.links.size()),
            static_cast<std::int64_t>(graph.legs.size()), static_cast<std::int64_t>(graph.works.size()), graph.tasks()};
  }

  // The rows of a list, each by its columns.
  template <class Row> std::vector<Row> rows(Object& object, const std::string& key, RunColumns<Row> columns) const {
    const RunCounts known = counts();
    const std::string path = object.path(key);
    const Value& list = object.list(key);
    std::vector<Row> read;
    for (std::size_t row = 0; row < list.size(); ++row) {
      read.push_back(read_row(columns, RunCell(list[row], source_, path, row), known));
    }
    return read;
  }

  // A list of whole numbers from `low` to `high`.
  std::vector<std::int32_t> indices(const Value& list, const std::string& path, std::int64_t low,
                                    std::int64_t high) const {
    if (!list.is_array()) {
      fail(path, "not a list of lists");
    }
    std::vector<std::int32_t> read;
    for (const Value& number : list) {
      read.push_back(RunCell(number, source_, path).index(low, high));
    }
    return read;
  }

  const Value& list_of(Object& object, const std::string& key, std::size_t size) const {
    const std::string path = object.path(key);
    return RunCell(object.list(key), source_, path).list(size);
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
    const std::string path = object.path("devices");
    for (const Value& name : object.list("devices")) {
      platform.devices.push_back({RunCell(name, source_, path).text(), 0, 0});
    }
    platform.links = rows(object, "links", link_columns());
    object.finish();
  }

  void read_graph(Object object) {
    TaskGraph& graph = record_.graph;
    graph.devices = indices(object.list("devices"), object.path("devices"), 0,
                            static_cast<std::int64_t>(record_.platform.devices.size()) - 1);
    graph.fixed_memory.resize(graph.devices.size());
    graph.legs = rows(object, "legs", leg_columns());
    graph.works = rows(object, "works", work_columns());
    for (std::size_t work = 0; work < graph.works.size(); ++work) {
      if (graph.works[work].transfers() && graph.works[work].device < 0) {
        fail(object.path("works") + "[" + std::to_string(work) + "]", "a transfer without a sender");
      }
    }
    read_tasks(object);
    read_ties(object);
    graph.overlaps = object.flag("overlaps");
    object.finish();
  }

  void read_tasks(Object& object) {
    TaskGraph& graph = record_.graph;
    graph.work = indices(object.list("work"), object.path("work"), 0, counts().works - 1);
    for (const std::int32_t work : graph.work) {
      graph.joins += graph.works[work].computes() || graph.works[work].transfers() ? 0 : 1;
    }
    const auto tasks = static_cast<std::size_t>(graph.tasks());
    graph.micro_batch = indices(list_of(object, "micro_batch", tasks), object.path("micro_batch"), 0,
                                std::numeric_limits<std::int32_t>::max());
    graph.waits.assign(tasks, 0);
    graph.successor_begin.push_back(0);
    for (const Value& list : list_of(object, "successors", tasks)) {
      for (const TaskId next : indices(list, object.path("successors"), 0, graph.tasks() - 1)) {
        graph.successors.push_back(next);
        ++graph.waits[next];
      }
      graph.successor_begin.push_back(static_cast<std::int32_t>(graph.successors.size()));
    }
    std::vector<char> seen(tasks, 0);
    graph.program_begin.push_back(0);
    for (const Value& list : list_of(object, "programs", graph.devices.size())) {
      const auto device = static_cast<std::int32_t>(graph.program_begin.size()) - 1;
      for (const TaskId task : indices(list, object.path("programs"), 0, graph.tasks() - 1)) {
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

  void read_ties(Object& object) {
    TaskGraph& graph = record_.graph;
    const std::vector<RunTie> ties = rows(object, "ties", tie_columns());
    if (ties.empty()) {
      return;
    }
    graph.tie_begin.assign(graph.work.size() + 1, 0);
    TaskId before = 0;
    for (const RunTie& tie : ties) {
      if (tie.task < before) {
        fail(object.path("ties"), "not in the order of their first tasks");
      }
      graph.ties.push_back({tie.to, tie.iterations, false});
      ++graph.tie_begin[tie.task + 1];
      before = tie.task;
    }
    for (std::size_t task = 0; task < graph.work.size(); ++task) {
      graph.tie_begin[task + 1] += graph.tie_begin[task];
    }
  }

  void read_times(Object& top) {
    Timeline& timeline = record_.timeline;
    const std::size_t entries = static_cast<std::size_t>(record_.graph.tasks()) * timeline.iterations;
    const Value& start = list_of(top, "start_nanoseconds", entries);
    const Value& duration = list_of(top, "duration_nanoseconds", entries);
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
    list_of(object, "legs", record_.graph.legs.size());
    parts.legs = rows(object, "legs", part_columns());
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
    constexpr std::size_t kMostWorks = 4096; // their pairs take 128 MiB
    const std::size_t works = record_.graph.works.size();
    if (works > kMostWorks) {
      fail(object.path("contention"),
           "of " + std::to_string(works) + " works; allowed: at most " + std::to_string(kMostWorks));
    }
    parts.contention.assign(works * works, 1.0);
    for (const RunContention& pair : rows(object, "contention", pair_columns())) {
      parts.contention[pair.work * works + pair.other] = pair.times;
    }
  }

  std::vector<double> numbers(Object& object, const std::string& key, std::size_t size) const {
    std::vector<double> values;
    const std::string path = object.path(key);
    for (const Value& value : list_of(object, key, size)) {
      values.push_back(RunCell(value, source_, path).number());
    }
    return values;
  }

  // Throws where the times contradict the graph: a real run always keeps to its graph.
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
  const json::Source& source_;
  RunRecord record_;
};

} // namespace

RunRecord read_run_record(const std::filesystem::path& path) { return read_run_record(read_file(path), path.string()); }

RunRecord read_run_record(std::string_view text, const std::string& file) {
  const json::Source source(text, file);
  return Reader(json::parse(source), source).read();
}

} // namespace stagecraft
