// Writes and reads the times of a pipeline as text. docs/formats/pipeline.md.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "calibrate/gpu/pipelines/carry_out.hpp"
#include "calibrate/gpu/pipelines/line_reader.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::string_view kTimesHead = "stagecraft-times";
constexpr std::string_view kTimesLines = "pipeline, failed, condition, gap, alone, slowdown, beside, hop, span, end";
constexpr std::size_t kMostContending = 4096; // works, whose pairs take 128 MiB

// Requires that lines of one kind are numbered from 0 without gaps.
void expect_next(KeyedLine& line, std::string_view key, std::size_t next) {
  const auto number = static_cast<std::int64_t>(next);
  line.integer(key, number, number);
}

// Reads how one work slows another; every work must be known by then.
void read_contention(KeyedLine& line, MeasuredParts& parts) {
  const std::size_t works = parts.alone.size();
  if (works == 0 || works > kMostContending) {
    line.refuse("'beside' after " + std::to_string(works) + " lines 'alone'; allowed: after 1 to " +
                std::to_string(kMostContending));
  }
  parts.contention.resize(works * works, 1);
  const std::int64_t work = line.integer("work", 0, static_cast<std::int64_t>(works) - 1);
  const std::int64_t other = line.integer("other", 0, static_cast<std::int64_t>(works) - 1);
  parts.contention[static_cast<std::size_t>(work) * works + static_cast<std::size_t>(other)] = line.amount("factor");
}

// Reads how long a transfer takes alone; every work must be known by then.
void read_hop(KeyedLine& line, MeasuredParts& parts) {
  if (parts.hops.size() >= parts.alone.size()) {
    line.refuse("'hop' without a line 'alone' of its work; allowed: after that one");
  }
  const auto first = static_cast<std::int64_t>(parts.hops.size());
  const std::int64_t work = line.integer("work", first, static_cast<std::int64_t>(parts.alone.size()) - 1);
  parts.hops.resize(static_cast<std::size_t>(work) + 1);
  parts.hops.back() = line.amounts("seconds");
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
    if (!parts.contention.empty()) {
      line.refuse("'alone' after 'beside'; allowed: before it");
    }
    expect_next(line, "work", parts.alone.size());
    parts.alone.push_back(line.amount("seconds"));
  } else if (what == "slowdown") {
    line.read_keys();
    expect_next(line, "device", parts.slowdowns.size());
    parts.slowdowns.push_back(line.amount("factor"));
  } else if (what == "beside") {
    line.read_keys();
    read_contention(line, parts);
  } else if (what == "hop") {
    line.read_keys();
    read_hop(line, parts);
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
