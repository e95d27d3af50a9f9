// No model that constants rest on is scored, over all tables of measured runs there are. Skipped without the tables.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <set>
#include <tuple>

#include "sim/base/system/file.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/study/keys/take_config.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"
#include "sim/validate/truth/study/truth_study.hpp"
#include "sim/validate/validators.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

const fs::path kData = kRoot / ".." / "shared" / "data" / "truth";

// What a model is for constants of recipes, by its sizes alone, however tables call it.
using Sizes = std::tuple<int, int, int>;
Sizes sizes_of(const TruthRow& row) { return {row.sizes.layers, row.sizes.hidden, row.sizes.heads}; }

std::set<Sizes> sizes_of_recipes() {
  const Folders folders{.study = {}, .shipped = kRoot};
  std::set<Sizes> sizes;
  for (const fs::path& file : yaml_files(kRoot / "workloads" / "frameworks")) {
    for (const CalibratedModel& model : find_framework(folders, file.stem().string(), {}).calibrated_on) {
      sizes.insert({model.layers, model.hidden, model.heads});
    }
  }
  return sizes;
}

// Of the same sizes as a model of a recipe, and other models: their blocks, their vocabulary or what they were trained
// by.
const std::set<std::pair<std::string, std::string>> kOthers = {{"internevo_7b", "InternLM 7B (LLaMA-like)"},
                                                               {"llm_foundry_mpt", "MPT 125m"},
                                                               {"llm_foundry_mpt", "MPT 7b"},
                                                               {"nemo_h100_2024", "Nemotron3 8B"},
                                                               {"nemo_userguide_2025", "Mixtral 8x7B"}};

std::set<std::string> models_of_devices(std::vector<std::string> DeviceType::*models) {
  const fs::path folder = kRoot / "platforms" / "devices";
  const DeviceTypeSource source = device_types_in(folder);
  std::set<std::string> found;
  for (const fs::path& file : yaml_files(folder)) {
    const DeviceType type = load_device_type(source(file.stem().string(), {}), source);
    found.insert((type.*models).begin(), (type.*models).end());
  }
  return found;
}

// Of the rows of models that anything rests on, one for each set, model, device, metric and power limit, with the rest
// of their line: a table that takes seconds to predict.
struct Sample {
  std::vector<fs::path> tables;
  std::map<std::string, TruthRow> rows; ///< by case
};

bool is_of_device(const TruthRow& row, const std::set<std::string>& models) {
  return std::any_of(models.begin(), models.end(),
                     [&](const std::string& model) { return plain_words(row.model).find(model) != std::string::npos; });
}

Sample sample_of(const std::set<Sizes>& sizes, const std::set<std::string>& models) {
  const fs::path folder = fs::temp_directory_path() / ("stagecraft-disjoint-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  fs::copy_file(kData / "flags.csv", folder / "flags.csv", fs::copy_options::overwrite_existing);
  Sample sample;
  for (const fs::path& table : files_at(kData, is_truth_table)) {
    const std::string text = read_file(table);
    std::vector<std::size_t> begins; // of lines, of which cells have no breaks
    for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1) {
      begins.push_back(at);
    }
    begins.push_back(text.size());
    std::string chosen = text.substr(0, begins[1]);
    std::set<std::tuple<std::string, std::string, std::string, double>> seen;
    for (const TruthRow& row : read_truth(table)) {
      const bool concerns = sizes.contains(sizes_of(row)) || is_of_device(row, models);
      if (concerns && seen.insert({row.model, row.gpu, row.metric, row.power_cap}).second) {
        const std::size_t line = static_cast<std::size_t>(row.where.line) - 1;
        chosen += text.substr(begins[line], begins[line + 1] - begins[line]);
        sample.rows.emplace(row.case_name, row);
      }
    }
    if (!seen.empty()) {
      write_file(folder / table.filename(), chosen);
      sample.tables.push_back(folder / table.filename());
    }
  }
  return sample;
}

// What constants change: not what memory holds.
bool rests_on_constants(const ValidationRow& row) { return row.metric.find("memory") == std::string::npos; }

TEST_CASE("over all tables no model that a recipe or a device type rests on is scored", "[validate][data]") {
  if (!fs::exists(kData / "flags.csv")) {
    std::cout << "skipped: no " << (kData / "flags.csv").lexically_normal().string() << "\n";
    return;
  }
  const std::set<Sizes> sizes = sizes_of_recipes();
  const std::set<std::string> by_times = models_of_devices(&DeviceType::calibrated_on);
  const std::set<std::string> by_power = models_of_devices(&DeviceType::power_calibrated_on);
  REQUIRE(sizes.size() >= 10);
  REQUIRE_FALSE(by_times.empty());
  REQUIRE_FALSE(by_power.empty());
  std::set<std::string> models = by_times;
  models.insert(by_power.begin(), by_power.end());
  const Sample sample = sample_of(sizes, models);
  const Validation validation = validate(sample.tables, {.shipped = kRoot, .workers = 2});
  CHECK(validation.calibration.size() > 50);
  std::set<std::pair<std::string, std::string>> others;
  for (const ValidationRow& scored : validation.rows) {
    if (!rests_on_constants(scored)) {
      continue;
    }
    const TruthRow& row = sample.rows.at(scored.case_name);
    const std::pair<std::string, std::string> model = {row.set, row.model};
    INFO(scored.case_name << ", " << scored.metric << " of " << row.model << ", is scored, and constants rest on it");
    CHECK((!sizes.contains(sizes_of(row)) || kOthers.contains(model)));
    CHECK_FALSE((scored.metric == "mean_device_watts" ? is_of_device(row, by_power) : is_of_device(row, by_times)));
    others.insert(model);
  }
  CHECK(others == kOthers); // none stands there in vain
  for (const fs::path& table : sample.tables) {
    fs::remove(table);
  }
  fs::remove_all(sample.tables.front().parent_path());
}

} // namespace
} // namespace stagecraft::test
