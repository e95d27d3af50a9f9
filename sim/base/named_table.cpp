// SPDX-License-Identifier: Apache-2.0
#include "sim/base/named_table.hpp"

#include <algorithm>
#include <iterator>

#include "sim/base/edit_distance.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The names that begin with one that was written, such as those of a family: "h100" of devices.
std::vector<std::string> longer_names(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kShortest = 3;
  std::vector<std::string> longer;
  std::copy_if(known.begin(), known.end(), std::back_inserter(longer), [&](const std::string& one) {
    return name.size() >= kShortest && one.size() > name.size() &&
           same_name(std::string_view(one).substr(0, name.size()), name);
  });
  return longer;
}

// What other programs call a value, and what it is called here.
struct OtherName {
  std::string_view other, here;
};
constexpr OtherName kOtherNames[] = {
    {"bfloat16", "bf16"},
    {"float16", "fp16"},
    {"half", "fp16"},
    {"fp16-mixed", "fp16"},
    {"bf16-mixed", "bf16"},
    {"float32", "fp32"},
    {"float", "fp32"},
    {"adamw", "adam"},
    {"batch_size", "global_batch"},
    {"tp", "tensor"},
    {"pp", "pipeline"},
    {"dp", "data"},
    {"cp", "context"},
    {"ep", "expert"},
    {"sp", "sequence"},
    {"deepspeed", "megatron-deepspeed-2022"},
    {"megatron", "megatron-lm-2025"},
    {"megatron-lm", "megatron-lm-2025"},
    {"huggingface", "transformers"},
    {"fsdp2", "torchtitan"},
    {"stage", "zero"},
    {"fsdp", "zero"},
    {"zero_stage", "zero"},
};

// The known name of what other programs call so, or "".
std::string here_called(std::string_view name, const std::vector<std::string>& known) {
  for (const OtherName& one : kOtherNames) {
    if (same_name(name, one.other) && std::find(known.begin(), known.end(), one.here) != known.end()) {
      return std::string(one.here);
    }
  }
  return "";
}

} // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 64;
  if (name.empty() || name.size() > kLongestName) {
    return "";
  }
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::string> longer = longer_names(name, known);
  const auto letter =
      std::find_if(longer.begin(), longer.end(), [&](const std::string& one) { return one.size() == name.size() + 1; });
  if (letter != longer.end()) { // its last letter is missing
    longer = {*letter};
  }
  const std::string here = here_called(name, known);
  const std::string close = !here.empty() ? here : longer.size() == 1 ? longer.front() : nearest(name, known);
  return "unknown " + std::string(what) + " '" + excerpt(name) + "'; " +
         (here.empty() && longer.size() > 1 ? "several begin so: " + join(longer) + "; "
          : close.empty()                   ? ""
                                            : "did you mean '" + close + "'? ") +
         "known: " + join(known);
}

std::optional<Correction> correction_in(std::string_view message) {
  constexpr std::string_view kQuestion = "'; did you mean '";
  const size_t question = message.find(kQuestion);
  if (question == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t begin = message.substr(0, question).rfind('\'');
  const size_t meant = question + kQuestion.size();
  const size_t end = message.find("'?", meant);
  if (begin == std::string_view::npos || end == std::string_view::npos) {
    return std::nullopt;
  }
  return Correction{std::string(message.substr(begin + 1, question - begin - 1)),
                    std::string(message.substr(meant, end - meant))};
}

bool same_name(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

std::string join(const std::vector<std::string>& names, std::string_view separator) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : std::string(separator)) + name;
  }
  return text;
}

} // namespace stagecraft
