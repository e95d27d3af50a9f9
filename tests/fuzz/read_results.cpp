// Results: real runs, measured data to validate against, documents of the report, files of sweeps.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/analysis/explain.hpp"
#include "sim/base/system/file.hpp"
#include "sim/replay/replay.hpp"
#include "sim/report/page/documents.hpp"
#include "sim/study/keys/inputs.hpp"
#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/sweep/store/read_sweep_results.hpp"
#include "sim/validate/perseus_data.hpp"
#include "sim/validate/run_record.hpp"
#include "sim/validate/validators.hpp"
#include "sim/validate/witness.hpp"
#include "tests/fuzz/fuzz_files.hpp"
#include "tests/fuzz/read.hpp"

namespace stagecraft::fuzz {
namespace {

// The three files of a folder, each after a line that names it: "== runs.csv".
perseus::Texts parts_of(std::string_view bytes) {
  const auto part = [&](std::string_view name) {
    const std::string title = "== " + std::string(name) + "\n";
    const std::size_t at = bytes.find(title);
    if (at == std::string_view::npos) {
      return std::string();
    }
    const std::string_view rest = bytes.substr(at + title.size());
    return std::string(rest.substr(0, rest.find("== ")));
  };
  return {"folder", part("runs.csv"), part("stages.csv"), part("plans.csv")};
}

bool is_small(const perseus::Data& data) {
  constexpr int kMostRuns = 4, kMostMicroBatches = 16, kMostRanks = 8;
  return data.runs.size() <= kMostRuns &&
         std::all_of(data.runs.begin(), data.runs.end(), [](const perseus::MeasuredRun& run) {
           return run.micro_batches <= kMostMicroBatches && run.ranks() <= kMostRanks;
         });
}

void show(DocumentPage document) {
  const Page page{.title = document.title, .sections = std::move(document.sections)};
  drawn_data(page); // to_html() adds a megabyte of scripts
  figures_of(page);
}

// Every question that commands ask of a file of results.
void ask(SweepStore& store) {
  store.counts(0);
  store.paths();
  store.axis_keys();
  constexpr std::uint64_t kMost = 5;
  for (const SweepStore::Asked& sweep : store.asked()) {
    store.best(sweep.sweep, sweep.goal, "", kMost);
  }
  show(sweep_page(read_sweep_results(store)));
}

// Replays the first point, from the files that the results keep.
void replay_first(SweepStore& store, const std::filesystem::path& folder) {
  std::string key;
  store.for_each([&](const PointRow& row) { key = key.empty() ? to_text(row.key) : key; });
  if (!key.empty()) {
    std::filesystem::create_directory(folder);
    replay_point(store.find(key), folder);
  }
}

} // namespace

void read_run(std::string_view bytes) {
  const RunRecord record = read_run_record(bytes, "file");
  const std::string text = to_json(record);
  require(to_json(read_run_record(text, "written")) == text, "a record reads back as the same");
  record.disturbed();
}

void read_perseus(std::string_view bytes) {
  const perseus::Texts texts = parts_of(bytes);
  if (is_small(perseus::read(texts))) {
    const Folder folder;
    write_file(folder.path() / "runs.csv", texts.runs);
    write_file(folder.path() / "stages.csv", texts.stages);
    write_file(folder.path() / "plans.csv", texts.plans);
    validate_perseus(folder.path(), {.shipped = kRoot});
  }
}

void read_witness_file(std::string_view bytes) {
  const Witness witness = read_witness(yaml::parse(bytes, "file"));
  const ModelGraph model =
      read_model(witness.model, {.study = kRoot / "tests/study", .shipped = kRoot, .closed = true}, {});
  match_layers(witness.layers, model);
}

void read_report_document(std::string_view bytes) { show(read_document("file", std::string(bytes))); }

void read_sweep_file(std::string_view bytes) {
  const Folder folder;
  const std::filesystem::path file = folder.path() / "results.sqlite";
  write_file(file, bytes);
  SweepStore store(file, SweepStore::Mode::read);
  ask(store);
  replay_first(store, folder.path() / "replay");
}

} // namespace stagecraft::fuzz
