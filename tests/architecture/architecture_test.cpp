// The structure of sim/ and calibrate/: which folder may include which, which outside package belongs where, and what
// libraries must not do. Reads every source file; a defect names its file and line.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string>;

const Folders kCalibrate = {"fit", "cpu", "gpu", "pipeline", "foreign"};

// For each folder or room, the folders that it may include directly; what those may include, it may include too. A new
// folder or room needs a row here. All are below sim/, except kCalibrate, whose libraries keep the same rules; so do
// the rooms of calibrate/gpu, which is a project of its own.
const std::map<std::string, Folders>& include_table() {
  static const std::map<std::string, Folders> kTable = [] {
    std::map<std::string, Folders> table;
    const auto row = [&](const char* folder, const std::vector<std::string>& after) {
      Folders& before = table[folder];
      for (const std::string& one : after) {
        before.insert(one);
        before.insert(table.at(one).begin(), table.at(one).end());
      }
    };
    row("base", {});
    row("base/system", {"base"});
    row("base/format", {"base/system"});
    row("base/process", {"base/system"});
    row("base/kernel", {"base"});
    row("platform/fits", {"base/kernel", "base/format"});
    row("platform", {"platform/fits"});
    row("workload", {"base/kernel"});
    row("workload/training", {"workload", "base/format"});
    row("workload/layer", {"workload/training"});
    row("workload/import", {"workload/layer", "base/process"});
    row("workload/config/common", {"workload/training"});
    row("workload/config/megatron", {"workload/config/common"});
    row("workload/config", {"workload/config/megatron"});
    row("cost", {"platform", "workload/layer"});
    row("collective", {"platform"});
    row("plan/program", {"cost", "collective"});
    row("plan", {"cost", "plan/program"});
    row("plan/stage_cost/groups", {"plan"});
    row("plan/stage_cost/passes", {"plan/stage_cost/groups"});
    row("plan/stage_cost", {"plan/stage_cost/passes"});
    row("plan/likeness", {"plan/stage_cost"});
    row("plan/estimate", {"plan/stage_cost"});
    row("strategy/heuristic", {"plan/estimate"});
    row("strategy/dynamic_programming", {"plan/estimate"});
    row("strategy/dynamic_programming/max_load", {"strategy/dynamic_programming"});
    row("strategy", {"strategy/heuristic", "strategy/dynamic_programming/max_load"});
    row("schedule", {"plan/likeness", "plan/estimate"});
    row("schedule/task_graph", {"schedule"});
    row("schedule/format", {"schedule"});
    row("timeline", {"schedule/task_graph"});
    row("replay", {"timeline", "base/process"});
    row("replay/simgrid", {"replay"});
    row("replay/what_if", {"replay"});
    row("result", {"timeline"});
    row("report", {"result"});
    row("report/page", {"report"});
    row("report/page/sweep", {"report/page"});
    row("plan_format", {"strategy", "workload/import", "workload/config", "result"});
    row("study/keys", {"schedule/format", "replay/what_if", "workload/import", "workload/config"});
    row("study", {"study/keys", "strategy", "result", "plan_format"});
    row("study/measure", {"study"});
    row("study/planning", {"study/measure"});
    row("study/compare", {"study/planning"});
    row("sweep/space", {"study/compare"});
    row("sweep/store", {"sweep/space", "report/page/sweep"});
    row("sweep/run", {"sweep/store"});
    row("validate/truth/rows", {"study/compare", "report"});
    row("validate/truth/study", {"validate/truth/rows"});
    row("validate/truth", {"validate/truth/study"});
    row("validate", {"validate/truth"});
    row("analysis", {"study/compare", "report"});
    row("fit/forms", {"platform", "workload/training", "collective"}); // calibrate/fit: fits to measurements
    row("fit", {"fit/forms"});
    row("gpu/sweep", {}); // calibrate/gpu: measures a GPU
    row("gpu/output", {"gpu/sweep"});
    row("gpu/device", {"gpu/output"});
    row("gpu/kernels", {"gpu/device"});
    row("gpu/check", {"gpu/kernels"});
    row("gpu/links", {"gpu/device"});
    row("gpu/pipelines", {"gpu/kernels"});
    row("gpu", {"gpu/check", "gpu/links", "gpu/pipelines"});
    row("cpu", {"platform", "workload/layer", "gpu/output"}); // calibrate/cpu: measures a processor
    row("foreign", {"platform", "workload/import"});          // calibrate/foreign: measurements by other tools
    row("pipeline/work", {"timeline", "cpu"});
    row("pipeline", {"pipeline/work", "fit", "cpu", "base/process", "gpu/pipelines"}); // calibrate/pipeline: real runs
    row("app/common", {"validate", "sweep/store", "schedule/format", "pipeline"});
    row("app/run", {"app/common", "analysis"});
    row("app/command", {"app/run", "sweep/run", "foreign", "gpu"});
    row("app", {"app/command"});
    return table;
  }();
  return kTable;
}

// Outside packages by the beginning of their headers' names, and the folders that may include them.
const std::map<std::string, Folders>& package_table() {
  static const std::map<std::string, Folders> kTable = {
      {"yaml-cpp", {"base/format"}},
      {"toml++", {"base/format"}},
      {"simgrid", {"replay/simgrid"}},
      {"onnx", {"workload/import"}},
      {"google", {"workload/import"}}, // protobuf, the format of ONNX files
      {"Eigen", {"fit/forms", "cpu", "pipeline", "pipeline/work"}},
      {"CLI", {"app/common"}},
      {"nlohmann",
       {"base/format", "workload/config/common", "workload/import", "result", "report", "report/page", "plan_format",
        "sweep/store", "sweep/run", "validate", "validate/truth", "analysis", "foreign", "app/common", "app/run",
        "app/command"}},
      {"sqlite3.h", {"sweep/store"}},
      {"gperftools", {"base/system"}}, // the allocator of programs
  };
  return kTable;
}

// Rooms of a program may print and end the process.
bool is_program(const std::string& folder) {
  const std::string top = folder.substr(0, folder.find('/'));
  return top == "app" || top == "gpu";
}

// Libraries neither print nor end the process. Only _exit is allowed, to end a forked child.
const std::regex& forbidden_calls() {
  static const std::regex kCalls(R"(std::(cout|cerr|clog)\b|\b(printf|fprintf|puts|exit|quick_exit|abort)\s*\()");
  return kCalls;
}
const Folders kForkingFiles = {"sim/base/process/child.cpp", "sim/base/system/command.cpp",
                               "sim/base/system/confinement.cpp", "sim/base/process/worker_pool.cpp"};

struct Line {
  int number;
  std::string text; ///< without its comment
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back({static_cast<int>(lines.size()) + 1, line.substr(0, line.find("//"))});
  }
  return lines;
}

// "sim/plan/plan.hpp" -> "plan", "sim/sweep/run/sweep_run.hpp" -> "sweep/run".
std::string folder_of(const std::string& path) {
  const std::size_t begin = path.find('/') + 1;
  const std::size_t end = path.rfind('/');
  return end < begin ? path.substr(begin) : path.substr(begin, end - begin);
}

std::string place_of(const std::string& folder) {
  return (kCalibrate.contains(folder.substr(0, folder.find('/'))) ? "calibrate/" : "sim/") + folder;
}

std::string include_defect(const std::string& folder, const std::string& header) {
  const auto& table = include_table();
  if (header.starts_with("sim/") || header.starts_with("calibrate/")) {
    const std::string target = folder_of(header);
    const bool known = table.contains(folder) && table.contains(target);
    return known && (target == folder || table.at(folder).contains(target))
               ? ""
               : place_of(folder) + " may not include " + place_of(target);
  }
  if (folder == "gpu" || folder.starts_with("gpu/")) {
    return ""; // a header of the toolkit
  }
  const std::size_t slash = header.find('/');
  static const std::set<std::string> kSystem = {"arpa", "net", "netinet", "sys"};
  const auto package = package_table().find(header.substr(0, slash));
  if (package == package_table().end()) {
    if (slash == std::string::npos || kSystem.contains(header.substr(0, slash))) {
      return ""; // a header of the language or the system
    }
    return "'" + header + "' belongs to no known package";
  }
  return package->second.contains(folder) ? "" : place_of(folder) + " may not include " + package->first;
}

// What would be compiled again for each command.
bool is_slow_header(const std::string& folder, const std::string& path, const std::string& header) {
  return is_program(folder) && path.ends_with(".hpp") && (header.starts_with("CLI/") || header == "nlohmann/json.hpp");
}

// Every defect of one file below sim/, as "file:line: what".
std::vector<std::string> defects_of(const std::string& path, const std::string& text) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*["<]([^">]+)[">])");
  std::vector<std::string> defects;
  const auto report = [&](int line, const std::string& what) {
    defects.push_back(path + ":" + std::to_string(line) + ": " + what);
  };
  const std::string folder = folder_of(path);
  const bool may_print = is_program(folder);
  if (!include_table().contains(folder)) {
    report(1, place_of(folder) + " has no place in the include table");
  }
  if (text.find("SPDX-License-Identifier: Apache-2.0") == std::string::npos) {
    report(1, "no SPDX line");
  }
  if (path.ends_with(".hpp") && text.find("#pragma once") == std::string::npos) {
    report(1, "no #pragma once");
  }
  for (const Line& line : lines_of(text)) {
    std::smatch match;
    if (std::regex_search(line.text, match, kInclude)) {
      const std::string what = include_defect(folder, match[1]);
      what.empty() ? void() : report(line.number, what);
      if (is_slow_header(folder, path, match[1])) {
        report(line.number, "a header of the program includes '" + match.str(1) + "', which takes long to compile");
      }
    } else if (!may_print && std::regex_search(line.text, match, forbidden_calls())) {
      report(line.number, "'" + match.str() + "' in a library");
    } else if (!may_print && line.text.find("_exit(") != std::string::npos && !kForkingFiles.contains(path)) {
      report(line.number, "'_exit' outside a forked child");
    }
  }
  return defects;
}

// Calls `visit` with each file below `folder` that ends in one of `suffixes`, sorted; paths are relative to the root.
void for_each_file(const std::string& folder, const std::set<std::string>& suffixes,
                   const std::function<void(const std::string& path, const std::string& text)>& visit) {
  const fs::path root = test::source_dir();
  std::set<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    if (suffixes.contains(entry.path().extension().string())) {
      paths.insert(entry.path().lexically_relative(root).generic_string());
    }
  }
  for (const std::string& path : paths) {
    visit(path, read_file(root / path));
  }
}

TEST_CASE("each folder and room includes only what stands before it, and libraries stay silent", "[architecture]") {
  std::vector<std::string> defects;
  std::set<std::string> folders;
  for (const char* top : {"sim", "calibrate"}) {
    for_each_file(top, {".cpp", ".hpp", ".cu", ".cuh"}, [&](const std::string& path, const std::string& text) {
      folders.insert(folder_of(path));
      const auto found = defects_of(path, text);
      defects.insert(defects.end(), found.begin(), found.end());
    });
  }
  CHECK(folders.size() == include_table().size());
  CHECK(join(defects, "\n").empty());
  for (const std::string& defect : defects) {
    FAIL_CHECK(defect);
  }
}

// "namespace::Type" for each type that a file defines outside anonymous namespaces.
std::vector<std::string> types_of(const std::string& text) {
  static const std::regex kNamespace(R"(^namespace ([a-z_:]+) \{)"),
      kType(R"(^(?:struct|class|enum class) ([\w:]+)[^;]*$)");
  std::vector<std::string> types;
  std::string space;
  bool own = false;
  for (const Line& line : lines_of(text)) {
    std::smatch match;
    if (std::regex_search(line.text, match, kNamespace)) {
      space = match[1];
    } else if (line.text == "namespace {" || line.text == "} // namespace") {
      own = line.text == "namespace {";
    } else if (!own && std::regex_search(line.text, match, kType)) {
      types.push_back(space + "::" + std::string(match[1]));
    }
  }
  return types;
}

// The linker would take two types of one name for one, and mix their templates and destructors.
TEST_CASE("no two types have the same name", "[architecture]") {
  std::map<std::string, std::string> file_of;
  for (const char* top : {"sim", "calibrate"}) {
    for_each_file(top, {".cpp", ".hpp", ".cu"}, [&](const std::string& path, const std::string& text) {
      for (const std::string& type : types_of(text)) {
        INFO(type << " stands in " << path << " and in " << file_of[type]);
        CHECK(file_of[type].empty());
        file_of[type] = path;
      }
    });
  }
  CHECK(file_of.contains("stagecraft::TaskGraph"));
  CHECK(types_of("namespace a::b {\nstruct X;\nstruct X {\n  int i;\n};\nnamespace {\nclass Y {\n") ==
        std::vector<std::string>{"a::b::X"});
}

TEST_CASE("code of the tests has its SPDX line too", "[architecture]") {
  for_each_file("tests", {".cpp", ".hpp"}, [](const std::string& path, const std::string& text) {
    INFO(path);
    CHECK(text.find("SPDX-License-Identifier: Apache-2.0") != std::string::npos);
    CHECK((!path.ends_with(".hpp") || text.find("#pragma once") != std::string::npos));
  });
}

// The folder of the library stagecraft_NAME; "" where the table has none.
std::string folder_of_library(const std::string& name) {
  for (const auto& [folder, before] : include_table()) {
    std::string library = folder;
    std::replace(library.begin(), library.end(), '/', '_');
    if (library == name || "calibrate_" + library == name) {
      return folder;
    }
  }
  return "";
}

// stagecraft_library(… DEPENDS a b …) must link only what includes may reach.
TEST_CASE("libraries link only what stands before them", "[architecture]") {
  static const std::regex kDepends(R"(DEPENDS([^)A-Z]*))");
  const auto check_links = [](const std::string& path, const std::string& text) {
    const std::string folder = folder_of(path);
    std::smatch match;
    if (folder == "app" || !std::regex_search(text, match, kDepends)) {
      return;
    }
    std::istringstream names(match[1]);
    for (std::string name; names >> name;) {
      INFO(path << " depends on " << name);
      CHECK(include_table().at(folder).contains(folder_of_library(name)));
    }
  };
  for_each_file("sim", {".txt"}, check_links);
  for_each_file("calibrate/fit", {".txt"}, check_links);
  for_each_file("calibrate/foreign", {".txt"}, check_links);
}

TEST_CASE("the architecture rules catch violations", "[architecture]") {
  const std::string head = "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n";
  const auto defects = [&](const std::string& path, const std::string& line) {
    return join(defects_of(path, head + line + "\n"), "\n");
  };
  CHECK(defects("sim/plan/x.hpp", "#include \"sim/cost/memory.hpp\"").empty());
  CHECK(defects("sim/replay/x.hpp", "#include \"sim/result/run.hpp\"") ==
        "sim/replay/x.hpp:3: sim/replay may not include sim/result");
  CHECK(defects("sim/report/x.hpp", "#include \"sim/replay/replay.hpp\"") ==
        "sim/report/x.hpp:3: sim/report may not include sim/replay");
  CHECK(defects("sim/platform/x.hpp", "#include \"sim/workload/model_graph.hpp\"") ==
        "sim/platform/x.hpp:3: sim/platform may not include sim/workload");
  CHECK(defects("sim/cost/x.cpp", "#  include <simgrid/s4u.hpp>") ==
        "sim/cost/x.cpp:3: sim/cost may not include simgrid");
  CHECK(defects("sim/cost/x.cpp", "#include <boost/any.hpp>") ==
        "sim/cost/x.cpp:3: 'boost/any.hpp' belongs to no known package");
  CHECK(defects("sim/cost/x.cpp", "  std::cerr << 1;") == "sim/cost/x.cpp:3: 'std::cerr' in a library");
  CHECK(defects("sim/cost/x.cpp", "  exit (1);") == "sim/cost/x.cpp:3: 'exit (' in a library");
  CHECK(defects("sim/cost/x.cpp", "  _exit(1);") == "sim/cost/x.cpp:3: '_exit' outside a forked child");
  CHECK(defects("sim/cost/x.cpp", "  std::snprintf(a, b, c); // exit(1)").empty());
  CHECK(defects("sim/app/x.cpp", "  std::cout << 1;").empty());
  CHECK(defects("sim/app/command/x.cpp", "  std::cout << 1;").empty());
  CHECK(defects("sim/app/command/x.cpp", "#include <CLI/CLI.hpp>") ==
        "sim/app/command/x.cpp:3: sim/app/command may not include CLI");
  CHECK(defects("sim/app/common/x.cpp", "#include <CLI/CLI.hpp>").empty());
  CHECK(defects("sim/app/common/x.hpp", "#include <CLI/CLI.hpp>") ==
        "sim/app/common/x.hpp:3: a header of the program includes 'CLI/CLI.hpp', which takes long to compile");
  CHECK(defects("calibrate/fit/forms/x.cpp", "#include <Eigen/Dense>").empty());
  CHECK(defects("calibrate/fit/x.cpp", "#include \"sim/plan/plan.hpp\"") ==
        "calibrate/fit/x.cpp:3: calibrate/fit may not include sim/plan");
  CHECK(defects("sim/cost/x.cpp", "#include \"calibrate/fit/forms/sample.hpp\"") ==
        "sim/cost/x.cpp:3: sim/cost may not include calibrate/fit/forms");
  CHECK(defects("sim/new/x.cpp", "") == "sim/new/x.cpp:1: sim/new has no place in the include table");
  CHECK(defects_of("sim/plan/x.hpp", "") ==
        std::vector<std::string>{"sim/plan/x.hpp:1: no SPDX line", "sim/plan/x.hpp:1: no #pragma once"});
}

} // namespace
} // namespace stagecraft
