// The pages of a single run and of an explanation.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/run_answer.hpp"
#include "sim/report/page/run_values.hpp"
#include "sim/result/run.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

std::string joined(const std::vector<std::string>& texts, std::size_t most) {
  std::string text;
  for (std::size_t at = 0; at < std::min(most, texts.size()); ++at) {
    text += (at == 0 ? "" : ", ") + texts[at];
  }
  return texts.size() > most ? text + " and " + std::to_string(texts.size() - most) + " more" : text;
}

PageTable stages_of(const json& run) {
  PageTable table{
      .title = "Stages",
      .columns = {"stage", "devices", "operators", "first", "last", "time per micro-batch [s]", "recompute"}};
  for (const json& stage : list_at(run, "stages")) {
    constexpr std::size_t kNames = 4;
    const std::vector<std::string> operators = texts_at(stage, "operators");
    const auto number = static_cast<double>(table.rows.size());
    table.rows.push_back({number_cell(number),
                          {joined(texts_at(stage, "devices"), kNames)},
                          number_cell(static_cast<double>(operators.size())),
                          {operators.empty() ? "" : operators.front()},
                          {operators.empty() ? "" : operators.back()},
                          number_cell(number_at(stage, "seconds")),
                          {text_at(stage, "recompute")}});
  }
  return table;
}

/// Devices that one bar stands for, and their value.
struct DeviceBar {
  std::string node, first;
  std::size_t devices = 1;
  double value = 0;
};

// "node" of "node/h100-0"; the whole name where it has no node.
std::string node_of_device(const std::string& device) { return device.substr(0, device.find('/')); }

// A bar for each device; of many, one for all devices of a node whose values are equal to three digits.
std::vector<DeviceBar> bars_of_devices(const std::vector<std::string>& devices, const std::vector<double>& values) {
  constexpr std::size_t kMany = 16;
  constexpr int kDigits = 3;
  const std::size_t count = std::min(devices.size(), values.size());
  std::vector<DeviceBar> bars;
  std::map<std::pair<std::string, std::string>, std::size_t> bar_of; // node and value
  for (std::size_t d = 0; d < count; ++d) {
    const std::string node = node_of_device(devices[d]);
    const auto [found, fresh] = bar_of.try_emplace({node, to_digits(values[d], kDigits)}, bars.size());
    if (fresh || count <= kMany) {
      bars.push_back({node, devices[d], 1, values[d]});
    } else {
      ++bars[found->second].devices;
    }
  }
  return bars;
}

// "node-0: 8 devices" where a bar stands for all devices of its node, else "node-0/h100-0 x 4", or the one device.
std::string name_of_bar(const DeviceBar& bar, const std::vector<DeviceBar>& bars) {
  const auto of_node =
      std::count_if(bars.begin(), bars.end(), [&](const DeviceBar& one) { return one.node == bar.node; });
  const std::string count = std::to_string(bar.devices);
  return bar.devices == 1 ? bar.first : of_node == 1 ? bar.node + ": " + count + " devices" : bar.first + " x " + count;
}

// A bar per device or group of devices that are alike, in the unit of the axis.
Chart device_bars(const json& run, const Metric& metric, const char* name, const std::string& title,
                  const std::string& unit) {
  constexpr std::size_t kMost = 64;
  const std::string key(metric.path());
  std::vector<std::pair<std::string, double>> parts;
  const std::vector<DeviceBar> bars = bars_of_devices(texts_at(run, "devices"), numbers_at(run, key.c_str()));
  for (std::size_t bar = 0; bar < std::min(bars.size(), kMost); ++bar) {
    parts.emplace_back(name_of_bar(bars[bar], bars), bars[bar].value * metric.scale);
  }
  const json& classes = list_at(run, "classes");
  for (std::size_t c = 0; bars.empty() && c < std::min(classes.size(), kMost); ++c) {
    const std::vector<std::string> alike = texts_at(classes[c], "devices");
    parts.emplace_back((alike.empty() ? "" : alike.front()) +
                           (alike.size() > 1 ? " x " + std::to_string(alike.size()) : ""),
                       number_at(classes[c], key.c_str()) * metric.scale);
  }
  const std::size_t all = bars.empty() ? classes.size() : bars.size();
  return bars_of(name, title + (all > kMost ? ", the first 64 of " + std::to_string(all) + " bars" : ""), unit, parts);
}

// The step of the device that computes longest, as a sum; no marks where the document does not list devices.
Chart busiest_device(const json& run) {
  const std::vector<std::string> devices = texts_at(run, "devices");
  const std::vector<double> busy = numbers_at(run, "utilization"),
                            exposed = numbers_at(run, "exposed_communication_seconds");
  const double iteration = number_at(run, "iteration_seconds");
  const bool explained = run.contains("explanation"); // which has a better one, of the whole pipeline
  if (busy.empty() || busy.size() != exposed.size() || devices.size() != busy.size() || explained) {
    return bars_of("busiest-device", "", "[s]", {});
  }
  const auto at = static_cast<std::size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
  const double computing = busy[at] * iteration, waiting = std::min(exposed[at], iteration - computing);
  return waterfall_of("busiest-device", "A step of the busiest device, " + devices[at], "[s]",
                      {{"computing", computing, true},
                       {"waiting for data already sent", waiting, false},
                       {"idle: its turn has not come (bubble)", iteration - computing - waiting, false}},
                      "the whole step");
}

// " of MODEL on PLATFORM", as far as the document names them.
std::string of_model(const json& document) {
  const std::string model = text_at(document, "model"), platform = text_at(document, "platform");
  return (model.empty() ? "" : " of " + model) + (platform.empty() ? "" : " on " + platform);
}

// What the card says of a run: how it is trained, and how fast.
Answer answer_of(const json& run, const RunValues& values) {
  const std::string device = device_word(run);
  Answer answer{values.label() + of_model(run) + " does not fit: " + text_at(run, "why_not") + "."};
  if (values.feasible) {
    const double over = values.of(metric("over_bound"));
    const bool bounded = std::isfinite(over) && values.of(metric("lower_bound_seconds")) > 0;
    const std::string model = text_at(run, "model"), plan = plan_in_words(run, device);
    answer.sentence = (model.empty() ? "Training" : "Training " + model) + " on " +
                      count_of_devices(list_at(run, "devices").size(), device) + (plan.empty() ? "" : " as " + plan) +
                      " takes " + to_text(Seconds{values.iteration()}) + " per step" +
                      (bounded ? ", " + distance_in_words(over) + "." : ".");
    answer.figures = figures_of_run(run, run, values);
    answer.sure = range_of_run(run, values) ? ""
                                            : "How far off the time may be is not known: this is one replay, without "
                                              "draws of errors; `stagecraft compare --confidence` draws them.";
  }
  answer.basis = basis_of_run(run, run, price_remark_of(json::array({run})));
  answer.basis.insert(answer.basis.begin(), {"Plan", values.label()});
  return answer;
}

std::vector<std::string> sentences_of(const RunValues& values) {
  if (!values.feasible) {
    return {};
  }
  std::vector<std::string> sentences = {
      "Devices are idle or waiting " + percent(values.of(metric("bubble_fraction")), 1) +
      " of the time; the fullest holds " + to_text(Bytes{values.of(metric("peak_memory_bytes"))}) + " at its peak."};
  const double bound = values.of(metric("lower_bound_seconds")), over_bound = values.of(metric("over_bound"));
  if (std::isfinite(over_bound) && bound > 0) {
    sentences.push_back("No plan whose kernels and iterations overlap no more can take less than " +
                        to_text(Seconds{bound}) + "; this one takes " + percent(over_bound, 0) + " more.");
  }
  if (!values.remarks.empty()) {
    sentences.push_back(values.remarks + ".");
  }
  return sentences;
}

// What a document says of a metric, also one of an older program: NaN where it says nothing.
double number_of(const json& run, const Metric& metric) {
  const json* above = &run;
  std::string key(metric.path());
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.')) {
    const auto found = above->find(key.substr(0, dot));
    if (found == above->end()) {
      return Mark::kNone;
    }
    above = &*found;
    key.erase(0, dot + 1);
  }
  switch (metric.shape) {
  case MetricShape::number:
  case MetricShape::count:
    break;
  case MetricShape::length:
    return static_cast<double>(list_at(*above, key.c_str()).size());
  case MetricShape::per_device:
  case MetricShape::largest: {
    std::vector<double> values = numbers_at(*above, key.c_str());
    for (const json& alike : metric.shape == MetricShape::per_device ? list_at(run, "classes") : json::array()) {
      values.push_back(number_at(alike, key.c_str()));
    }
    const double none = metric.shape == MetricShape::largest ? 0 : Mark::kNone;
    return values.empty() ? none : *std::max_element(values.begin(), values.end());
  }
  }
  return number_at(*above, key.c_str());
}

RunRecompute read_recompute(const json& run) {
  const auto found = run.find("recompute");
  if (found == run.end() || !found->is_object()) {
    return {};
  }
  return {.what = found->value("what", "none"),
          .rule = {.early = found->value("when", "early") == "early",
                   .skip_after_own_forward = found->value("skip_after_forward", false),
                   .except_last_micro_batch = found->value("except_last", false)},
          .blocks = whole_at(*found, "blocks", 0)};
}

// The fields of a run that remarks are made from.
Run remarked(const json& run) {
  Run one;
  one.note = text_at(run, "note");
  one.staleness = numbers_at(run, "staleness");
  one.recompute = read_recompute(run);
  return one;
}

// Causes that are computing; all others are time lost to something.
bool is_work(const std::string& cause) {
  constexpr std::array<std::string_view, 5> kWork = {"forward", "backward", "weight", "recompute", "optimizer"};
  return std::find(kWork.begin(), kWork.end(), cause) != kWork.end();
}

Answer answer_of_explanation(const json& explanation, const std::string& title) {
  double work = 0, most = 0, sum = 0;
  std::string cause;
  for (const json& share : list_at(explanation, "shares")) {
    const double seconds = number_at(share, "seconds");
    sum += seconds;
    if (is_work(text_at(share, "cause"))) {
      work += seconds;
    } else if (seconds > most) {
      most = seconds;
      cause = text_at(share, "cause");
    }
  }
  const double told = number_at(explanation, "iteration_seconds"), iteration = std::isfinite(told) ? told : sum;
  Answer answer{"In a step of " + title + " devices compute " + percent(work / iteration, 0) + " of the time" +
                (cause.empty() ? "" : "; most is lost to " + cause + ", " + percent(most / iteration, 0)) + "."};
  answer.figures = {{"Time per step", to_text(Seconds{iteration})}, {"Computing", to_text(Seconds{work})}};
  if (!cause.empty()) {
    answer.figures.push_back({"Lost to " + cause, to_text(Seconds{most})});
  }
  if (const json& helps = list_at(explanation, "sensitivities"); !helps.empty()) {
    answer.figures.push_back({"What would help", percent(-number_at(helps.front(), "change"), 1) + " less",
                              "with " + text_at(helps.front(), "part") + " 10 % faster"});
  }
  return iteration > 0 ? answer : Answer{};
}

} // namespace

std::string recompute_of(const json& run) { return to_text(read_recompute(run)); }

RunValues run_values(const json& run) {
  RunValues values{.strategy = text_at(run, "strategy"),
                   .schedule = text_at(run, "schedule"),
                   .order = text_at(run, "order"),
                   .micro_batches = whole_at(run, "micro_batches", 1),
                   .feasible = run.value("feasible", false),
                   .is_exact = numbers_at(run, "staleness").empty()};
  values.remarks = values.feasible ? join(remarks_of(remarked(run)), "; ") : text_at(run, "why_not");
  if (const std::string fits = text_at(run, "would_fit"); !fits.empty()) {
    values.remarks += "; would fit with " + fits;
  }
  values.plan = text_at(run, "plan");
  for (std::size_t at = 0; at < kMetrics.size(); ++at) {
    values.figures.at(at) = number_of(run, kMetrics.at(at));
  }
  return values;
}

PageSection devices_section(const json& run, const std::string& title) {
  PageSection section{.title = title, .sentences = {}};
  section.charts = {
      busiest_device(run),
      device_bars(run, metric("utilization"), "utilization", "Busy", std::string(metric("utilization").heading)),
      device_bars(run, metric("exposed_communication_seconds"), "exposed", "Waiting for data already sent", "[s]"),
      device_bars(run, metric("peak_memory_bytes"), "peak-memory", "Peak memory", "[GiB]")};
  std::erase_if(section.charts, [](const Chart& chart) { return chart.series.front().marks.empty(); });
  section.tables = {stages_of(run)};
  return section;
}

PageSection explanation_section(const json& explanation, const std::string& title) {
  PageSection section{.title = title, .sentences = texts_at(explanation, "summary")};
  std::vector<WaterfallPart> shares;
  std::vector<std::pair<std::string, double>> helps, path;
  for (const json& share : list_at(explanation, "shares")) {
    const std::string cause = text_at(share, "cause");
    shares.push_back({cause, number_at(share, "seconds"), is_work(cause)});
  }
  for (const json& help : list_at(explanation, "sensitivities")) {
    constexpr std::size_t kShown = 12;
    if (helps.size() < kShown) {
      helps.emplace_back(text_at(help, "part"), -100 * number_at(help, "change"));
    }
  }
  double others = 0;
  for (const json& step : list_at(explanation, "critical_path")) {
    constexpr std::size_t kShown = 12;
    if (path.size() < kShown) {
      path.emplace_back(text_at(step, "what"), number_at(step, "seconds"));
    } else {
      others += number_at(step, "seconds");
    }
  }
  if (others > 0) {
    path.emplace_back("all others", others);
  }
  std::vector<std::pair<std::string, double>> communication;
  for (const json& one : list_at(explanation, "communication")) {
    const std::string axis = text_at(one, "axis");
    communication.emplace_back(axis + ", exposed", number_at(one, "exposed_seconds"));
    communication.emplace_back(axis + ", hidden", number_at(one, "hidden_seconds"));
    communication.emplace_back(axis + ", waiting for peers", number_at(one, "waiting_for_peers_seconds"));
  }
  section.charts = {waterfall_of("shares", "Where the time of a step goes, from computing to what is lost", "[s]",
                                 shares, "the whole step"),
                    bars_of("communication", "Communication, mean over devices", "[s]", communication),
                    bars_of("critical-path", "What the critical path is made of", "[s]", path),
                    bars_of("sensitivities", "With this part 10 % faster", "less time per step [%]", helps)};
  std::erase_if(section.charts, [](const Chart& chart) { return chart.series.front().marks.empty(); });
  return section;
}

DocumentPage run_page(const JsonDocument& document) {
  const json& run = document.json();
  const RunValues values = run_values(run);
  PageSection findings{.title = "Findings", .sentences = sentences_of(values)};
  const std::string title = values.label() + of_model(run);
  PageSection timeline{.title = "Timeline", .sentences = {}};
  add_timeline(document, run, title, timeline.timelines);
  DocumentPage page{title, {std::move(findings)}, {}, answer_of(run, values)};
  const Tracks* tracks = timeline.timelines.empty() ? nullptr : &timeline.timelines.front().tracks;
  if (std::optional<PagePlan> plan = values.feasible ? plan_picture(run, run, tracks) : std::nullopt) {
    page.sections.push_back({.title = "The plan on the machines", .sentences = {}});
    page.sections.back().plans.push_back(std::move(*plan));
  }
  if (!timeline.timelines.empty()) {
    page.sections.push_back(std::move(timeline));
  }
  if (values.feasible) {
    page.sections.push_back(devices_section(run, "Devices and stages"));
  }
  return page;
}

DocumentPage explanation_page(const JsonDocument& document) {
  const json& json = document.json();
  const std::string title = text_at(json, "strategy") + ", " + text_at(json, "schedule") + of_model(json);
  const std::string plan = " (" + text_at(json, "strategy") + ", " + text_at(json, "schedule") + ")";
  const std::string model = text_at(json, "model"), platform = text_at(json, "platform");
  Answer answer = answer_of_explanation(json.at("explanation"), (model.empty() ? "training" : model) +
                                                                    (platform.empty() ? "" : " on " + platform) + plan);
  PageSection section = explanation_section(json.at("explanation"), "What holds the run back");
  if (!answer.sentence.empty() && !section.sentences.empty()) {
    section.sentences.erase(section.sentences.begin()); // the card says it
  }
  return {title, {std::move(section)}, {}, std::move(answer)};
}

} // namespace stagecraft
