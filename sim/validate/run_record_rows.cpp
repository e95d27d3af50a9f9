// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/run_record_rows.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t kMostStages = std::numeric_limits<std::int32_t>::max();
constexpr int kMostIterations = 1'000'000;

// Infinity is null.
Json finite(double value) { return std::isinf(value) ? Json() : Json(value); }

BytesPerSecond bandwidth_of(const RunCell& cell, const char* what) {
  const double bandwidth = cell.number();
  if (bandwidth <= 0) {
    cell.fail(std::string(what) + " without bandwidth");
  }
  return BytesPerSecond{bandwidth};
}

TaskKind kind_of(const RunCell& cell) {
  const std::string letter = cell.text();
  const std::size_t kind = letter.size() == 1 ? kTaskLetters.find(letter[0]) : std::string::npos;
  if (kind == std::string::npos) {
    cell.fail("no kind of task '" + letter + "'; allowed: one of " + std::string(kTaskLetters));
  }
  return static_cast<TaskKind>(kind);
}

std::vector<LinkId> links_of(const RunCell& cell, const RunCounts& counts) {
  if (!cell.value().is_array()) {
    cell.fail("not a list of links");
  }
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < cell.value().size(); ++i) {
    links.push_back(cell.cell(i, cell.value().size(), "links").index(0, counts.links - 1));
  }
  return links;
}

constexpr std::array kLinkColumns = {
    RunColumn<Link>{"name", "", [](const Link& link) { return Json(link.name); },
                    [](const RunCell& cell, const RunCounts&, Link& link) { link.name = cell.text(); }},
    RunColumn<Link>{
        "bandwidth", "B/s", [](const Link& link) { return finite(link.bandwidth.value); },
        [](const RunCell& cell, const RunCounts&, Link& link) { link.bandwidth = bandwidth_of(cell, "a link"); }},
    RunColumn<Link>{"latency", "s", [](const Link& link) { return Json(link.latency.value); },
                    [](const RunCell& cell, const RunCounts&, Link& link) { link.latency = Seconds{cell.number(0)}; }}};

constexpr std::array kWorkColumns = {
    RunColumn<Work>{
        "kind", "",
        [](const Work& work) { return Json(std::string(1, kTaskLetters[static_cast<std::size_t>(work.kind)])); },
        [](const RunCell& cell, const RunCounts&, Work& work) { work.kind = kind_of(cell); }},
    RunColumn<Work>{"device", "", [](const Work& work) { return Json(work.device); },
                    [](const RunCell& cell, const RunCounts& counts, Work& work) {
                      work.device = cell.index(-1, counts.devices - 1);
                    }},
    RunColumn<Work>{
        "leg", "", [](const Work& work) { return Json(work.leg); },
        [](const RunCell& cell, const RunCounts& counts, Work& work) { work.leg = cell.index(-1, counts.legs - 1); }},
    RunColumn<Work>{"stage", "", [](const Work& work) { return Json(work.stage); },
                    [](const RunCell& cell, const RunCounts&, Work& work) { work.stage = cell.index(0, kMostStages); }},
    RunColumn<Work>{
        "to stage", "", [](const Work& work) { return Json(work.to_stage); },
        [](const RunCell& cell, const RunCounts&, Work& work) { work.to_stage = cell.index(0, kMostStages); }},
    RunColumn<Work>{"seconds", "s", [](const Work& work) { return Json(work.seconds.value); },
                    [](const RunCell& cell, const RunCounts&, Work& work) { work.seconds = Seconds{cell.number()}; }},
    RunColumn<Work>{"latency", "s", [](const Work& work) { return Json(work.latency.value); },
                    [](const RunCell& cell, const RunCounts&, Work& work) { work.latency = Seconds{cell.number()}; }},
    RunColumn<Work>{"bytes", "B", [](const Work& work) { return Json(work.bytes); },
                    [](const RunCell& cell, const RunCounts&, Work& work) { work.bytes = cell.number(); }},
    RunColumn<Work>{"bytes acquired", "B", [](const Work& work) { return Json(work.acquire.value); },
                    [](const RunCell& cell, const RunCounts&, Work& work) { work.acquire = Bytes{cell.number()}; }},
    RunColumn<Work>{"bytes released", "B", [](const Work& work) { return Json(work.release.value); },
                    [](const RunCell& cell, const RunCounts&, Work& work) { work.release = Bytes{cell.number()}; }}};

constexpr std::array kLegColumns = {
    RunColumn<Leg>{"links", "", [](const Leg& leg) { return Json(leg.links); },
                   [](const RunCell& cell, const RunCounts& counts, Leg& leg) { leg.links = links_of(cell, counts); }},
    RunColumn<Leg>{"latency", "s", [](const Leg& leg) { return Json(leg.latency.value); },
                   [](const RunCell& cell, const RunCounts&, Leg& leg) { leg.latency = Seconds{cell.number()}; }},
    RunColumn<Leg>{
        "bandwidth", "B/s", [](const Leg& leg) { return finite(leg.bandwidth.value); },
        [](const RunCell& cell, const RunCounts&, Leg& leg) { leg.bandwidth = bandwidth_of(cell, "a leg"); }}};

constexpr std::array kTieColumns = {RunColumn<RunTie>{"task", "", [](const RunTie& tie) { return Json(tie.task); },
                                                      [](const RunCell& cell, const RunCounts& counts, RunTie& tie) {
                                                        tie.task = cell.index(0, counts.tasks - 1);
                                                      }},
                                    RunColumn<RunTie>{"to", "", [](const RunTie& tie) { return Json(tie.to); },
                                                      [](const RunCell& cell, const RunCounts& counts, RunTie& tie) {
                                                        tie.to = cell.index(0, counts.tasks - 1);
                                                      }},
                                    RunColumn<RunTie>{"iterations", "",
                                                      [](const RunTie& tie) { return Json(tie.iterations); },
                                                      [](const RunCell& cell, const RunCounts&, RunTie& tie) {
                                                        tie.iterations = cell.index(1, kMostIterations);
                                                      }}};

constexpr std::array kPartColumns = {
    RunColumn<PathCost>{
        "latency", "s", [](const PathCost& leg) { return Json(leg.latency.value); },
        [](const RunCell& cell, const RunCounts&, PathCost& leg) { leg.latency = Seconds{cell.number()}; }},
    RunColumn<PathCost>{
        "seconds per byte", "s/B", [](const PathCost& leg) { return Json(leg.seconds_per_byte); },
        [](const RunCell& cell, const RunCounts&, PathCost& leg) { leg.seconds_per_byte = cell.number(); }}};

constexpr std::array kPairColumns = {
    RunColumn<RunContention>{"work", "", [](const RunContention& pair) { return Json(pair.work); },
                             [](const RunCell& cell, const RunCounts& counts, RunContention& pair) {
                               pair.work = cell.index(0, counts.works - 1);
                             }},
    RunColumn<RunContention>{"other", "", [](const RunContention& pair) { return Json(pair.other); },
                             [](const RunCell& cell, const RunCounts& counts, RunContention& pair) {
                               pair.other = cell.index(0, counts.works - 1);
                             }},
    RunColumn<RunContention>{"times", "", [](const RunContention& pair) { return Json(pair.times); },
                             [](const RunCell& cell, const RunCounts&, RunContention& pair) {
                               pair.times = cell.number();
                               if (!(pair.times > 0)) {
                                 cell.fail("a slowdown of 0");
                               }
                             }}};

} // namespace

RunCell RunCell::cell(std::size_t at, std::size_t columns, std::string_view name) const {
  return {list(columns)[at], source_, list_, row_, name};
}

double RunCell::number(double otherwise) const {
  if (value_.is_null()) {
    return otherwise;
  }
  if (!value_.is_number() || !(value_.get<double>() >= 0)) {
    fail("not a number of 0 or more");
  }
  return value_.get<double>();
}

double RunCell::number() const { return number(kInfinity); }

std::int32_t RunCell::index(std::int64_t low, std::int64_t high) const {
  if (!value_.is_number_integer() || value_.get<std::int64_t>() < low || value_.get<std::int64_t>() > high) {
    fail("not a whole number; allowed: " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value_.get<std::int32_t>();
}

std::string RunCell::text() const {
  if (!value_.is_string()) {
    fail("not a text");
  }
  return value_.get<std::string>();
}

const json::Value& RunCell::list(std::size_t size) const {
  if (!value_.is_array() || value_.size() != size) {
    fail("not a list of " + std::to_string(size));
  }
  return value_;
}

void RunCell::fail(const std::string& what) const {
  const std::string row = row_ == kNoRow ? "" : "[" + std::to_string(row_) + "]";
  const std::string column = column_.empty() ? "" : "; column: " + std::string(column_);
  throw source_.error(std::string(list_) + row, what + column);
}

template <class Row> Json write_row(RunColumns<Row> columns, const Row& row) {
  Json cells = Json::array();
  for (const RunColumn<Row>& column : columns) {
    cells.push_back(column.write(row));
  }
  return cells;
}

template Json write_row(RunColumns<Link> columns, const Link& row);
template Json write_row(RunColumns<Work> columns, const Work& row);
template Json write_row(RunColumns<Leg> columns, const Leg& row);
template Json write_row(RunColumns<RunTie> columns, const RunTie& row);
template Json write_row(RunColumns<PathCost> columns, const PathCost& row);
template Json write_row(RunColumns<RunContention> columns, const RunContention& row);

RunColumns<Link> link_columns() { return kLinkColumns; }
RunColumns<Work> work_columns() { return kWorkColumns; }
RunColumns<Leg> leg_columns() { return kLegColumns; }
RunColumns<RunTie> tie_columns() { return kTieColumns; }
RunColumns<PathCost> part_columns() { return kPartColumns; }
RunColumns<RunContention> pair_columns() { return kPairColumns; }

} // namespace stagecraft
