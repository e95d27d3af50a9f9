// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/output/measurement_file.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "calibrate/gpu/output/whole_file.hpp"

namespace stagecraft::gpu {
namespace {

constexpr const char* kSchema = "schema: stagecraft-measurements/1";
constexpr std::array<const char*, 7> kSections = {"measured",     "copies", "collectives", "launching",
                                                  "interference", "power",  "sentinels"};
// Between the part of a line that says what was measured and its result.
constexpr std::array<const char*, 2> kResults = {", median: ", ", power: "};

bool starts_with(const std::string& text, const std::string& front) {
  return text.compare(0, front.size(), front) == 0;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string clock_text(double hertz) { return number(hertz / 1e6) + " MHz"; }

std::string facts_text(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) {
    text += (text.empty() ? "" : ", ") + key + ": " + quoted(value);
  }
  return "{" + text + "}";
}

std::string identity_of_line(const std::string& line) {
  for (const char* result : kResults) {
    const std::size_t end = line.find(result);
    if (end != std::string::npos) {
      return line.substr(1, end - 1);
    }
  }
  return "";
}

[[noreturn]] void refuse(const std::string& file, int line, const std::string& text) {
  throw std::invalid_argument(file + ":" + std::to_string(line) + ": " + text);
}

std::string value_of(const Facts& facts, const std::string& key) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == key; });
  return found == facts.end() ? "" : found->second;
}

} // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? number(seconds * 1e6) + " us"
         : seconds < 1  ? number(seconds * 1e3) + " ms"
                        : number(seconds) + " s";
}

std::string quoted(const std::string& text) {
  static const std::regex kPlain(R"([A-Za-z][A-Za-z0-9-]*( [A-Za-z0-9-]+)*|[0-9]+|[0-9]+(\.[0-9]+)? [A-Za-z/]+)");
  if (std::regex_match(text, kPlain)) {
    return text;
  }
  std::string escaped;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 127;
    escaped += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, control ? ' ' : c);
  }
  return "\"" + escaped + "\"";
}

MeasurementFile::MeasurementFile(std::string path, Header header) : path_(std::move(path)), header_(std::move(header)) {
  std::ifstream in(path_);
  if (in) {
    std::ostringstream text;
    text << in.rdbuf();
    read(text.str());
  }
}

void MeasurementFile::read(const std::string& text) {
  std::istringstream in(text);
  std::string line, section;
  const std::string device = "device: {name: " + quoted(value_of(header_.device, "name")) + ",";
  for (int number = 1; std::getline(in, line); ++number) {
    if (number == 1 && line != kSchema) {
      refuse(path_, 1, "no file of measurements of this version; allowed: '" + std::string(kSchema) + "'");
    }
    if (starts_with(line, "device:") && !starts_with(line, device)) {
      refuse(path_, number, "measured on another device or under another name; allowed: " + device + " …");
    }
    if (starts_with(line, "duration: ")) {
      earlier_ = std::strtod(line.c_str() + 10, nullptr);
    }
    if (starts_with(line, "  - {")) {
      const std::string row = line.substr(4);
      const std::string identity = identity_of_line(row);
      if (!section.empty() && row.back() == '}' && !identity.empty()) {
        lines_[section].push_back(row);
        if (section != "sentinels") { // every run measures its own sentinels
          known_.insert(section + " " + identity);
        }
      }
      continue;
    }
    const auto known = std::find_if(kSections.begin(), kSections.end(),
                                    [&](const char* name) { return starts_with(line, std::string(name) + ":"); });
    section = known == kSections.end() ? "" : *known;
  }
}

bool MeasurementFile::has(const Point& point) const {
  return known_.count(std::string(section_of(point)) + " " + identity(point)) > 0;
}

namespace {

std::string summary_text(const Summary& seconds) {
  return ", median: " + time_text(seconds.median) + ", q1: " + time_text(seconds.q1) +
         ", q3: " + time_text(seconds.q3) + ", least: " + time_text(seconds.least) +
         ", samples: " + std::to_string(seconds.samples);
}

std::string rate_text(double bytes_per_second) { return number(bytes_per_second / 1e9) + " GB/s"; }

} // namespace

void MeasurementFile::add(const Point& point, const Timing& timing) {
  std::string rest = summary_text(timing.seconds);
  rest += timing.call > 0 ? ", call: " + time_text(timing.call) : "";
  if (std::holds_alternative<KernelPoint>(point)) {
    rest += timing.clock > 0 ? ", clock: " + clock_text(timing.clock) : "";
    rest += timing.dropped > 0 ? ", dropped: " + std::to_string(timing.dropped) : "";
    rest += timing.variant.empty() ? "" : ", variant: " + quoted(timing.variant);
  }
  add_line(std::string(section_of(point)), identity(point), rest);
}

void MeasurementFile::add(const Point& point, const Interference& interference) {
  const Timing& timing = interference.beside;
  std::string rest = summary_text(timing.seconds) + ", alone: " + time_text(interference.alone) +
                     ", beside_rate: " + rate_text(interference.beside_rate) +
                     ", rate_alone: " + rate_text(interference.rate_alone);
  rest += timing.clock > 0 ? ", clock: " + clock_text(timing.clock) : "";
  rest += timing.variant.empty() ? "" : ", variant: " + quoted(timing.variant);
  add_line(std::string(section_of(point)), identity(point), rest);
}

void MeasurementFile::add(const Point& point, const PowerReading& reading) {
  std::string rest = ", power: " + number(reading.watts) + " W, duration: " + time_text(reading.seconds);
  rest += reading.flops > 0   ? ", rate: " + number(reading.flops / 1e12) + " TFLOP/s"
          : reading.bytes > 0 ? ", rate: " + rate_text(reading.bytes)
                              : "";
  rest += reading.clock > 0 ? ", clock: " + clock_text(reading.clock) : "";
  add_line(std::string(section_of(point)), identity(point), rest);
}

void MeasurementFile::add_sentinel(const std::string& when, const Kernel& kernel, double seconds) {
  lines_["sentinels"].push_back("{when: " + when + ", kernel: \"" + to_text(kernel) +
                                "\", median: " + time_text(seconds) + "}");
  write();
}

void MeasurementFile::add_line(const std::string& section, const std::string& identity, const std::string& rest) {
  if (known_.insert(section + " " + identity).second) {
    lines_[section].push_back("{" + identity + rest + "}");
    write();
  }
}

void MeasurementFile::leave_out(const std::string& what) { note("left_out_" + std::to_string(++left_out_), what); }

void MeasurementFile::note(const std::string& key, const std::string& text) {
  const auto found =
      std::find_if(header_.method.begin(), header_.method.end(), [&](const auto& fact) { return fact.first == key; });
  if (found == header_.method.end()) {
    header_.method.emplace_back(key, text);
  } else {
    found->second = text;
  }
  write();
}

void MeasurementFile::finish(double seconds) {
  duration_ = seconds;
  complete_ = true;
  write();
}

void MeasurementFile::write() const {
  std::ostringstream out;
  out << kSchema << "\ndevice: " << facts_text(header_.device) << "\nhost: " << facts_text(header_.host)
      << "\nsoftware: " << facts_text(header_.software) << "\n";
  out << "method: " << facts_text(header_.method) << "\n";
  for (const char* section : kSections) {
    const auto found = lines_.find(section);
    if (found == lines_.end()) {
      out << (std::string(section) == "measured" ? "measured: []\n" : "");
      continue;
    }
    out << section << ":\n";
    for (const std::string& line : found->second) {
      out << "  - " << line << "\n";
    }
  }
  if (complete_) {
    out << "duration: " << number(earlier_ + duration_) << " s\ncomplete: true\n";
  }
  write_whole(path_, out.str());
}

} // namespace stagecraft::gpu
