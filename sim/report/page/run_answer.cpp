// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/run_answer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "sim/base/large_count.hpp"
#include "sim/base/units.hpp"
#include "sim/report/page/json_document.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;

std::string counted(long count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// Degrees of a stage; 1 where the document does not say them.
struct Degrees {
  int data, context, tensor, expert;
};
Degrees degrees_of(const json& stage) {
  const json& layout = object_at(stage, "layout");
  return {whole_at(layout, "data", 1), whole_at(layout, "context", 1),
          whole_at(layout, "tensor", whole_at(stage, "tensor_parallel", 1)), whole_at(stage, "expert_parallel", 1)};
}

// How the ranks of one stage share it: "each layer split over 8 GPUs", …
std::string shared_within(const Degrees& degrees, const std::string& device) {
  std::vector<std::string> parts;
  if (degrees.tensor > 1) {
    parts.push_back("each layer split over " + counted(degrees.tensor, device));
  }
  if (degrees.context > 1) {
    parts.push_back("each text cut into " + std::to_string(degrees.context) + " parts");
  }
  if (degrees.expert > 1) {
    parts.push_back("experts spread over " + counted(degrees.expert, device));
  }
  std::string words;
  for (const std::string& part : parts) {
    words += ", " + part;
  }
  return words;
}

// A large number in words: "1.56 billion", "336 million".
std::string large(double number) {
  constexpr std::array<std::pair<double, const char*>, 3> kWords = {
      {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}}};
  for (const auto& [size, word] : kWords) {
    if (number >= size) {
      constexpr int kDigits = 3;
      return to_digits(number / size, kDigits) + word;
    }
  }
  return to_text(number, 0);
}

// The type of a device by its name, "node/TYPE-3".
std::string type_of(const std::string& device) {
  const std::string last = device.substr(device.rfind('/') + 1);
  return last.substr(0, last.rfind('-'));
}

// Free memory of the device that has least of it.
std::optional<AnswerFigure> headroom(const json& document, const json& run) {
  std::map<std::string, double> memory;
  for (const json& type : list_at(object_at(object_at(document, "setting"), "platform"), "types")) {
    memory[text_at(type, "name")] = number_at(type, "memory_bytes");
  }
  std::optional<AnswerFigure> figure;
  double least = std::numeric_limits<double>::infinity();
  const auto see = [&](const std::string& device, double peak) {
    const auto found = memory.find(type_of(device));
    const double left = found == memory.end() ? Mark::kNone : 1 - peak / found->second;
    if (!(left < least)) {
      return;
    }
    least = left;
    figure = {"Memory left", percent(left, 0),
              (number_at(object_at(run, "expected_memory"), "high_bytes") > found->second ? "measured, it may not fit: "
               : left < kTightMemory ? "tight, as predictions of memory are off: "
                                     : "") +
                  to_text(Bytes{found->second - peak}) + " of " + to_text(Bytes{found->second}) +
                  " on the fullest device"};
  };
  const std::vector<std::string> devices = texts_at(run, "devices");
  const std::vector<double> peaks = numbers_at(run, "peak_memory_bytes");
  for (std::size_t at = 0; at < std::min(devices.size(), peaks.size()); ++at) {
    see(devices[at], peaks[at]);
  }
  for (const json& alike : peaks.empty() ? list_at(run, "classes") : json::array()) {
    const std::vector<std::string> names = texts_at(alike, "devices");
    if (!names.empty()) {
      see(names.front(), number_at(alike, "peak_memory_bytes"));
    }
  }
  return figure;
}

// Days and money of the whole training, where its tokens are known.
std::optional<AnswerFigure> training_figure(const json& run) {
  const json& whole = object_at(run, "whole_training");
  const double seconds = number_at(whole, "seconds"), usd = number_at(whole, "usd");
  if (!(seconds > 0)) {
    return {};
  }
  return AnswerFigure{"The whole training",
                      with_commas(seconds / kSecondsOfDay) + " days" +
                          (usd > 0 ? ", " + with_commas(std::round(usd)) + " USD" : std::string()),
                      text_at(whole, "in_words")};
}

std::optional<AnswerFigure> cost_figure(const RunValues& values) {
  const double million = values.of(metric("usd_per_million_samples"));
  if (!(million > 0)) {
    return {};
  }
  const double tokens = values.of(metric("tokens_per_second")), samples = values.of(metric("samples_per_second"));
  const std::string mark = values.of(metric("assumed_cost_share")) > 0 ? kAssumedMark : "";
  const double hourly = million / 1e6 * samples * kSecondsOfHour;
  const std::string detail =
      mark + to_text(Dollars{hourly}) + " per hour" + (mark.empty() ? "" : "; ~ rests on an assumed price");
  if (tokens > 0) {
    const double billion = million / 1e6 * samples / tokens * 1e9, hours = 1e9 / tokens / kSecondsOfHour;
    const bool days = hours > 48;
    return AnswerFigure{"A billion tokens", mark + to_text(Dollars{billion}),
                        "in " + to_text(days ? hours / 24 : hours, 1) + (days ? " days; " : " hours; ") + detail};
  }
  return AnswerFigure{"A million samples", mark + to_text(Dollars{million}), detail};
}

AnswerFigure rate_figure(const RunValues& values) {
  const double tokens = values.of(metric("tokens_per_second"));
  if (tokens > 0) {
    return {"Tokens per second", with_commas(tokens),
            with_commas(values.of(metric("tokens_per_device_second"))) + " per device"};
  }
  return {"Samples per second", with_commas(values.of(metric("samples_per_second"))), ""};
}

} // namespace

std::string device_word(const json& document) {
  const json& types = list_at(object_at(object_at(document, "setting"), "platform"), "types");
  const bool all = std::all_of(types.begin(), types.end(), [](const json& type) {
    const std::string vendor = text_at(type, "vendor");
    return vendor == "nvidia" || vendor == "amd";
  });
  return all && !types.empty() ? "GPU" : "device";
}

std::string distance_in_words(double over_bound) {
  constexpr double kFar = 1;
  return over_bound < kFar ? percent(over_bound, over_bound < 0.01 ? 1 : 0) + " from the proven limit"
                           : to_text(1 + over_bound, 1) + " times the proven limit";
}

std::string count_of_devices(std::size_t count, const std::string& device) {
  return count == 1 ? "one " + device : std::to_string(count) + " " + device + "s";
}

std::string plan_in_words(const json& run, const std::string& device) {
  const json& stages = list_at(run, "stages");
  std::set<std::vector<std::string>> places; // a place of several stages is one station of the pipeline
  for (const json& stage : stages) {
    places.insert(texts_at(stage, "devices"));
  }
  if (stages.empty()) {
    return "";
  }
  const Degrees degrees = degrees_of(stages.front());
  const std::size_t devices = list_at(run, "devices").size();
  if (devices == 1) {
    return "a whole model on one " + device;
  }
  const int zero = whole_at(object_at(stages.front(), "layout"), "zero", 0);
  const bool weights = zero == 3; // no device holds a whole copy
  const std::string copies =
      degrees.data > 1 ? std::to_string(degrees.data) + (weights ? " replicas that share " : " copies of ") : "";
  const bool pipeline = places.size() > 1;
  std::string words = copies + (pipeline           ? "a pipeline of " + std::to_string(places.size()) + " stages"
                                : degrees.data > 1 ? "the whole model"
                                                   : "one model");
  static constexpr std::array kShared = {"", "which share the optimiser's states (ZeRO 1)",
                                         "which share gradients and states (ZeRO 2)", "ZeRO 3, as FSDP"};
  return words + shared_within(degrees, device) +
         (degrees.data > 1 && zero > 0 ? std::string(", ") + kShared.at(static_cast<std::size_t>(std::min(zero, 3)))
                                       : "");
}

std::optional<TimeRange> range_of_run(const json& run, const RunValues& values) {
  const json& expected = object_at(run, "expected");
  if (const double low = number_at(expected, "low_seconds"); low > 0) {
    return TimeRange{low, number_at(expected, "high_seconds"), "in nine of ten measured runs"};
  }
  if (const double low = values.of(metric("confidence_p5_seconds")); low > 0) {
    return TimeRange{low, values.of(metric("confidence_p95_seconds")), "in nine of ten draws of kernel errors"};
  }
  if (const double low = values.of(metric("perturbed_p5_seconds")); low > 0) {
    return TimeRange{low, values.of(metric("perturbed_p95_seconds")), "in nine of ten disturbed worlds"};
  }
  return {};
}

std::vector<AnswerFigure> figures_of_run(const json& document, const json& run, const RunValues& values) {
  const int batch = whole_at(document, "global_batch",
                             whole_at(object_at(object_at(document, "setting"), "training"), "global_batch", 0));
  AnswerFigure time{"Time per step", to_text(Seconds{values.iteration()}),
                    batch > 0 ? counted(batch, "sample") : std::string()};
  if (const auto range = range_of_run(run, values)) {
    time.detail = to_text(Seconds{range->low}) + " to " + to_text(Seconds{range->high}) + " " + range->words;
  }
  std::vector<AnswerFigure> figures = {std::move(time), rate_figure(values)};
  if (const double mfu = values.of(metric("mfu")); mfu > 0) {
    figures.push_back({"MFU", percent(mfu, 1), "of the devices' peak reaches the model"});
  }
  for (std::optional<AnswerFigure>& figure :
       std::array{training_figure(run), cost_figure(values), headroom(document, run)}) {
    if (figure) {
      figures.push_back(std::move(*figure));
    }
  }
  if (const double power = values.of(metric("mean_power_watts")); power > 0) {
    figures.push_back(
        {"Power", to_text(Watts{power}), to_text(Joules{values.of(metric("joules_per_sample"))}) + " per sample"});
  }
  return figures;
}

std::vector<AnswerBasis> basis_of_run(const json& document, const json& run, const std::string& prices) {
  const json& setting = object_at(document, "setting");
  const json &model = object_at(setting, "model"), &training = object_at(setting, "training"),
             &platform = object_at(setting, "platform");
  std::vector<AnswerBasis> basis;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      basis.push_back({name, value});
    }
  };
  const double parameters = number_at(model, "parameters");
  add("Model",
      text_at(document, "model") + (parameters > 0 ? ", " + large(parameters) + " parameters" : std::string()));
  const int batch = whole_at(document, "global_batch", whole_at(training, "global_batch", 0));
  const int parts = whole_at(run, "micro_batches", 1);
  add("Plan in degrees", text_at(run, "plan"));
  add("Batch", batch > 0 ? counted(batch, "sample") + " in " + std::to_string(parts) +
                               (parts == 1 ? " micro-batch" : " micro-batches")
                         : "");
  const std::string framework = text_at(training, "framework");
  add("Training", text_at(training, "precision").empty()
                      ? ""
                      : text_at(training, "precision") + ", " + text_at(training, "optimizer") +
                            (framework.empty() ? "" : ", as " + framework + " does it"));
  CostBasis kernels;
  const json& shares = object_at(run, "cost_basis");
  for (std::size_t source = 0; source < kCostSources.size(); ++source) {
    const double share = number_at(shares, std::string(kCostSources.at(source).name).c_str());
    kernels.shares.at(source) = std::isfinite(share) ? share : 0;
  }
  kernels.shares[static_cast<std::size_t>(CostSource::profile)] -= kernels.of(CostSource::scaled_profile);
  const auto whole = std::find(kernels.shares.begin(), kernels.shares.end(), 1.0);
  add("Kernel times", whole == kernels.shares.end()
                          ? in_words(kernels)
                          : "all from " + std::string(kCostSources.at(whole - kernels.shares.begin()).words));
  const std::string program = text_at(setting, "program"), date = text_at(object_at(document, "timing"), "date");
  add("Made by", (program.empty() ? "" : "Stagecraft " + program + ", engine " + text_at(run, "engine")) +
                     (date.empty() ? "" : (program.empty() ? "" : ", ") + date));
  const std::string machine = text_at(platform, "description");
  add("Machine", text_at(document, "platform") + (machine.empty() ? "" : ": " + machine));
  add("Prices", prices.starts_with("Prices: ") ? prices.substr(std::string("Prices: ").size()) : prices);
  return basis;
}

std::string price_remark_of(const json& runs) {
  std::vector<NamedPrice> prices;
  for (const json& run : runs) {
    for (const json& one : list_at(run, "prices")) {
      add_prices(prices,
                 std::array{NamedPrice{text_at(one, "of"),
                                       {.rate = DollarsPerSecond{number_at(one, "usd_per_hour") / kSecondsOfHour},
                                        .source = text_at(one, "source"),
                                        .date = text_at(one, "date"),
                                        .assumed = one.value("assumed", false)}}});
    }
  }
  return price_remark(prices);
}

} // namespace stagecraft
