// Records of real runs: written, read back, refused if they contradict themselves, and the figures that follow from
// them.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/validate/run_accuracy.hpp"
#include "sim/validate/run_record_rows.hpp"
#include "sim/validate/validators.hpp"
#include "tests/error_of.hpp"
#include "tests/schedule/pipelines.hpp"
#include "tests/source_dir.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Json = nlohmann::json;

// A run that went exactly as planned: 2 stages of F 1 s, B 2 s, 40 B at 4 B/s between them, 3 micro-batches.
RunRecord ideal_record() {
  Pipeline pipeline = equal_stages(2, 1, {1, 2, 0});
  pipeline.bytes = {40};
  pipeline.bandwidth = 4;
  PipelineRun run = test::run(pipeline, schedule_of("1f1b", 2, 3), {.iterations = 2});
  RunRecord record;
  record.inputs = {"m", "p", "s", "1f1b", 3, 3, "", ""};
  record.backend = "sleeping";
  record.conditions = {{"scheduling", "fifo"}};
  record.platform = run.platform;
  record.graph = chain_transfers(run.graph);
  const ReplayRequest request{record.graph, record.platform, 2};
  record.timeline = replay_simgrid({&request, 1}).front();
  return record;
}

// A file that goes when the test ends.
struct File {
  fs::path path = fs::temp_directory_path() / ("stagecraft-run-" + std::to_string(getpid()) + ".json");
  explicit File(const std::string& text) { write_file(path, text); }
  ~File() { fs::remove(path); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

TEST_CASE("a record is read back as it was written", "[study][run]") {
  RunRecord record = ideal_record();
  record.parts = PartTimes{Seconds{1e-5}, std::vector<PathCost>(record.graph.legs.size(), {Seconds{1e-4}, 0.25})};
  record.parts->works.assign(record.graph.works.size(), Seconds{0.5});
  record.parts->slowdowns = {1, 1.25};
  record.parts->contention.assign(record.graph.works.size() * record.graph.works.size(), 1);
  record.parts->contention[1] = 1.5; // work 0 beside work 1
  const std::string text = to_json(record);
  const File file(text);
  CHECK(is_run_record(file.path));
  const RunRecord read = read_run_record(file.path);
  CHECK(to_json(read) == text);
  CHECK(Json::parse(text)["parts"]["contention"] == Json{{0, 1, 1.5}});
  CHECK(read.parts->contention == record.parts->contention);
  CHECK(read.graph.waits == record.graph.waits);
  CHECK(read.graph.joins == record.graph.joins);
  CHECK(read.makespan() == Approx(record.makespan()));
  record.rounds = {{.devices = {"a"}, .weights = {1}, .iteration = Seconds{2}}};
  const File with_rounds(to_json(record));
  CHECK(Json::parse(to_json(record))["rounds"][0]["iteration_seconds"] == 2);
  CHECK(to_json(read_run_record(with_rounds.path)) == text);
}

// Every column writes its own part of the row and reads it back, and nothing else: `row` differs from the default in
// all.
template <class Row> void check_columns(RunColumns<Row> columns, const Row& row) {
  const RunCounts counts{.devices = 10, .links = 10, .legs = 10, .works = 10, .tasks = 10};
  const std::string file = "run.json";
  const json::Source source("", file);
  const Json all = Json::parse(write_row(columns, row).dump());
  REQUIRE(all.size() == columns.size());
  CHECK(write_row(columns, read_row(columns, RunCell(all, source, "rows", 0), counts)) == all);
  const Row untouched;
  for (const RunColumn<Row>& column : columns) {
    INFO(column.name);
    REQUIRE(column.write(row) != column.write(untouched));
    Row read;
    column.read(RunCell(Json::parse(column.write(row).dump()), source, "rows"), counts, read);
    for (const RunColumn<Row>& other : columns) {
      INFO(other.name);
      CHECK(other.write(read) == other.write(other.name == column.name ? row : untouched));
    }
    Json spoilt = all;
    spoilt[&column - columns.data()] = Json::object();
    CHECK_THAT(error_of([&] { read_row(columns, RunCell(spoilt, source, "rows", 3), counts); }),
               Catch::StartsWith("run.json:1:1: rows[3]: ") &&
                   Catch::EndsWith("; column: " + std::string(column.name)));
  }
  Json shorter = all;
  shorter.erase(0);
  CHECK_THAT(error_of([&] { read_row(columns, RunCell(shorter, source, "rows", 3), counts); }),
             Catch::Contains("rows[3]: not a list of " + std::to_string(columns.size())));
}

TEST_CASE("every column of every list is read back as it was written", "[study][run]") {
  Link link;
  link.name = "a>b";
  link.bandwidth = BytesPerSecond{1.5e9};
  link.latency = Seconds{2.5e-6};
  check_columns(link_columns(), link);
  check_columns(work_columns(), Work{.kind = TaskKind::transfer,
                                     .device = 3,
                                     .leg = 9,
                                     .stage = 1,
                                     .to_stage = 2,
                                     .seconds = Seconds{0.25},
                                     .latency = Seconds{1.0 / 3},
                                     .bytes = 4096,
                                     .acquire = Bytes{5},
                                     .release = Bytes{6}});
  check_columns(leg_columns(), Leg{{0, 9}, Seconds{1e-6}, BytesPerSecond{12e9}});
  check_columns(tie_columns(), RunTie{4, 5, 6});
  check_columns(part_columns(), PathCost{Seconds{1e-6}, 1e-9});
  check_columns(pair_columns(), RunContention{1, 2, 1.25});
  // A link without limit has no bandwidth in the file.
  link.bandwidth = BytesPerSecond{std::numeric_limits<double>::infinity()};
  const std::string file = "run.json";
  const Json row = Json::parse(write_row(link_columns(), link).dump());
  CHECK(row[1].is_null());
  CHECK(read_row(link_columns(), RunCell(row, json::Source("", file), "rows"), {}) == link);
}

// [kind, device, …] as docs/formats/run.md has it.
template <class Row> std::string names_in_docs(RunColumns<Row> columns) {
  std::string names;
  for (const RunColumn<Row>& column : columns) {
    names += (names.empty() ? "" : ", ") + std::string(column.name);
  }
  return "`[" + names + "]`";
}

TEST_CASE("the page on real runs names the columns of every list", "[study][run][docs]") {
  const std::string page = read_file(test::source_dir() / "docs/formats/run.md");
  for (const std::string& names :
       {names_in_docs(link_columns()), names_in_docs(work_columns()), names_in_docs(leg_columns()),
        names_in_docs(tie_columns()), names_in_docs(part_columns()), names_in_docs(pair_columns())}) {
    CHECK_THAT(page, Catch::Contains(names));
  }
}

TEST_CASE("a run that went as planned is predicted without error", "[study][run]") {
  const RunRecord record = ideal_record();
  const RunAccuracy accuracy = accuracy_of(record);
  CHECK(accuracy.error() == Approx(0).margin(1e-12));
  CHECK(accuracy.retold_error() == Approx(0).margin(1e-12));
  for (const KindErrors& kind : accuracy.kinds) {
    CHECK(kind.start.p90 == Approx(0).margin(1e-12));
    CHECK(kind.duration.p90 == Approx(0).margin(1e-12));
  }
  // two iterations of 3 x (1 + 2) s each
  for (const DeviceTime& device : accuracy.device_measured) {
    CHECK(device.busy == Approx(18));
    double all = device.busy;
    for (const double waiting : device.waiting) {
      all += waiting;
    }
    CHECK(all == Approx(record.makespan()).margin(1e-9)); // barriers end with all devices at once
  }
}

TEST_CASE("a run that took no time has no relative error, and no infinite one", "[study][run]") {
  RunRecord record = ideal_record();
  record.timeline.start.assign(record.timeline.start.size(), 0);
  record.timeline.finish = record.timeline.start;
  const File file(to_json(record));
  const Validation validation = validate(file.path, {.shipped = kRoot});
  CHECK(validation.rows.empty());
  REQUIRE(validation.skipped.size() == 1);
  CHECK(validation.skipped.front().why == "iteration_seconds: measured as 0");
  CHECK_THAT(to_text(validation, false), !Catch::Contains("inf") && !Catch::Contains("nan"));
  CHECK_THAT(to_text(record, accuracy_of(record), false, 0), !Catch::Contains("inf %") && Catch::Contains("– off"));
}

// Every computation half as long again: by its own durations exact, by the plan a third too short.
TEST_CASE("a slow run is told from a wrong order", "[study][run]") {
  RunRecord record = ideal_record();
  TaskGraph slow = record.graph;
  for (Work& work : slow.works) {
    work.seconds = work.seconds * 1.5;
    work.latency = work.latency * 1.5;
    work.bytes *= 1.5;
  }
  const ReplayRequest request{slow, record.platform, 2};
  record.timeline = replay_simgrid({&request, 1}).front();
  const RunAccuracy accuracy = accuracy_of(record);
  CHECK(accuracy.retold_error() == Approx(0).margin(1e-9));
  CHECK(accuracy.error() == Approx(-1.0 / 3));
  for (const KindErrors& kind : accuracy.kinds) {
    if (kind.kind == TaskKind::forward || kind.kind == TaskKind::backward) {
      CHECK(kind.duration.median == Approx(1.0 / 3));
    }
  }
}

// 0.2 % of the run, and no less than half a millisecond.
TEST_CASE("a run is disturbed where a sleeper woke late", "[study][run]") {
  RunRecord record;
  record.timeline.finish = {10};
  CHECK_FALSE(record.disturbed());
  record.conditions = {{"latest_sleeper_seconds", "0.0200"}};
  CHECK_FALSE(record.disturbed());
  record.conditions = {{"latest_sleeper_seconds", "0.0201"}};
  CHECK(record.disturbed());
  record.timeline.finish = {0.1};
  record.conditions = {{"latest_sleeper_seconds", "0.0005"}};
  CHECK_FALSE(record.disturbed());
  record.conditions = {{"latest_sleeper_seconds", "0.0006"}};
  CHECK(record.disturbed());
  record.conditions = {{"runs", "3"}, {"disturbed_runs", "2"}};
  CHECK_FALSE(record.disturbed());
  record.conditions = {{"runs", "3"}, {"disturbed_runs", "3"}};
  CHECK(record.disturbed());
}

TEST_CASE("records that contradict themselves are refused", "[study][run][bad-input]") {
  const Json good = Json::parse(to_json(ideal_record()));
  const auto refusal = [](const Json& json) {
    const File file(json.dump());
    return error_of([&] { read_run_record(file.path); });
  };
  CHECK(refusal(good).empty());
  Json measured = good;
  measured["parts"] = {{"computation_seconds", 0}, {"legs", Json::array()}, {"slowdowns", {1}}};
  for (std::size_t leg = 0; leg < good["graph"]["legs"].size(); ++leg) {
    measured["parts"]["legs"].push_back({0, 0});
  }
  CHECK_THAT(refusal(measured), Catch::Contains("parts.slowdowns: not a list of 2"));
  measured["parts"].erase("slowdowns");
  measured["parts"]["contention"] = {{0, 1000, 1.5}};
  CHECK_THAT(refusal(measured), Catch::Contains("parts.contention[0]: not a whole number; allowed: 0 to"));
  measured["parts"]["contention"] = {{0, 1, 0}};
  CHECK_THAT(refusal(measured), Catch::Contains("a slowdown of 0"));
  measured["parts"]["contention"] = Json::array();
  CHECK(refusal(measured).empty());
  constexpr std::size_t kTooManyWorks = 4097; // whose pairs a few letters would ask memory for
  while (measured["graph"]["works"].size() < kTooManyWorks) {
    measured["graph"]["works"].push_back(good["graph"]["works"][0]);
  }
  CHECK_THAT(refusal(measured), Catch::Contains("parts.contention: of 4097 works; allowed: at most 4096"));
  const auto changed = [&](const char* pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  CHECK_THAT(changed("/graph/work/0", 99), Catch::Contains("graph.work: not a whole number; allowed: 0 to"));
  CHECK_THAT(changed("/graph/successors/0", {-1}), Catch::Contains("graph.successors"));
  CHECK_THAT(changed("/graph/programs/0/0", good["graph"]["programs"][1][0]), Catch::Contains("not this device's"));
  CHECK_THAT(changed("/graph/works/0/0", "Z"), Catch::Contains("no kind of task 'Z'"));
  CHECK_THAT(changed("/graph/legs/0/2", 0), Catch::Contains("without bandwidth"));
  CHECK_THAT(changed("/start_nanoseconds", {1}), Catch::Contains("not a list of"));
  CHECK_THAT(changed("/start_nanoseconds/0", -1), Catch::Contains("not whole nanoseconds"));
  CHECK_THAT(changed("/duration_nanoseconds/0", 9'000'000'000), Catch::Contains("starts before task 0 has ended"));
  CHECK_THAT(changed("/executed/iterations", 0), Catch::Contains("iterations"));
  CHECK_THAT(changed("/executed/extra", 1), Catch::Contains("'extra'"));
  CHECK_THAT(changed("/platform/links/0", {1, 2}), Catch::Contains("not a list of 3"));
}

} // namespace
} // namespace stagecraft::test
