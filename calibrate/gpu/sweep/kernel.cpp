// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/sweep/kernel.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

namespace stagecraft::gpu {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(" \t\r"); at != std::string_view::npos;
       at = line.find_first_not_of(" \t\r", at)) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

template <class Names> std::string join(const Names& names) {
  std::string text;
  for (const auto& name : names) {
    if (!name.empty()) {
      text += (text.empty() ? "" : ", ") + std::string(name);
    }
  }
  return text.empty() ? "none" : text;
}

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument(text); }

template <class Names> std::size_t index_of(const Names& names, std::string_view name, const char* what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end() || name.empty()) {
    refuse("unknown " + std::string(what) + " '" + std::string(name) + "'; allowed: " + join(names));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::int64_t extent_of(std::string_view word, std::string_view digits) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool leading_zero = digits.size() > 1 && digits.front() == '0';
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > 2147483647 || leading_zero) {
    refuse("'" + std::string(word) + "' wants a number from 0 to 2147483647");
  }
  return value;
}

constexpr bool may_be_zero(std::string_view dimension) { return dimension == "padding" || dimension == "causal"; }

} // namespace

Kernel make_kernel(Op op, Pass pass, Precision precision, const std::vector<std::int64_t>& extents) {
  Kernel kernel;
  kernel.op = op;
  kernel.pass = pass;
  kernel.precision = precision;
  std::copy(extents.begin(), extents.end(), kernel.shape.begin());
  return kernel;
}

std::string to_text(const Kernel& kernel) {
  const OpRow& row = row_of(kernel.op);
  std::string text =
      std::string(row.name) + " " + std::string(name_of(kernel.pass)) + " " + std::string(name_of(kernel.precision));
  for (std::size_t i = 0; i < row.rank(); ++i) {
    text += " " + std::string(row.dimensions[i]) + "=" + std::to_string(kernel.shape[i]);
  }
  return text;
}

Kernel parse_kernel(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 3) {
    refuse(
        "a kernel is an op, a pass, a precision and its dimensions, as 'gemm forward bf16 batch=1 m=128 n=256 k=64'");
  }
  std::vector<std::string_view> ops;
  for (const OpRow& row : kOps) {
    ops.push_back(row.name);
  }
  Kernel kernel;
  kernel.op = kOps[index_of(ops, words[0], "kernel")].op;
  kernel.pass = static_cast<Pass>(index_of(kPasses, words[1], "pass"));
  kernel.precision = static_cast<Precision>(index_of(kPrecisions, words[2], "precision"));
  const OpRow& row = row_of(kernel.op);
  std::array<bool, kMostDimensions> given{};
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    const std::size_t at = index_of(row.dimensions, words[i].substr(0, equals), "dimension");
    if (equals == words[i].size() || given[at]) {
      refuse("'" + std::string(words[i]) + "' wants one value, as m=128");
    }
    kernel.shape[at] = extent_of(words[i], words[i].substr(equals + 1));
    given[at] = true;
  }
  for (std::size_t i = 0; i < row.rank(); ++i) {
    if (kernel.shape[i] == 0 && !may_be_zero(row.dimensions[i])) {
      refuse("'" + std::string(row.dimensions[i]) + "' is missing or 0; allowed: 1 or more");
    }
  }
  return kernel;
}

std::vector<Kernel> parse_shape_list(std::string_view text, const std::string& file) {
  std::vector<Kernel> kernels;
  std::set<std::string> known;
  int number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const std::string_view content = line.substr(0, line.find('#'));
    if (words_of(content).empty()) {
      continue;
    }
    try {
      const Kernel kernel = parse_kernel(content);
      if (known.insert(to_text(kernel)).second) {
        kernels.push_back(kernel);
      }
    } catch (const std::invalid_argument& error) {
      refuse(file + ":" + std::to_string(number + 1) + ": " + error.what());
    }
  }
  return kernels;
}

namespace {

// Places of a convolution's output; as doubles, since images may have more than 2^63.
double output_places(const Shape& s) {
  return static_cast<double>(output_extent(s[2], s[5], s[7], s[8])) *
         static_cast<double>(output_extent(s[3], s[6], s[7], s[8]));
}

} // namespace

double flops_of(const Kernel& kernel) {
  const auto at = [&](std::size_t i) { return static_cast<double>(kernel.shape[i]); };
  const Shape& s = kernel.shape;
  switch (kernel.op) {
  case Op::gemm:
    return 2 * at(0) * at(1) * at(2) * at(3);
  case Op::convolution: {
    const double places = output_places(s);
    return 2 * at(0) * at(4) * places * at(1) / at(9) * at(5) * at(6);
  }
  case Op::attention: {
    const double pairs = s[5] > 0 ? at(1) * (at(1) + 1) / 2 : at(1) * at(1);
    return (kernel.pass == Pass::forward ? 4 : 10) * at(0) * at(2) * at(4) * pairs;
  }
  default:
    return at(0) * at(1);
  }
}

double bytes_of(const Kernel& kernel) {
  const auto at = [&](std::size_t i) { return static_cast<double>(kernel.shape[i]); };
  const Shape& s = kernel.shape;
  const auto stored = static_cast<double>(bytes_of(kernel.precision));
  switch (kernel.op) {
  case Op::gemm:
    return at(0) * (stored * (at(1) * at(3) + at(3) * at(2)) +
                    static_cast<double>(bytes_of(result_of(kernel.precision))) * at(1) * at(2));
  case Op::convolution: {
    const double places = output_places(s);
    return stored * (at(0) * at(1) * at(2) * at(3) + at(0) * at(4) * places + at(4) * at(1) / at(9) * at(5) * at(6));
  }
  case Op::attention: // with all gradients, their fp32 sums, and the statistics
    return at(0) * at(1) * (at(2) + at(3)) * at(4) * (kernel.pass == Pass::forward ? 2 * stored : 4 * stored + 8);
  case Op::adam: // four tensors in fp32, a gradient and a copy of the weights in less
    return 20 * at(0) * at(1);
  case Op::swiglu: // gate, up and the gradients of all three
    return 5 * stored * at(0) * at(1);
  case Op::embedding:
    return 3 * stored * at(0) * at(1) + 4.0 * kVocabulary * at(1);
  case Op::rotary: // the table of angles too
    return stored * at(0) * at(1) + 4.0 * kPositions * at(1);
  case Op::cast:
    return (stored + static_cast<double>(bytes_of(cast_from(kernel.precision)))) * at(0) * at(1);
  default:
    return (3 * stored + 1) * at(0) * at(1);
  }
}

} // namespace stagecraft::gpu
