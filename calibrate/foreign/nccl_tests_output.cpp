// SPDX-License-Identifier: Apache-2.0
#include "calibrate/foreign/nccl_tests_output.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

#include "sim/base/format/json.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::foreign {
namespace {

struct Word {
  std::string text;
  Where where;
};

std::vector<Word> words_of(std::string_view line, const std::string& file, int number) {
  std::vector<Word> words;
  for (std::size_t at = line.find_first_not_of(" \t\r"); at != std::string_view::npos;
       at = line.find_first_not_of(" \t\r", at)) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back({std::string(line.substr(at, end - at)), {file, number, static_cast<int>(at) + 1}});
    at = end;
  }
  return words;
}

// Iterations and ranks that a file may state, and threads and devices of one process: their product is a number of
// ranks.
constexpr int kMostCounted = 1 << 20, kMostOfProcess = 1 << 10;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Reads text output line by line.
class TextReader {
public:
  explicit TextReader(const std::string& file) : file_(file) {}

  NcclTestsRun read(std::string_view text) {
    int number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::vector<Word> words = words_of(text.substr(at, end - at), file_, ++number);
      at = end + 1;
      if (!words.empty()) {
        words.front().text.starts_with('#') ? comment(words) : row(words);
      }
    }
    return std::move(run_);
  }

private:
  // The word after a name, as 4 in "nGpus 4"; the name does not count after "warmup" or "agg".
  static const Word* after(const std::vector<Word>& words, std::string_view name) {
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      const std::string& before = words[i - 1].text;
      if (words[i].text == name && before != "warmup" && before != "agg") {
        return &words[i + 1];
      }
    }
    return nullptr;
  }

  static int count_after(const std::vector<Word>& words, std::string_view name, int most) {
    const Word* word = after(words, name);
    return word != nullptr ? parse_integer(word->text, 1, most, word->where) : 1;
  }

  void comment(const std::vector<Word>& words) {
    if (const Word* version = after(words, "version"); version != nullptr && words.size() > 2) {
      run_.version = version->text;
    } else if (const Word* program = after(words, "starting:"); program != nullptr) {
      run_.program = program->text;
      run_.program_where = program->where;
    } else if (after(words, "nGpus") != nullptr) {
      run_.processes_ranks =
          count_after(words, "nThread", kMostOfProcess) * count_after(words, "nGpus", kMostOfProcess);
      run_.iterations = count_after(words, "iters:", kMostCounted);
    } else if (words.size() > 10 && words[1].text == "Rank") {
      rank(words);
    } else if (words.size() > 2 && words[1].text == "size" && words[2].text == "count") {
      header(words);
    }
  }

  // Reads "#  Rank  0 Group  0 Pid  6899 on host device  0 [0000:04:00] NVIDIA H100 80GB HBM3". Versions without groups
  // have [0x04].
  void rank(const std::vector<Word>& words) {
    const Word* group = after(words, "Group");
    if (group != nullptr && group->text != "0") {
      return; // each group runs the collective separately; only the first counts
    }
    ++run_.ranks;
    if (const Word* host = after(words, "on"); host != nullptr) {
      run_.hosts.insert(host->text);
    }
    if (run_.device.empty()) {
      const auto bracket =
          std::find_if(words.begin(), words.end(), [](const Word& w) { return w.text.ends_with(']'); });
      for (auto word = bracket; word != words.end() && ++word != words.end();) {
        run_.device += (run_.device.empty() ? "" : " ") + word->text;
      }
    }
  }

  void header(const std::vector<Word>& words) {
    columns_.clear();
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].text == "cputime") {
        throw InputError(words[i].where, "times of the processor that launched (-C), not of the collective; allowed: "
                                         "time");
      }
      columns_.push_back(words[i].text);
    }
  }

  // The cell of a column, which exists twice: first out of place, then in place.
  const Word& cell(const std::vector<Word>& words, std::string_view column, std::size_t which) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == column && which-- == 0) {
        return words[i];
      }
    }
    throw InputError(words.front().where, "the header has no column '" + std::string(column) + "'");
  }

  void row(const std::vector<Word>& words) {
    static const std::set<std::string> kTypes = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                                 "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
    const bool like_a_row = is_number(words.front().text) || (words.size() > 2 && kTypes.contains(words[2].text));
    if (!like_a_row || (columns_.empty() && words.size() < 8)) {
      return; // other output of the job
    }
    if (columns_.empty()) {
      throw InputError(words.front().where, "results before the header '#  size  count  type …'; allowed: the whole "
                                            "output of nccl-tests");
    }
    if (words.size() < columns_.size()) {
      throw InputError(words.back().where, "the line ends after " + std::to_string(words.size()) +
                                               " values; allowed: the " + std::to_string(columns_.size()) +
                                               " of the header");
    }
    for (const bool in_place : {false, true}) {
      result(words, in_place);
    }
  }

  static double number(const Word& word) { return parse_number(word.text, word.where); }

  void result(const std::vector<Word>& words, bool in_place) {
    const std::size_t which = in_place ? 1 : 0;
    const Word& time = cell(words, "time", which);
    NcclTestsResult result{.where = time.where, .in_place = in_place};
    result.size = Bytes{number(cell(words, "size", 0))};
    result.time.median = Seconds{number(time) * 1e-6};
    result.time.samples = run_.iterations;
    result.algorithm_bandwidth = number(cell(words, "algbw", which));
    result.bus_bandwidth = number(cell(words, "busbw", which));
    constexpr double kTwoDecimals = 0.005, kFourDigits = 0.0005;
    result.rounding = std::max(kTwoDecimals, kFourDigits * result.bus_bandwidth);
    const bool counted = std::find(columns_.begin(), columns_.end(), "#wrong") != columns_.end();
    const Word* wrong = counted ? &cell(words, "#wrong", which) : nullptr;
    result.wrong = wrong == nullptr || wrong->text == "N/A" ? 0 : number(*wrong);
    run_.results.push_back(std::move(result));
  }

  const std::string& file_;
  std::vector<std::string> columns_;
  NcclTestsRun run_;
};

// Reads the file of --json, version 2, which nccl-tests 2.17 writes.
class JsonReader {
public:
  explicit JsonReader(const json::Source& source) : source_(source) {}

  NcclTestsRun read() {
    const json::Value value = json::parse(source_);
    json::Object document(value, source_, "");
    run_.program_where = source_.place("args");
    if (const json::Value* words = document.find("args"); words != nullptr && words->is_array() && !words->empty()) {
      run_.program = words->front().is_string() ? words->front().get<std::string>() : "";
    }
    config(document.value("config"));
    const json::Value& results = document.list("results");
    for (std::size_t i = 0; i < results.size(); ++i) {
      row(results[i], "results[" + std::to_string(i) + "]");
    }
    return std::move(run_);
  }

private:
  // The file lists only one device of each process.
  void config(const json::Value& value) {
    json::Object object(value, source_, "config");
    run_.processes_ranks = object.integer("nthreads", 1, kMostOfProcess) * object.integer("ngpus", 1, kMostOfProcess);
    run_.iterations = object.integer("iterations", 1, kMostCounted);
    const json::Value& devices = object.list("devices");
    for (std::size_t i = 0; i < devices.size(); ++i) {
      json::Object device(devices[i], source_, "config.devices[" + std::to_string(i) + "]");
      if (device.integer("group", 0) == 0) {
        run_.ranks += run_.processes_ranks;
        if (run_.ranks > kMostCounted) {
          throw InputError(source_.place("config.devices[" + std::to_string(i) + "]"),
                           "more than " + std::to_string(kMostCounted) + " ranks with this process; allowed: so many");
        }
        run_.hosts.insert(device.text("hostname", ""));
        run_.device = run_.device.empty() ? device.text("device_info", "") : run_.device;
      }
    }
  }

  void row(const json::Value& value, const std::string& path) {
    json::Object object(value, source_, path);
    const double size = object.amount("size");
    for (const bool in_place : {false, true}) {
      const std::string key = in_place ? "in_place" : "out_of_place";
      const json::Value* part = object.find(key);
      if (part == nullptr || part->is_null()) {
        continue;
      }
      json::Object body(*part, source_, object.path(key));
      if (body.has("cpu_time")) {
        throw body.error("cpu_time", "times of the processor that launched (-C), not of the collective; allowed: time");
      }
      NcclTestsResult result{
          .where = {source_.file(), 0, 0}, .path = object.path(key), .size = Bytes{size}, .in_place = in_place};
      result.time = {.median = Seconds{body.amount("time") * 1e-6},
                     .samples = object.has("actual_iterations") ? std::max(1, object.integer("actual_iterations", 0))
                                                                : run_.iterations};
      result.algorithm_bandwidth = body.amount("alg_bw");
      result.bus_bandwidth = body.amount("bus_bw");
      result.rounding = 1e-5 + 1e-5 * result.bus_bandwidth;
      const json::Value* wrong = body.find("nwrong");
      result.wrong = wrong == nullptr || wrong->is_null() ? 0 : body.amount("nwrong");
      if (const json::Value* each = object.find(key + "_per_iter"); each != nullptr && each->is_object()) {
        result.time = times_of(*each, object.path(key + "_per_iter"));
        run_.medians = true;
      }
      run_.results.push_back(std::move(result));
    }
  }

  // The times of single iterations, if they were recorded.
  SampledTime times_of(const json::Value& value, const std::string& path) const {
    json::Object object(value, source_, path);
    std::vector<double> seconds;
    for (const json::Value& time : object.list("times_us")) {
      if (!time.is_number() || time.get<double>() <= 0) {
        throw object.error("times_us", "must be numbers of more than 0, got " + excerpt(time.dump()));
      }
      seconds.push_back(time.get<double>() * 1e-6);
    }
    if (seconds.empty()) {
      throw object.error("times_us", "is empty; allowed: a time per iteration");
    }
    return sampled(std::move(seconds));
  }

  const json::Source& source_;
  NcclTestsRun run_;
};

} // namespace

NcclTestsRun read_nccl_tests(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  return is_json ? JsonReader({text, file}).read() : TextReader(file).read(text);
}

} // namespace stagecraft::foreign
