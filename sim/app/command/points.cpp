// stagecraft points: the results of sweeps as lines, or one of them run again.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/point_lines.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/temporary_folder.hpp"
#include "sim/base/format/csv.hpp"
#include "sim/base/system/file_writer.hpp"
#include "sim/report/table.hpp"
#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/sweep/store/read_sweep_results.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

struct PointsCommand {
  std::string file, point;
  OutputOptions output{.format = "csv"};
};

void add_flags(Flags& flags, PointsCommand& options) {
  flags.add("FILE", &options.file, "a file that `sweep` wrote", {.required = true});
  add_result_flags(flags, options.output, {"csv", "jsonl", "json", "table", "html", "md"});
  add_table_flags(flags, options.output);
  flags.add("--replay", &options.point, "replay the one point whose key begins so, from the inputs that the file keeps",
            {.name = "KEY"});
}

// Writes text in pieces, to stdout or into a file.
class Pieces {
public:
  explicit Pieces(const std::string& file) {
    if (!file.empty()) {
      file_.emplace(file);
    }
  }

  void add(const std::string& text) {
    constexpr std::size_t kPiece = 1U << 16U;
    waiting_ += text;
    if (waiting_.size() > kPiece) {
      flush();
    }
  }

  void finish() {
    flush();
    if (file_) {
      file_->finish();
    }
  }

private:
  void flush() {
    file_ ? file_->add(waiting_) : print(waiting_);
    waiting_.clear();
  }

  std::optional<FileWriter> file_;
  std::string waiting_;
};

Table table_of(const PointRow& stored, const Figures& now) {
  Table table{{{"figure"}, {"stored", Align::right}, {"now", Align::right}, {"unit"}}, {}};
  for (std::size_t i = 0; i < kFigures; ++i) {
    const auto cell = [](double value) { return std::isfinite(value) ? Json(value).dump() : "-"; };
    table.rows.push_back({{std::string(figures()[i].name)},
                          {cell(stored.figures.at(i))},
                          {cell(now.at(i))},
                          {std::string(figures()[i].unit)}});
  }
  return table;
}

// The point's whole run; a point by closed forms has no more than its own figures.
std::string line_of(const SweepStore::Found& found, const ReplayedPoint& replayed) {
  if (found.row.engine == kEstimate) {
    PointRow now = found.row;
    now.status = replayed.result.status;
    now.order = replayed.result.order;
    now.reason = replayed.result.reason;
    now.figures = replayed.result.figures;
    return json_of(now).dump();
  }
  RunOrigin origin{replayed.study->model->name, replayed.study->platform.name};
  for (const KeptFile& file : found.files) {
    origin.inputs.push_back(input_name(file.path));
  }
  return to_json(replayed.prepared.run, origin, true);
}

ExitStatus replay_one(const PointsCommand& options, SweepStore& store) {
  const SweepStore::Found found = store.find(options.point);
  const TemporaryFolder folder;
  const ReplayedPoint replayed = replay_point(found, folder.path());
  const PointRow& row = found.row;
  const bool feasible = replayed.result.status == PointStatus::feasible;
  std::string text = row.strategy + " under " + row.schedule + ", " + std::to_string(row.micro_batches) +
                     " micro-batches, " + row.engine + "\n" + row.settings + "\nprogram " + found.sweep.program +
                     (found.sweep.program == program_version() ? "" : ", now " + std::string(program_version())) + "\n";
  if (options.output.format == "jsonl" || options.output.format == "json") {
    text = line_of(found, replayed) + "\n";
  } else if (feasible) {
    text += to_text(table_of(row, replayed.result.figures), options.output.file.empty() && use_color());
  } else {
    text += "infeasible: " + replayed.result.reason + "\n";
  }
  emit(options.output, text);
  return feasible ? kDone : kNothingFeasible;
}

// Points as a table for people, with the columns of the CSV.
Table table_of(const CsvTable& csv) {
  Table table;
  const std::vector<std::string> columns = csv.columns();
  for (const std::string& column : columns) {
    table.columns.push_back({column, column.find('_') != std::string::npos ? Align::right : Align::left});
  }
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    std::vector<Cell> cells;
    for (const std::string& column : columns) {
      cells.push_back({csv.at(row, column).text});
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string csv_of(SweepStore& store) {
  const std::vector<std::string> axes = store.axis_keys();
  std::string text = csv_head(axes);
  store.for_each([&](const PointRow& row) { text += csv_line(row, axes); });
  return text;
}

// Forms that need all points at once.
void emit_whole(const PointsCommand& options, SweepStore& store) {
  if (options.output.format == "html") {
    const DocumentPage page = sweep_page(read_sweep_results(store));
    emit(options.output, to_html({.title = page.title, .sections = page.sections}));
  } else if (options.output.format == "json") {
    Json json = Json::array();
    store.for_each([&](const PointRow& row) { json.push_back(json_of(row)); });
    emit(options.output, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    const Table table = table_of(CsvTable(csv_of(store), options.file, {}));
    const bool markdown = options.output.format == "md";
    emit(options.output, markdown ? to_markdown(table, options.output.columns) + how_to_repeat(options.output)
                                  : to_text(table, view_of(options.output)));
  }
}

ExitStatus run(const PointsCommand& options) {
  keep_inputs(options.output.file, {options.file});
  SweepStore store(options.file, SweepStore::Mode::read);
  if (!options.point.empty()) {
    return replay_one(options, store);
  }
  if (options.output.format != "csv" && options.output.format != "jsonl") {
    emit_whole(options, store);
    return kDone;
  }
  const std::vector<std::string> axes = store.axis_keys();
  const bool lines = options.output.format == "jsonl";
  Pieces pieces(options.output.file);
  pieces.add(lines ? "" : csv_head(axes));
  store.for_each([&](const PointRow& row) { pieces.add(lines ? json_of(row).dump() + "\n" : csv_line(row, axes)); });
  pieces.finish();
  return kDone;
}

} // namespace

Job command_points(Flags& flags) { return make_job<PointsCommand>(flags, add_flags, run); }

} // namespace stagecraft
