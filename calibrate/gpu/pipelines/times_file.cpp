// Writes and reads the times of a pipeline as text. docs/formats/pipeline.md.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "calibrate/gpu/pipelines/carry_out.hpp"
#include "calibrate/gpu/pipelines/line_reader.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::string_view kTimesHead = "stagecraft-times";
constexpr std::string_view kTimesLines = "pipeline, failed, condition, gap, alone, slowdown, beside, hop, span, end";
constexpr int kMostTimes = 1 << 30;

// Requires that lines of one kind are numbered from 0 without gaps.
void expect_next(KeyedLine& line, std::string_view key, std::size_t next) {
  const auto number = static_cast<std::int64_t>(next);
  line.integer(key, number, number);
}

void read_times_line(KeyedLine& line, std::string_view what, CarriedOut& carried) {
  MeasuredParts& parts = carried.parts;
  if (what == "pipeline") {
    carried.pipeline = line.word("sixteen hexadecimal digits");
  } else if (what == "failed") {
    carried.failure = line.rest();
  } else if (what == "condition") {
    const std::string name(line.word("a name"));
    carried.conditions.emplace_back(name, line.rest());
  } else if (what == "gap") {
    line.read_keys();
    parts.gap = line.amount("seconds");
  } else if (what == "alone") {
    line.read_keys();
    expect_next(line, "work", parts.alone.size());
    parts.alone.push_back(line.amount("seconds"));
  } else if (what == "slowdown") {
    line.read_keys();
    expect_next(line, "device", parts.slowdowns.size());
    parts.slowdowns.push_back(line.amount("factor"));
  } else if (what == "beside") {
    line.read_keys();
    const auto works = static_cast<std::int64_t>(parts.alone.size());
    parts.contention.resize(parts.alone.size() * parts.alone.size(), 1);
    const std::int64_t work = line.integer("work", 0, works - 1);
    const std::int64_t other = line.integer("other", 0, works - 1);
    parts.contention[static_cast<std::size_t>(work * works + other)] = line.amount("factor");
  } else if (what == "hop") {
    line.read_keys();
    const auto work =
        static_cast<std::size_t>(line.integer("work", static_cast<std::int64_t>(parts.hops.size()), kMostTimes));
    parts.hops.resize(work + 1);
    parts.hops[work] = line.amounts("seconds");
  } else if (what == "span") {
    line.read_keys();
    constexpr std::int64_t kLongest = std::int64_t{1} << 53; // nanoseconds; a double represents all integers up to this
    const std::int64_t start = line.integer("start", 0, kLongest);
    carried.spans.push_back({start, line.integer("finish", start, kLongest)});
  } else {
    line.refuse("unknown line '" + std::string(what) + "'; allowed: " + std::string(kTimesLines), what);
  }
}

} // namespace

std::string to_text(const CarriedOut& carried) {
  std::string text = std::string(kTimesHead) + " 1\npipeline " + carried.pipeline + "\n";
  for (const auto& [name, value] : carried.conditions) {
    text += "condition " + name + " " + value + "\n";
  }
  if (!carried.failure.empty()) {
    return text + "failed " + carried.failure + "\nend\n";
  }
  const MeasuredParts& parts = carried.parts;
  text += "gap seconds=" + exact(parts.gap) + "\n";
  for (std::size_t work = 0; work < parts.alone.size(); ++work) {
    text += "alone work=" + std::to_string(work) + " seconds=" + exact(parts.alone[work]) + "\n";
  }
  for (std::size_t device = 0; device < parts.slowdowns.size(); ++device) {
    text += "slowdown device=" + std::to_string(device) + " factor=" + exact(parts.slowdowns[device]) + "\n";
  }
  for (std::size_t pair = 0; pair < parts.contention.size(); ++pair) {
    if (parts.contention[pair] != 1) {
      text += "beside work=" + std::to_string(pair / parts.alone.size()) +
              " other=" + std::to_string(pair % parts.alone.size()) + " factor=" + exact(parts.contention[pair]) + "\n";
    }
  }
  for (std::size_t work = 0; work < parts.hops.size(); ++work) {
    if (!parts.hops[work].empty()) {
      text += "hop work=" + std::to_string(work) + " seconds=" + listed(parts.hops[work]) + "\n";
    }
  }
  for (const LaneSpan& span : carried.spans) {
    text += "span start=" + std::to_string(span.start) + " finish=" + std::to_string(span.finish) + "\n";
  }
  return text + "end\n";
}

CarriedOut parse_times(const std::string& text, const std::string& file) {
  std::vector<KeyedLine> lines = keyed_lines(text, file);
  if (lines.empty()) {
    throw std::invalid_argument(file + ":1:1: an empty file; allowed: '" + std::string(kTimesHead) +
                                " 1' and what follows");
  }
  for (const std::string_view wanted : {kTimesHead, std::string_view("1")}) {
    if (const std::string_view found = lines.front().word(wanted); found != wanted) {
      lines.front().refuse("'" + std::string(found) + "'; allowed: '" + std::string(wanted) + "'", found);
    }
  }
  lines.front().finish();
  CarriedOut carried;
  bool ended = false;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string_view what = lines[i].word(kTimesLines);
    if (ended) {
      lines[i].refuse("nothing may follow 'end'", what);
    }
    ended = what == "end";
    if (!ended) {
      read_times_line(lines[i], what, carried);
    }
    lines[i].finish();
  }
  if (!ended) {
    lines.back().refuse("the file ends here, cut off; allowed: a last line 'end'");
  }
  return carried;
}

} // namespace stagecraft::gpu
