// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/sweep/options.hpp"

#include <algorithm>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::gpu {
namespace {

struct OptionRow {
  const char *name, *value, *help; ///< value "" for a flag
  std::function<void(Options&, const std::string&)> store;
};

double number_of(const std::string& text, const char* name, double least, double most) {
  std::istringstream in(text);
  double value = 0;
  if (!(in >> value) || !(in >> std::ws).eof() || value < least || value > most) {
    std::ostringstream message;
    message << name << " '" << text << "'; allowed: a number from " << least << " to " << most;
    throw std::invalid_argument(message.str());
  }
  return value;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

std::vector<std::string> groups_of(const std::string& text) {
  std::string known;
  for (const std::string& name : group_names()) {
    known += (known.empty() ? "" : ", ") + name;
  }
  std::vector<std::string> groups = parts_of(text, ',');
  for (const std::string& group : groups) {
    if (std::find(group_names().begin(), group_names().end(), group) == group_names().end()) {
      throw std::invalid_argument("unknown group '" + group + "'; allowed: " + known);
    }
  }
  if (groups.empty()) {
    throw std::invalid_argument("--groups wants names; allowed: " + known);
  }
  return groups;
}

const std::vector<OptionRow>& rows() {
  static const std::vector<OptionRow> kRows = {
      {"--budget", "SECONDS", "time for the whole run, 420 by default",
       [](Options& options, const std::string& value) { options.budget = number_of(value, "--budget", 1, 86400); }},
      {"--shapes", "FILE", "a shape list, measured first and exactly",
       [](Options& options, const std::string& value) { options.shapes = value; }},
      {"--out", "FILE", "measurements.yaml by default; one that was cut off goes on; of pipelines the folder for times",
       [](Options& options, const std::string& value) { options.out = value; }},
      {"--pipeline", "FILE",
       "carry out a pipeline instead, into FILE.times; may be repeated; - reads and writes streams",
       [](Options& options, const std::string& value) { options.pipelines.push_back(value); }},
      {"--runs", "N", "of each pipeline, its parts measured between them, 5 by default",
       [](Options& options, const std::string& value) {
         options.runs = static_cast<int>(number_of(value, "--runs", 1, 1000));
       }},
      {"--groups", "NAME,…", "only these groups",
       [](Options& options, const std::string& value) { options.groups = groups_of(value); }},
      {"--device", "N", "number of the device, 0 by default",
       [](Options& options, const std::string& value) {
         options.device = static_cast<int>(number_of(value, "--device", 0, 1023));
       }},
      {"--name", "NAME", "of the device in the file, as 'h200-sxm'",
       [](Options& options, const std::string& value) { options.name = value; }},
      {"--libraries", "FOLDER:…", "where to look for cuBLASLt, cuDNN, NCCL and NVML beyond the usual places",
       [](Options& options, const std::string& value) { options.libraries = parts_of(value, ':'); }},
      {"--list", "", "print every point that would be measured",
       [](Options& options, const std::string&) { options.list = true; }},
      {"--dry-run", "", "print the groups and their share of the time; of pipelines: on a made-up GPU",
       [](Options& options, const std::string&) { options.dry_run = true; }},
      {"--check", "",
       "say what can be used, compare every kernel's result with the host's on small shapes, and measure nothing",
       [](Options& options, const std::string&) { options.check = true; }},
      {"--help", "", "print this", [](Options& options, const std::string&) { options.help = true; }},
  };
  return kRows;
}

} // namespace

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const auto row = std::find_if(rows().begin(), rows().end(), [&](const OptionRow& one) { return one.name == name; });
    if (row == rows().end()) {
      throw std::invalid_argument("unknown option '" + arguments[i] + "'; --help lists what is allowed");
    }
    const bool flag = row->value[0] == '\0';
    if (flag != (equals == std::string::npos) && flag) {
      throw std::invalid_argument(name + " takes no value");
    }
    if (!flag && equals == std::string::npos && i + 1 == arguments.size()) {
      throw std::invalid_argument(name + " wants a value: " + row->value);
    }
    row->store(options, flag ? "" : equals != std::string::npos ? arguments[i].substr(equals + 1) : arguments[++i]);
  }
  if (options.out.empty() && options.pipelines.empty()) {
    options.out = "measurements.yaml";
  }
  return options;
}

std::string help_text() {
  std::string text = "usage: calibrate_gpu [options]\n"
                     "Measures kernels and links of one GPU, or carries out pipelines (docs/calibration.md). Exit: 0 "
                     "done, 1 failed, 2 wrong\n"
                     "usage or input, 3 interrupted, 4 no device.\n\n";
  constexpr std::size_t kWidth = 24;
  for (const OptionRow& row : rows()) {
    std::string left = std::string("  ") + row.name + (row.value[0] == '\0' ? "" : " ") + row.value;
    left.resize(std::max(left.size() + 1, kWidth), ' ');
    text += left + row.help + "\n";
  }
  text += "\ngroups:";
  for (const std::string& name : group_names()) {
    text += " " + name;
  }
  return text + "\n";
}

} // namespace stagecraft::gpu
