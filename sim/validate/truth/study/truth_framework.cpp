// The framework of a row's run, by its words, its year, and by what it shares among devices.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

// In the order in which they are tried.
constexpr std::array kFrameworks = {
    TruthFramework{"megatron-deepspeed-2022",
                   "Megatron-DeepSpeed",
                   {"megatron-deepspeed", "vtrain", "gpt-neox", "gigatron"},
                   true,
                   true,
                   true},
    TruthFramework{"torchtitan-eager", "TorchTitan, not compiled", {"torch.compile=false", "nanotron"}},
    TruthFramework{"torchtitan-2024", "TorchTitan of 2024", {"202412_torchtitan", "torchtitan 2024"}},
    TruthFramework{"torchtitan", "TorchTitan", {"torchtitan"}},
    TruthFramework{"maxtext", "MaxText", {"maxtext", "tpu-recipes"}},
    TruthFramework{"llm-foundry", "MosaicML's llm-foundry", {"llm-foundry", "mosaicml"}},
    TruthFramework{"automodel-compiled", "NeMo Automodel, compiled", {"fsdp2_prefetch"}},
    TruthFramework{"automodel-transformers", "NeMo Automodel, models of Hugging Face", {"kernels=TE + triton"}},
    TruthFramework{"automodel", "NeMo Automodel", {"automodel"}},
    TruthFramework{"fsdp", "FSDP with torch.compile", {"fms-fsdp", "fsdp2"}},
    TruthFramework{"internevo", "InternEvo", {"internevo"}},
    TruthFramework{"megatron-lm-2021", "Megatron-LM of 2021", {"narayanan et al. 2021", "sc21"}, true, true, true},
    TruthFramework{"megatron-lm-2022", "Megatron-LM of 2022", {"korthikanti"}, true, true, true},
    TruthFramework{"megatron-lm-2023", "Megatron-LM of 2023", {"zero bubble"}, true, true, true},
    TruthFramework{"nemo-2024",
                   "NeMo of 2024",
                   {"nemo 24", "nemo24", "nemo-framework-launcher", "mlperf training v4"},
                   true,
                   false,
                   true},
    TruthFramework{"megatron-bridge", "Megatron-Bridge", {"megatron-bridge", "mlperf"}, true, false, true},
    TruthFramework{"nemo-2025", "NeMo of 2025", {"nemo"}, true, false, true},
    TruthFramework{
        "megatron-lm-2025", "Megatron-LM of 2025", {"megatron-lm", "megatron-core", "simumax"}, true, false, true},
    TruthFramework{.name = "pytorch-transformer-xl",
                   .help = "NVIDIA's Transformer-XL in PyTorch",
                   .words = {"languagemodeling/transformer-xl"},
                   .separate_attention = true,
                   .own_optimizer = true},
    TruthFramework{"pytorch-2021", "PyTorch of 2021, one operator after another", {"zeus", "torchgpipe"}, false, true},
    TruthFramework{"mxnet", "MXNet", {"mxnet"}, false, true},
    TruthFramework{"pytorch-nvidia-images", "NVIDIA's images in PyTorch", {"classification/convnets"}, false, true},
    TruthFramework{"pytorch-nvidia", "NVIDIA's examples in PyTorch", {"deeplearningexamples"}, false, true},
    TruthFramework{"transformers", "Hugging Face Transformers", {"hugging face transformers", "transformers trainer"}},
    TruthFramework{"pytorch-compiled", "PyTorch, compiled"},
    TruthFramework{"pytorch-autocast", "PyTorch in 16 bits, one operator after another"},
    TruthFramework{"pytorch", "PyTorch, one operator after another", {"neusight"}, false, true},
};

const TruthFramework& named(std::string_view name) {
  return *std::find_if(kFrameworks.begin(), kFrameworks.end(),
                       [&](const TruthFramework& framework) { return framework.name == name; });
}

const TruthFramework* by_words(const TruthRow& row) {
  const auto found = std::find_if(kFrameworks.begin(), kFrameworks.end(), [&](const TruthFramework& framework) {
    return std::any_of(framework.words.begin(), framework.words.end(),
                       [&](std::string_view word) { return !word.empty() && row.mentions(word); });
  });
  return found == kFrameworks.end() ? nullptr : &*found;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The first year that a text names, as "et al. 2022" or, by its number, "arXiv 2205.05198". 0: none.
int year_of(const std::string& text) {
  constexpr int kFirst = 2017, kLast = 2039, kCentury = 2000, kDigits = 4, kMonths = 100;
  int year = 0;
  for (std::size_t at = 0; at + kDigits <= text.size(); ++at) {
    const std::size_t end = at + kDigits;
    if ((at > 0 && is_digit(text[at - 1])) || (end < text.size() && is_digit(text[end])) ||
        !std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
                     is_digit)) {
      continue;
    }
    const int number = std::atoi(text.substr(at, kDigits).c_str());
    const bool of_paper = end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1]);
    const int one = of_paper ? kCentury + number / kMonths : number;
    if (one >= kFirst && one <= kLast && (year == 0 || one < year)) {
      year = one;
    }
  }
  return year;
}

// When the run's source appeared.
int year_of(const TruthRow& row) {
  const int source = year_of(row.source), table = year_of(row.table);
  return source == 0 ? table : table == 0 ? source : std::min(source, table);
}

// Kernels of attention and of the rest changed with the years.
const TruthFramework& megatron_of(int year) {
  constexpr int kSplit = 2021, kSequence = 2022;
  return named(year == 0 || year > kSequence ? "megatron-lm-2025"
               : year <= kSplit              ? "megatron-lm-2021"
                                             : "megatron-lm-2022");
}

bool in_16_bits(const TruthRow& row) {
  const std::string precision = plain_words(row.precision);
  return std::ranges::any_of(std::array{"16", "amp", "mixed"},
                             [&](std::string_view word) { return precision.find(word) != std::string::npos; });
}

bool says_not_compiled(const TruthRow& row) {
  return std::ranges::any_of(std::array{"not compiled", "without torch.compile", "no torch.compile",
                                        "torch.compile=false", "without compilation"},
                             [&](std::string_view words) { return row.mentions(words); });
}

bool says_compiled(const TruthRow& row) { return row.mentions("torch.compile") && !says_not_compiled(row); }

// Of a run that names no framework.
const TruthFramework& usual_framework(const TruthRow& row) {
  const bool compiled = says_compiled(row);
  const std::string zero = plain_words(row.zero);
  if (row.mentions("fsdp") || zero.find("fsdp") != std::string::npos || zero.find("full-shard") != std::string::npos) {
    return named(compiled ? "fsdp" : "torchtitan-eager");
  }
  const TruthDegrees& degrees = row.degrees;
  if (degrees.tensor > 1 || degrees.pipeline > 1 || degrees.context > 1 || degrees.expert > 1) {
    return megatron_of(year_of(row));
  }
  return named(compiled ? "pytorch-compiled" : in_16_bits(row) ? "pytorch-autocast" : "pytorch");
}

} // namespace

bool names_framework(const TruthRow& row) { return by_words(row) != nullptr; }

const TruthFramework& framework_of(const TruthRow& row) {
  const TruthFramework* framework = by_words(row);
  if (framework == nullptr) {
    return usual_framework(row);
  }
  if (framework->name == "megatron-lm-2025") {
    return megatron_of(year_of(row));
  }
  constexpr int kLossNotCompiled = 2024; // TorchTitan compiles it since April 2025
  const bool titan = framework->name.starts_with("torchtitan");
  if ((titan || framework->name == "fsdp") && says_not_compiled(row)) {
    return named("torchtitan-eager");
  }
  if (framework->name == "pytorch" && says_compiled(row)) {
    return named("pytorch-compiled");
  }
  return framework->name == "torchtitan" && year_of(row) == kLossNotCompiled ? named("torchtitan-2024") : *framework;
}

std::string attention_stated(const TruthRow& row, const TruthFramework& framework) {
  constexpr int kSecond = 2024;           // FlashAttention 2 is of summer 2023
  constexpr int kScaledDotProduct = 2023; // which PyTorch has since its version 2.0, of March
  const bool without = row.mentions("no flash") || row.mentions("without flash");
  const bool plain = framework.name == "pytorch-autocast" || framework.name == "pytorch-compiled";
  const int year = year_of(row);
  if (plain && (without || (year > 0 && year < kScaledDotProduct && !row.mentions("flash")))) {
    return "eager";
  }
  if (!framework.separate_attention || without) {
    return "";
  }
  for (const std::string_view second :
       {"flashattention-2", "flashattention 2", "flash attention 2", "flash-attention-2", "flash-attention 2",
        "flashattention2", "flash attention-2"}) {
    if (row.mentions(second)) {
      return "flash-2";
    }
  }
  for (const std::string_view first : {"flash attention", "flashattention", "flash-attention", "xformers"}) {
    if (row.mentions(first)) {
      return year >= kSecond ? "flash-2" : "flash-1";
    }
  }
  return "";
}

} // namespace stagecraft
