// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/write_device.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <sstream>

#include "sim/base/format/yaml_text.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/fits/kernel_features.hpp"

namespace stagecraft::fit {
namespace {

constexpr std::size_t kLineWidth = 118;

std::string digits(double value) { return to_digits(value, 6); }

// Three decimals without trailing zeros: "-0.120" becomes "-0.12", "0.000" becomes "0".
std::string thousandths(double value) {
  std::string text = to_text(value, 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string feature_name(FeatureId id) { return std::string(kernel_features()[static_cast<std::size_t>(id)].name); }

std::string error_text(const FitError& error) {
  return "{mean: " + thousandths(error.mean) + ", median: " + thousandths(error.median) +
         ", p90: " + thousandths(error.p90) + ", bias: " + thousandths(error.bias) +
         ", points: " + std::to_string(error.points) + ", scheme: " + in_double_quotes(error.scheme) + "}";
}

// The error as a line; none where nothing was held back.
std::string error_line(const FitError& error, const std::string& indent) {
  return error.points > 0 ? indent + "error: " + error_text(error) + "\n" : "";
}

// A flow sequence, broken into lines.
std::string wrapped(const std::vector<std::string>& items, const std::string& indent) {
  std::string text, line;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    if (indent.size() + line.size() + item.size() + 1 > kLineWidth) {
      text += "\n" + indent + line;
      line.clear();
    }
    line += (line.empty() ? "" : " ") + item;
  }
  return "[" + text + "\n" + indent + line + "]";
}

std::string terms_text(const std::vector<FitTerm>& terms, const std::function<std::string(double)>& number) {
  std::string text;
  for (const FitTerm& term : terms) {
    text += (text.empty() ? "" : ", ") + feature_name(term.feature) + ": " + number(term.coefficient);
  }
  return "{" + text + "}";
}

std::string grid_text(const ResidualGrid& grid) {
  const std::string indent(8, ' ');
  std::string text = "      grid:\n";
  text += indent + "flops: " + digits(grid.base.flops.value) + " FLOP/s\n";
  text += indent + "bandwidth: " + digits(grid.base.bandwidth.value) + " B/s\n";
  text += indent + "launch: " + digits(grid.base.launch.value) + " s\n";
  text += indent + "axes:\n";
  for (const GridAxis& axis : grid.axes) {
    std::vector<std::string> nodes;
    for (const double node : axis.nodes) {
      nodes.push_back(digits(std::exp(node)));
    }
    text += indent + "  " + feature_name(axis.feature) + ": [" + join(nodes) + "]\n";
  }
  if (!grid.corrections.empty()) {
    text += indent + "corrections: " + terms_text(grid.corrections, thousandths) + "\n";
  }
  std::vector<std::string> values;
  std::transform(grid.values.begin(), grid.values.end(), std::back_inserter(values), thousandths);
  text += indent + "values: " + wrapped(values, indent + "  ") + "\n";
  return text + error_line(grid.error, indent);
}

std::string family_text(const KernelFamily& family) {
  std::string text = "      family:\n        ways:\n";
  for (const std::vector<FitTerm>& way : family.ways) {
    text += "          - " + terms_text(way, [](double value) { return digits(value); }) + "\n";
  }
  return text + error_line(family.error, std::string(8, ' '));
}

std::string line_text(const PiecewiseLine& line, const std::string& indent) {
  std::string text = indent + "segments:\n";
  for (const LineSegment& segment : line.segments) {
    const bool last = &segment == &line.segments.back();
    text += indent + "  - {" + (last ? "" : "upto: " + digits(segment.upto) + " B, ") +
            "start: " + digits(segment.start.value) + " s, seconds_per_byte: " + digits(segment.seconds_per_byte) +
            "}\n";
  }
  return text + error_line(line.error, indent);
}

std::string kernel_text(const KernelFit& fit) {
  std::string text = "    - op: " + std::string(row_of(fit.op).name) + "\n";
  text += "      pass: " + std::string(row_of(fit.pass).name) + "\n";
  text += "      precision: " + std::string(row_of(fit.precision).name) + "\n";
  text += fit.variant.empty() ? "" : "      variant: " + yaml_text(fit.variant) + "\n";
  text += fit.cast > 0 ? "      cast: " + digits(fit.cast) + " s\n" : "";
  text += fit.grid ? grid_text(*fit.grid) : "";
  text += fit.family ? family_text(*fit.family) : "";
  return text + (fit.line ? "      line:\n" + line_text(*fit.line, std::string(8, ' ')) : "");
}

std::string dispatch_text(const DispatchFit& fit) {
  const DispatchLine& line = fit.line;
  const std::string kernels = fit.kernels == DispatchFit{}.kernels ? "" : ", kernels: " + fit.kernels;
  std::string text = "      - {op: " + fit.op + kernels + ", nodes: " + std::to_string(fit.nodes) +
                     ", processors: " + std::to_string(fit.processors) + ", start: " + digits(line.start.value) + " s";
  const auto add = [&](const char* key, double value, const char* unit) {
    text += value > 0 ? std::string(", ") + key + ": " + digits(value) + unit : "";
  };
  add("per_token", line.per_token.value, " s");
  add("own", line.own, "");
  add("inside", line.inside, "");
  add("between", line.between, "");
  return text + (fit.error.points > 0 ? ",\n         error: " + error_text(fit.error) : "") + "}\n";
}

std::string dispatches_text(const std::vector<DispatchFit>& fits) {
  if (fits.empty()) {
    return "";
  }
  const DispatchLinks& links = fits.front().line.links;
  std::string text = "  dispatches:\n    links: {inside: " + digits(links.inside.value) +
                     " B/s, between: " + digits(links.between.value) + " B/s}\n    times:\n";
  for (const DispatchFit& fit : fits) {
    text += dispatch_text(fit);
  }
  return text;
}

// A document as text again, in flow style below its first two levels.
std::string flow(const yaml::Node& node) {
  std::string text;
  if (node.kind == yaml::Node::Kind::map) {
    for (const yaml::Node::Entry& entry : node.entries) {
      text += (text.empty() ? "" : ", ") + yaml_text(entry.key) + ": " + flow(entry.value);
    }
    return "{" + text + "}";
  }
  if (node.kind == yaml::Node::Kind::sequence) {
    for (const yaml::Node& item : node.items) {
      text += (text.empty() ? "" : ", ") + flow(item);
    }
    return "[" + text + "]";
  }
  return node.kind == yaml::Node::Kind::null ? "null" : yaml_text(node.text);
}

} // namespace

std::string fits_text(const KernelFits& fits, const std::vector<std::string>& provenance) {
  std::string text = "fits:\n";
  if (!provenance.empty()) {
    text += "  provenance:\n";
    for (const std::string& one : provenance) {
      text += "    - " + in_double_quotes(one) + "\n";
    }
  }
  text += "  processors: " + digits(fits.processors) + "\n";
  text += fits.kernels.empty() ? "" : "  kernels:\n";
  for (const KernelFit& fit : fits.kernels) {
    text += kernel_text(fit);
  }
  text += fits.copies.empty() ? "" : "  copies:\n";
  for (const CopyFit& fit : fits.copies) {
    text += "    - from: " + fit.from + "\n      to: " + fit.to + "\n";
    text += fit.memory.empty() ? "" : "      memory: " + fit.memory + "\n";
    text += fit.both_ways ? "      both_ways: true\n" : "";
    text += line_text(fit.line, std::string(6, ' '));
  }
  text += fits.collectives.empty() ? "" : "  collectives:\n";
  for (const CollectiveFit& fit : fits.collectives) {
    text += "    - op: " + fit.op + "\n      devices: " + std::to_string(fit.devices) + "\n";
    text += line_text(fit.line, std::string(6, ' '));
  }
  text += dispatches_text(fits.dispatches);
  if (fits.power) {
    const PowerFit& power = *fits.power;
    text += "  power:\n    idle: " + digits(power.idle.value) + " W\n    base: " + digits(power.base.value) +
            " W\n    cap: " + digits(power.cap.value) + " W\n    per_flop: " + digits(power.per_flops) +
            "\n    per_byte: " + digits(power.per_bytes) + "\n" + error_line(power.error, "    ");
  }
  return text;
}

std::string measurements_text(const std::vector<yaml::Node>& documents) {
  std::string text = "measurements:\n";
  for (const yaml::Node& document : documents) {
    const char* mark = "  - ";
    for (const yaml::Node::Entry& entry : document.entries) {
      text += mark + yaml_text(entry.key) + ":";
      mark = "    ";
      if (entry.value.kind == yaml::Node::Kind::sequence) {
        text += entry.value.items.empty() ? " []" : "";
        for (const yaml::Node& item : entry.value.items) {
          text += "\n      - " + flow(item);
        }
        text += "\n";
      } else {
        text += " " + flow(entry.value) + "\n";
      }
    }
  }
  return text;
}

std::string with_sections(const std::string& device_file, const std::string& name, const std::string& sections,
                          bool kernels_measured) {
  std::istringstream in(device_file);
  std::string text;
  bool dropping = false;
  for (std::string line; std::getline(in, line);) {
    const bool top_level = !line.empty() && line.front() != ' ' && line.front() != '#' && line.front() != '-';
    if (top_level) {
      dropping = line.starts_with("fits:") || line.starts_with("measurements:");
    }
    if (dropping) {
      continue;
    }
    if (line.starts_with("name:")) {
      line = "name: " + yaml_text(name);
    } else if (line.starts_with("origin:") && kernels_measured) {
      line = "origin: measured";
    }
    text += line;
    text += "\n";
  }
  return text + sections;
}

std::string device_text(const Measurements& measurements) {
  std::array<double, kNumberFormats.size()> peaks{};
  double vector = 0, bandwidth = 0;
  std::optional<Seconds> launch, least;
  for (const MeasuredRow& row : measurements.measured) {
    const Seconds time = row.time.median;
    const double flops = (flops_of(row.kernel) / time).value, bytes = (bytes_of(row.kernel) / time).value;
    const bool matrix = row_of(row_of(row.kernel.op).kind).matrix;
    double& best = matrix ? peaks[static_cast<std::size_t>(row.kernel.precision)] : vector;
    best = std::max(best, flops);
    bandwidth = matrix ? bandwidth : std::max(bandwidth, bytes);
    least = least ? std::min(*least, time) : time;
    if (row.kernel.op == KernelOp::launch && row.regime == Regime::burst) {
      launch = time;
    }
  }
  Watts idle, busy, waiting;
  for (const MeasuredPower& state : measurements.power) {
    Watts& power = state.state == "idle" ? idle : state.state == "blocked" ? waiting : busy;
    power = std::max(power, state.power);
  }
  busy = std::max({idle, waiting, busy});
  const double peak = *std::max_element(peaks.begin(), peaks.end());
  bandwidth = bandwidth > 0 ? bandwidth : peak > 0 ? peak : 1;
  vector = vector > 0 ? vector : peak > 0 ? peak : 1;
  std::string text = "name: " + yaml_text(measurements.device.name) +
                     "\nvendor: " + yaml_text(measurements.device.vendor) +
                     "\norigin: measured\ndescription: " + in_double_quotes(measurements.device.description) + "\n";
  text += "memory: " + to_text(measurements.device.memory.value, 0) + " B\n";
  text += "memory_bandwidth: " + digits(bandwidth) + " B/s\n";
  text += "launch_overhead: " + digits(launch.value_or(Seconds{0}).value) + " s\n";
  text += "power: {idle: " + digits(idle.value) + " W, busy: " + digits(busy.value) + " W";
  text += waiting > idle ? ", waiting: " + digits(waiting.value) + " W" : "";
  text += "}\npeak: {";
  std::vector<std::string> listed;
  for (const PrecisionRow& row : kNumberFormats) {
    const double rate = peaks[static_cast<std::size_t>(row.precision)];
    if (rate > 0) {
      listed.push_back(std::string(row.name) + ": " + digits(rate) + " FLOP/s");
    }
  }
  text += (listed.empty() ? "fp32: " + digits(vector) + " FLOP/s" : join(listed)) + "}\nvector: " + digits(vector) +
          " FLOP/s\nsources:\n";
  for (const char* key : {"memory_bandwidth", "peak", "vector"}) {
    text += "  " + std::string(key) + ": \"measured: the best of all kernels\"\n";
  }
  text += "  launch_overhead: \"" + std::string(launch ? "measured: an empty kernel" : "not measured") + "\"\n";
  return text;
}

} // namespace stagecraft::fit
