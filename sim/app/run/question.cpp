// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/question.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/app/run/save_study.hpp"
#include "sim/base/format/json.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/base/system/file.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kMostMicroBatches = 1 << 24;

// A file's name as one in the folder of the result gives it; "" stays "".
std::string from_result(const std::string& file, const std::string& result) {
  const fs::path folder = fs::absolute(fs::path(result).parent_path() / ".").lexically_normal();
  return file.empty() ? "" : fs::absolute(file).lexically_normal().lexically_relative(folder).string();
}

// The other way round.
std::string to_result(const std::string& file, const std::string& result) {
  return file.empty() ? "" : (fs::path(result).parent_path() / file).lexically_normal().string();
}

std::string folder_of(const std::string& result) {
  const fs::path folder = fs::path(result).parent_path();
  return folder.empty() ? "." : folder.string();
}

// The name of a schedule is that of a file where it ends so.
bool is_file(const std::string& schedule) { return schedule.ends_with(".csv"); }

// Plans given beside a study stand behind those that it lists.
void add_plans(yaml::Node& study, const std::vector<std::string>& plans, const std::string& format) {
  const Where where{"--plan", 0, 0};
  const yaml::Node* compare = study.find("compare");
  const yaml::Node* listed = compare != nullptr ? compare->find("plans") : nullptr;
  yaml::Node list{.kind = yaml::Node::Kind::sequence, .where = where};
  if (listed != nullptr && listed->kind == yaml::Node::Kind::scalar) {
    list.items.push_back(*listed);
  } else if (listed != nullptr) {
    list = *listed;
  }
  for (const std::string& plan : plans) {
    list.items.push_back(plan_node(plan, format));
  }
  yaml::set(study, "compare.plans", list);
}

// The value of `training.config`, named from the result's folder; removed from the study. "": none.
std::string remove_config(yaml::Node& study, const std::string& study_file, const std::string& result) {
  yaml::Node* training = value_at(study, "training");
  yaml::Node* found = training != nullptr ? value_at(*training, "config") : nullptr;
  if (found == nullptr) {
    return "";
  }
  yaml::Node config = *found;
  yaml::Node& file = name_of_file(config);
  const bool beside_study = file.where.line > 0 && !file.where.file.starts_with("--set ");
  file.text = from_result(beside_study ? to_result(file.text, study_file) : file.text, result);
  yaml::erase(*training, {"config"});
  return yaml::flow_text(config);
}

// A result, read whole, and its best run.
class Result {
public:
  explicit Result(const std::string& file) : file_(file), text_(read_file(file)), source_(text_, file_) {
    value_ = json::parse(source_);
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;

  const json::Source& source() const { return source_; }
  const json::Value& value() const { return value_; }

  /// "runs[0]", or "" of one run alone.
  std::string path_of_run() const { return value_.contains("runs") ? "runs[0]" : ""; }
  const json::Value& run() const {
    const auto runs = value_.find("runs");
    if (runs == value_.end()) {
      return value_;
    }
    if (!runs->is_array() || runs->empty()) {
      throw source_.error("runs", "no run; allowed: a result with at least one");
    }
    return runs->front();
  }

private:
  std::string file_, text_;
  json::Source source_;
  json::Value value_;
};

double number_or_zero(const json::Value* value) {
  return value != nullptr && value->is_number() ? value->get<double>() : 0;
}

} // namespace

std::string question_json(const GivenStudy& given, const RunOptions& run, const std::string& result,
                          const std::vector<std::string>& plans, const std::string& plan_format) {
  yaml::Node document = changed_study(given.document, given.settings).document;
  std::vector<Setting> of_inputs; // which change what the study only names
  std::copy_if(given.settings.begin(), given.settings.end(), std::back_inserter(of_inputs), [](const Setting& setting) {
    return setting.key.starts_with("model.") || setting.key.starts_with("platform.");
  });
  if (!plans.empty()) {
    add_plans(document, plans, plan_format);
  }
  const std::string config = remove_config(document, given.file, result);
  try {
    Json question = {{"study", study_text(document, of_inputs, folders_of(given.file), folder_of(result))},
                     {"comparison", given.comparison}};
    if (!config.empty()) {
      question["config"] = config;
    }
    if (!given.comparison) {
      question["strategy"] = run.strategy;
      question["plan"] = from_result(run.plan, result);
      question["plan_format"] = run.plan_format;
      question["schedule"] = is_file(run.schedule) ? from_result(run.schedule, result) : run.schedule;
    }
    return question.dump(1, ' ', false, Json::error_handler_t::replace);
  } catch (const InputError&) { // settings that no study file can say
    return "null";
  }
}

bool is_result(const std::string& file) {
  std::error_code failure;
  if (!file.ends_with(".json") || !fs::is_regular_file(file, failure)) {
    return false;
  }
  constexpr std::size_t kHead = 400;
  std::string head(kHead, '\0');
  std::ifstream(file).read(head.data(), kHead);
  const auto has = [&](const std::string& key) { return head.find('"' + key + '"') != std::string::npos; };
  return has("schema") && has(kSchema) && has("model") && has("platform") && !has("executed");
}

Question question_of(const std::string& file) {
  const Result result(file);
  json::Object top(result.value(), result.source(), "");
  const json::Value* asked = top.find("question");
  if (asked == nullptr || asked->is_null()) {
    throw result.source().error("", "a result that does not keep what it was asked; allowed: one that `compare` or "
                                    "`replay` wrote with -o, or its study");
  }
  json::Object object(*asked, result.source(), "question");
  Question question;
  question.study = yaml::parse(object.text("study", ""), file + ", question.study");
  question.comparison = object.flag("comparison");
  json::Object run(result.run(), result.source(), result.path_of_run());
  question.iteration = Seconds{number_or_zero(run.find("iteration_seconds"))};
  if (question.comparison) {
    question.run.strategy = run.text("strategy", "");
    question.run.schedule = run.text("schedule", "");
    question.micro_batches = run.integer("micro_batches", 1, kMostMicroBatches);
  } else {
    const std::string schedule = object.text("schedule", "");
    question.run = {object.text("strategy", ""), to_result(object.text("plan", ""), file),
                    object.text("plan_format", ""), is_file(schedule) ? to_result(schedule, file) : schedule};
  }
  if (const std::string config = object.text("config", ""); !config.empty()) {
    question.config = yaml::parse(config, "--set training.config");
    yaml::Node& name = name_of_file(*question.config);
    name.text = to_result(name.text, file);
  }
  object.finish();
  return question;
}

std::string plan_of_result(const std::string& file) {
  const Result result(file);
  json::Object run(result.run(), result.source(), result.path_of_run());
  const json::Value* stages = run.find("stages");
  if (stages == nullptr || !stages->is_array() || stages->empty()) {
    throw result.source().error(result.path_of_run(), "a run without stages; allowed: one that is feasible");
  }
  return Json{{"strategy", run.text("strategy", "")}, {"stages", *stages}}.dump();
}

GivenStudy asked_again(const std::string& file, const Question& question, const std::vector<Setting>& settings) {
  std::vector<Setting> all;
  if (question.config) {
    all.push_back({"training.config", "", question.config});
  }
  all.insert(all.end(), settings.begin(), settings.end());
  return study_of_document(question.study, file, all, question.comparison ? Purpose::comparison : Purpose::run);
}

} // namespace stagecraft
