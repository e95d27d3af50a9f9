// SPDX-License-Identifier: Apache-2.0
#include "sim/app/options.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "sim/base/file.hpp"
#include "sim/report/terminal.hpp"
#include "sim/study/input_files.hpp"
#include "sim/sweep/run/sweep_evaluate.hpp"

namespace stagecraft {

std::filesystem::path shipped_folder() {
  if (const char* given = std::getenv("STAGECRAFT_DATA"); given != nullptr) {
    return given;
  }
  return STAGECRAFT_DATA_DIR;
}

std::vector<Setting> parse_settings(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError({"--set " + text, 0, 0}, "not of the form KEY=VALUE; allowed: training.global_batch=64");
    }
    settings.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return settings;
}

namespace {

yaml::Node text_node(const std::string& text, const std::string& flag) {
  return {.kind = yaml::Node::Kind::scalar, .text = text, .where = {flag, 0, 0}};
}

void add_entry(yaml::Node& map, const std::string& key, const std::string& value, const std::string& flag) {
  if (!value.empty()) {
    map.entries.push_back({key, {flag, 0, 0}, text_node(value, flag)});
  }
}

} // namespace

yaml::Node model_node(const Options& options) {
  yaml::Node model = text_node(options.model, "MODEL");
  if (options.dimensions.empty() && options.cost_scale.empty()) {
    return model;
  }
  yaml::Node mapping{.kind = yaml::Node::Kind::map, .where = model.where};
  mapping.entries.push_back({"file", model.where, model});
  yaml::Node sizes{.kind = yaml::Node::Kind::map, .where = {"--dim", 0, 0}};
  for (const Setting& size : parse_settings(options.dimensions)) {
    add_entry(sizes, size.key, size.value, "--dim");
  }
  mapping.entries.push_back({"dimensions", sizes.where, std::move(sizes)});
  add_entry(mapping, "cost_scale", options.cost_scale, "--cost-scale");
  return mapping;
}

namespace {

yaml::Node document_from_flags(const Options& options) {
  yaml::Node document = study_document(options.model, options.platform);
  if (options.devices > 0) {
    if (!options.platform.empty()) {
      throw InputError({"--devices", 0, 0}, "given beside --platform; allowed: one of them");
    }
    yaml::Node star{.kind = yaml::Node::Kind::map, .where = {"--devices", 0, 0}};
    add_entry(star, "devices", std::to_string(options.devices), "--devices");
    add_entry(star, "bandwidth", options.bandwidth, "--bandwidth");
    add_entry(star, "latency", options.latency, "--latency");
    add_entry(star, "memory", options.memory, "--memory");
    document.entries.push_back({"platform", star.where, std::move(star)});
  }
  document.entries.front().value = model_node(options);
  return document;
}

} // namespace

ImportOptions import_options(const Options& options) {
  ImportOptions read;
  for (const std::string& text : options.dimensions) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw InputError({"--dim " + text, 0, 0}, "not of the form NAME=N; allowed: batch=8");
    }
    constexpr int kMost = 1 << 30;
    read.dimensions[text.substr(0, equals)] = parse_integer(text.substr(equals + 1), 1, kMost, {"--dim " + text, 0, 0});
  }
  if (!options.cost_scale.empty()) {
    yaml::Node scale = text_node(options.cost_scale, "--cost-scale");
    read.cost_scale = yaml::number(scale, "cost_scale", yaml::kPositive);
  }
  return read;
}

std::vector<Setting> settings_from(const Options& options) {
  std::vector<Setting> settings = parse_settings(options.settings);
  const auto override_with = [&](const char* key, const std::string& value) {
    if (!value.empty()) {
      settings.push_back({key, value});
    }
  };
  override_with("engine", options.engine);
  override_with("cost_model", options.cost_model);
  override_with("seed", options.seed);
  override_with("confidence", options.confidence);
  override_with("training.micro_batches", options.training_micro_batches);
  return settings;
}

namespace {

Folders folders_of(const std::string& study) {
  const std::filesystem::path folder = std::filesystem::path(study).parent_path();
  return {folder.empty() ? "." : folder, shipped_folder()};
}

} // namespace

void keep_inputs(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code failure;
    if (!output.empty() && std::filesystem::equivalent(output, input, failure)) {
      throw InputError({output, 0, 0},
                       "this file is an input, and would be lost; allowed: another name for the output");
    }
  }
}

std::string path_below(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const std::filesystem::path below = file.lexically_relative(folder.lexically_normal());
  return below.empty() || *below.begin() == ".." ? "" : below.string();
}

std::string input_name(const std::filesystem::path& file) {
  const std::string shipped = path_below(shipped_folder(), file);
  return shipped.empty() ? file.string() : shipped;
}

std::vector<std::string> inputs_of(const Options& options, const InputFiles& files) {
  std::vector<std::string> inputs;
  if (!options.study.empty()) {
    inputs.push_back(options.study);
  }
  for (const std::filesystem::path& file : files.asked()) {
    inputs.push_back(input_name(file));
  }
  return inputs;
}

Study study_from(const Options& options, std::vector<std::string>* inputs) {
  InputFiles files;
  Folders folders = folders_of(options.study);
  folders.files = inputs != nullptr ? &files : nullptr;
  const yaml::Node document = options.study.empty() ? document_from_flags(options) : yaml::load(options.study);
  Study study = load_study(document, folders, settings_from(options));
  if (inputs != nullptr) {
    *inputs = inputs_of(options, files);
  }
  return study;
}

SweepInputs sweep_inputs_from(const Options& options, InputFiles& files) {
  const yaml::Node document = yaml::load(options.study);
  std::vector<Setting> settings = settings_from(options);
  Sweep sweep = load_sweep(document, settings);
  std::erase_if(settings, is_of_sweep);
  Folders folders = folders_of(options.study);
  folders.files = &files;
  return {std::move(sweep), std::move(settings), folders};
}

JudgeStudy judge_study_from(const Options& options) {
  return load_judge_study(yaml::load(options.study), folders_of(options.study), settings_from(options));
}

void print(const std::string& text) {
  std::cout << printable(text, use_color()) << std::flush;
  if (!std::cout) {
    throw InputError({"stdout", 0, 0}, "cannot be written");
  }
}

void draw_figures(const Options& options, const std::vector<Figure>& figures) {
  for (const Figure& figure : options.figures.empty() ? std::vector<Figure>{} : figures) {
    const std::string why_not = draw(figure, options.figures);
    const std::string file = (std::filesystem::path(options.figures) / (figure.name + ".svg")).string();
    remark(why_not.empty() ? "drawn: " + file + "\n" : "no picture " + file + ": " + why_not + "\n");
  }
}

void remark(const std::string& text) { std::cerr << printable(text, use_color()) << std::flush; }

void emit(const Options& options, const std::string& text) {
  if (options.output.empty()) {
    print(text);
  } else {
    write_file(options.output, text);
  }
}

void emit(const Options& options, const ResultForms& forms) {
  const auto& document = options.format == "csv" ? forms.csv : forms.json;
  if (!options.output.empty()) {
    write_file(options.output, document());
  }
  if (options.format == "table") {
    print(forms.table());
  } else if (options.output.empty()) {
    print(document());
  }
}

bool use_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

int terminal_width() {
  constexpr int kDefault = 120;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) {
    return kDefault;
  }
  return size.ws_col;
}

} // namespace stagecraft
