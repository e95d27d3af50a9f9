// The documents name everything that can be named, and their links lead somewhere.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <regex>

#include "sim/base/system/file.hpp"
#include "sim/collective/algorithm.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/replay/engines.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/sweep/space/sweep.hpp"
#include "sim/sweep/space/sweep_figures.hpp"
#include "sim/validate/validators.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/import/import.hpp"
#include "sim/workload/training/loader.hpp"
#include "sim/workload/training/training.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/foreign/foreign_formats.hpp"
#include "calibrate/pipeline/backend.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = test::source_dir();

// Each row of the table is in the document as "| `name` | …".
template <class Table> void check_rows(const std::string& document, const Table& table) {
  const std::string text = read_file(kRoot / document);
  for (const auto& row : table) {
    const std::string cell = "| `" + std::string(row.name) + "` |";
    INFO(document << " has no row '" << cell << "'; the program says: " << row.help);
    CHECK(text.find(cell) != std::string::npos);
  }
}

TEST_CASE("docs/overview.md has a row for everything that a study can name", "[architecture][docs]") {
  check_rows("docs/overview.md", strategies());
  check_rows("docs/overview.md", schedules());
  check_rows("docs/overview.md", algorithms());
  check_rows("docs/overview.md", cost_models());
  check_rows("docs/overview.md", kEngines);
  check_rows("docs/overview.md", model_formats());
  check_rows("docs/overview.md", plan_formats());
  check_rows("docs/formats/framework-configs.md", config_formats());
  check_rows("docs/overview.md", foreign::foreign_formats());
  check_rows("docs/formats/foreign-measurements.md", foreign::foreign_formats());
  check_rows("docs/overview.md", pipeline::backends());
  check_rows("docs/overview.md", validators());
  check_rows("docs/formats/run.md", pipeline::backends());
}

TEST_CASE("docs/formats/study.md has a row for every value of a training key", "[architecture][docs]") {
  check_rows("docs/formats/study.md", kOptimizers);
  check_rows("docs/formats/study.md", kPrecisions);
  check_rows("docs/formats/study.md", kFp8Recipes);
  check_rows("docs/formats/study.md", kRecomputes);
  check_rows("docs/formats/study.md", kStepModes);
  check_rows("docs/formats/study.md", kAllReduces);
  check_rows("docs/formats/study.md", kHostWaits);
}

template <class Table> void check_names(const std::string& document, const Table& table) {
  for (const std::string& name : names_of(table)) {
    INFO(document << " and '" << name << "'");
    CHECK(read_file(kRoot / document).find("`" + name + "`") != std::string::npos);
  }
}

TEST_CASE("docs/formats/results.md names every metric, and the key where it is", "[architecture][docs]") {
  check_names("docs/formats/results.md", kMetrics);
  const std::string text = read_file(kRoot / "docs/formats/results.md");
  for (const Metric& metric : kMetrics) {
    const std::string key(metric.path().substr(0, metric.path().find('.')));
    INFO("docs/formats/results.md and '" << key << "', where " << metric.name << " is");
    CHECK(text.find("`" + key + "`") != std::string::npos);
  }
}

TEST_CASE("docs/formats/sweep.md names every figure, objective, constraint and draw", "[architecture][docs]") {
  check_names("docs/formats/sweep.md", figures());
  check_names("docs/formats/sweep.md", objectives());
  check_names("docs/formats/sweep.md", constraints());
  check_names("docs/formats/sweep.md", kSamplings);
}

std::vector<fs::path> documents() {
  std::vector<fs::path> found;
  for (const char* name : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    found.push_back(kRoot / name);
  }
  for (const char* folder : {"docs", "reports", "platforms", "workloads"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.path().extension() == ".md") {
        found.push_back(entry.path());
      }
    }
  }
  return found;
}

TEST_CASE("links between documents and to files lead somewhere", "[architecture][docs]") {
  static const std::regex kLink(R"(\]\(([^)#]+)(#[^)]*)?\))");
  for (const fs::path& document : documents()) {
    const std::string text = read_file(document);
    for (auto match = std::sregex_iterator(text.begin(), text.end(), kLink); match != std::sregex_iterator(); ++match) {
      const std::string target = (*match)[1];
      if (target.find("://") == std::string::npos) {
        INFO(document.lexically_relative(kRoot).string() << " links to " << target);
        CHECK(fs::exists(document.parent_path() / target));
      }
    }
  }
}

// Documents name source files in backquotes, as `sim/strategy/strategies.cpp`.
TEST_CASE("source files that documents name exist", "[architecture][docs]") {
  static const std::regex kPath("`((sim|tests|docs|platforms|workloads|reports|cmake)/[a-z0-9_./-]+\\.[a-z]+)`");
  for (const fs::path& document : documents()) {
    const std::string text = read_file(document);
    for (auto match = std::sregex_iterator(text.begin(), text.end(), kPath); match != std::sregex_iterator(); ++match) {
      INFO(document.lexically_relative(kRoot).string() << " names " << (*match)[1]);
      CHECK(fs::exists(kRoot / (*match)[1].str()));
    }
  }
}

} // namespace
} // namespace stagecraft
