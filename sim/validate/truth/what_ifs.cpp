// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/what_ifs.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>

#include "sim/base/statistics.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

int at_least_one(int degree) { return std::max(degree, 1); }
std::string degree_text(int degree) { return std::to_string(at_least_one(degree)); }
std::string stated(const std::string& words) { return words == "unknown" ? "" : words; }

// A row's own words, else what flags.csv says.
std::string stated_or_flag(const TruthRow& row, const std::string& words, const std::string& column) {
  const std::string own = stated(plain_words(words));
  return own.empty() ? plain_words(row.flag(column)) : own;
}

// The value behind "word=" in the note.
std::string noted(const TruthRow& row, std::string_view word) {
  const std::size_t found = row.note.find(std::string(word) + "=");
  const std::size_t begin = found + word.size() + 1;
  return found == std::string::npos ? "" : row.note.substr(begin, row.note.find(';', begin) - begin);
}

// How replicas share, without the number that do: that follows from the other degrees.
std::string sharing(const TruthRow& row) {
  const std::string words = plain_words(row.zero);
  const std::string kind = words.substr(0, words.find(" degree"));
  return kind + "|" + row.flag("fsdp") + "|" + row.flag("distributed_optimizer");
}

bool always(const TruthRow& /*row*/) { return true; }
bool of_groups(const TruthRow& row) { return row.degrees.tensor > 1; }
bool of_pipelines(const TruthRow& row) { return row.degrees.pipeline > 1; }

struct SettingColumn {
  std::string_view name;
  std::string (*value)(const TruthRow& row);     ///< "" where the row does not say
  bool (*matters)(const TruthRow& row) = always; ///< whether the run has what is set
};
constexpr std::array kSettings = {
    SettingColumn{"recompute", [](const TruthRow& row) { return stated_or_flag(row, row.recompute, "recompute"); }},
    SettingColumn{"sequence length", [](const TruthRow& row) { return std::to_string(row.sizes.sequence); }},
    SettingColumn{"micro-batch", [](const TruthRow& row) { return std::to_string(static_cast<int>(row.micro_batch)); }},
    SettingColumn{"tensor degree", [](const TruthRow& row) { return degree_text(row.degrees.tensor); }},
    SettingColumn{"pipeline degree", [](const TruthRow& row) { return degree_text(row.degrees.pipeline); }},
    SettingColumn{"context degree", [](const TruthRow& row) { return degree_text(row.degrees.context); }},
    SettingColumn{"expert degree", [](const TruthRow& row) { return degree_text(row.degrees.expert); }},
    SettingColumn{"virtual stages",
                  [](const TruthRow& row) {
                    return row.degrees.interleave > 0 ? std::to_string(row.degrees.interleave) : row.flag("vp");
                  },
                  of_pipelines},
    SettingColumn{"schedule", [](const TruthRow& row) { return stated(plain_words(row.schedule)); }, of_pipelines},
    SettingColumn{"sequence parallelism",
                  [](const TruthRow& row) {
                    return row.degrees.sequence ? std::string(*row.degrees.sequence ? "true" : "false")
                                                : row.flag("sequence_parallel");
                  },
                  of_groups},
    SettingColumn{"sharding", sharing},
    SettingColumn{"precision",
                  [](const TruthRow& row) { return plain_words(row.precision) + "|" + row.flag("fp8_recipe"); }},
    SettingColumn{"compile", [](const TruthRow& row) { return noted(row, "torch.compile"); }},
    SettingColumn{"asynchronous tensor parallelism", [](const TruthRow& row) { return noted(row, "async_TP"); },
                  of_groups},
    SettingColumn{"expert overlap", [](const TruthRow& row) { return row.flag("moe_a2a_overlap"); }},
    SettingColumn{"expert dispatch", [](const TruthRow& row) { return row.flag("dispatcher"); }},
    SettingColumn{"offload", [](const TruthRow& row) { return row.flag("cpu_offload"); }},
    SettingColumn{"power limit", [](const TruthRow& row) { return std::to_string(static_cast<int>(row.power_cap)); }},
    SettingColumn{"captured graphs", [](const TruthRow& row) { return row.flag("cuda_graphs"); }},
    SettingColumn{"attention kernels", [](const TruthRow& row) { return row.flag("attention"); }},
    SettingColumn{"overlapped reduction", [](const TruthRow& row) { return row.flag("overlap_grad_reduce"); }},
    SettingColumn{"overlapped gather", [](const TruthRow& row) { return row.flag("overlap_param_gather"); }},
    SettingColumn{"overlapped tensor exchange", [](const TruthRow& row) { return row.flag("tp_comm_overlap"); },
                  of_groups},
};
constexpr std::size_t kSequence = 1, kMicroBatch = 2;

// The release that a table's name begins with, as "26.08 NeMo Container"; "" where it names none.
std::string release_of(const TruthRow& row) {
  std::string name = row.table.substr(0, row.table.find(" / "));
  for (std::size_t i = 1; i + 1 < name.size(); ++i) {
    const auto digit = [&](std::size_t at) { return std::isdigit(static_cast<unsigned char>(name[at])) != 0; };
    if (name[i] == '.' && digit(i - 1) && digit(i + 1)) {
      return name;
    }
  }
  return "";
}

std::string model_words(const TruthRow& row) {
  const TruthSizes& sizes = row.sizes;
  std::string words = row.set + "\n" + row.source + "\n" + plain_words(row.model);
  for (const int size : {sizes.layers, sizes.hidden, sizes.heads, sizes.key_value_heads, sizes.feed_forward,
                         sizes.vocabulary, sizes.experts, sizes.experts_active, sizes.expert_hidden}) {
    words += " " + std::to_string(size);
  }
  return words;
}

// Which passes an iteration has; "": all, and a step.
std::string passes_of(const TruthRow& row) {
  return row.mentions("forward only") ? "forward" : row.mentions("no optimizer") ? "passes" : "";
}

// What two runs must have in common.
std::string machine_and_model(const TruthRow& row) {
  return model_words(row) + "\n" + release_of(row) + "\n" + row.gpu + "\n" + row.inter_link + "\n" +
         std::to_string(row.devices_per_node) + " " + std::to_string(truth_devices(row)) + "\n" + passes_of(row);
}

// A configuration with what was measured of it.
struct MeasuredPlan {
  const TruthRow* row = nullptr;
  double measured = 0, predicted = 0; // s of an iteration
  double tokens = 1;                  // of an iteration; of a model of images its samples

  double measured_each() const { return measured / tokens; }
  double predicted_each() const { return predicted / tokens; }
};

// Each configuration once, in order: the median of its measurements, of the first metric that it has.
std::vector<MeasuredPlan> configurations_of(const std::vector<ComparedRun>& runs) {
  std::vector<MeasuredPlan> configurations;
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<double>> measured;
  for (const ComparedRun& one : runs) {
    if (!of_whole_iterations(*one.row->known) || one.run.iteration <= 0) {
      continue;
    }
    const auto [place, is_new] = places.try_emplace(configuration_of(*one.row), configurations.size());
    if (is_new) {
      const PredictedRun& run = one.run;
      const double each = run.tokens_per_second > 0 ? run.tokens_per_second : run.samples_per_second; // images
      configurations.push_back({one.row, 0, run.iteration, each * run.iteration});
      measured.emplace_back();
    }
    if (configurations[place->second].row->known == one.row->known) {
      measured[place->second].push_back(seconds_of_figure(*one.row->known, one.run, one.row->value));
    }
  }
  for (std::size_t at = 0; at < configurations.size(); ++at) {
    configurations[at].measured = quantile(measured[at], 0.5);
  }
  return configurations;
}

double replicas_of(const TruthRow& row) {
  const TruthDegrees& degrees = row.degrees;
  return truth_devices(row) / (static_cast<double>(at_least_one(degrees.tensor)) * at_least_one(degrees.pipeline) *
                               at_least_one(degrees.context));
}

bool same(double a, double b) { return a > 0 && a == b; }

// Of samples, tokens, or micro-batches of a replica.
bool has_same_batch(const TruthRow& a, const TruthRow& b) {
  const auto tokens = [](const TruthRow& row) { return static_cast<double>(row.global_batch) * row.sizes.sequence; };
  const auto micro_batches = [](const TruthRow& row) {
    return row.micro_batch > 0 ? row.global_batch / row.micro_batch / replicas_of(row) : 0;
  };
  return a.global_batch == b.global_batch || same(tokens(a), tokens(b)) || same(micro_batches(a), micro_batches(b));
}

bool has_same_micro_batch(const TruthRow& a, const TruthRow& b) {
  return a.micro_batch == b.micro_batch || same(a.micro_batch * a.sizes.sequence, b.micro_batch * b.sizes.sequence);
}

std::vector<std::string> values_of(const TruthRow& row) {
  std::vector<std::string> values;
  for (const SettingColumn& setting : kSettings) {
    values.push_back(setting.value(row));
  }
  return values;
}

// What differs between two runs: one setting with its values; nothing where it is none or several, or where one row is
// silent on it.
struct Difference {
  std::string setting, from, to;
};
std::optional<Difference> difference_of(const TruthRow& a, const TruthRow& b, const std::vector<std::string>& of_a,
                                        const std::vector<std::string>& of_b) {
  std::optional<Difference> found;
  for (std::size_t at = 0; at < kSettings.size(); ++at) {
    const SettingColumn& setting = kSettings[at];
    const bool follows = at == kMicroBatch && of_a[kSequence] != of_b[kSequence] && has_same_micro_batch(a, b);
    if (of_a[at] == of_b[at] || follows || !setting.matters(a) || !setting.matters(b)) {
      continue;
    }
    if (found || of_a[at].empty() || of_b[at].empty()) {
      return std::nullopt;
    }
    found = {std::string(setting.name), of_a[at], of_b[at]};
  }
  if (has_same_batch(a, b)) {
    return found;
  }
  return found ? std::nullopt
               : std::optional(Difference{"batch", std::to_string(a.global_batch), std::to_string(b.global_batch)});
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The pair from the smaller number to the larger; other settings stay in the order of the table.
WhatIf pair_of(const MeasuredPlan& a, const MeasuredPlan& b, const Difference& difference, double tie) {
  WhatIf pair{.group = a.row->set,
              .setting = difference.setting,
              .from = difference.from,
              .to = difference.to,
              .before = a.row->case_name,
              .after = b.row->case_name,
              .measured = b.measured_each() / a.measured_each(),
              .predicted = b.predicted_each() / a.predicted_each(),
              .tie = tie};
  if (is_number(pair.from) && is_number(pair.to) && std::stol(pair.from) > std::stol(pair.to)) {
    std::swap(pair.from, pair.to);
    std::swap(pair.before, pair.after);
    pair.measured = 1 / pair.measured;
    pair.predicted = 1 / pair.predicted;
  }
  return pair;
}

using Groups = std::map<std::string, std::vector<MeasuredPlan>>;
Groups grouped(const std::vector<ComparedRun>& runs, std::string (*key)(const TruthRow& row)) {
  Groups groups;
  for (const MeasuredPlan& one : configurations_of(runs)) {
    groups[key(*one.row)].push_back(one);
  }
  return groups;
}

std::string device_and_model(const TruthRow& row) { return model_words(row) + "\n" + release_of(row) + "\n" + row.gpu; }

// What runs on two device types must have in common: all that says what is done, nothing of how.
std::string work_of(const TruthRow& row) {
  return model_words(row) + "\n" + release_of(row) + "\n" + std::to_string(row.sizes.sequence) + "\n" +
         plain_words(row.precision) + "\n" + passes_of(row);
}

// The pairs of device types that did the same work: of each type the configuration that took the least device time.
std::vector<WhatIf> pairs_of_devices(const std::vector<ComparedRun>& runs, double least_tie) {
  std::vector<WhatIf> pairs;
  for (const auto& [key, members] : grouped(runs, work_of)) {
    std::map<std::string, MeasuredPlan> fastest;
    for (MeasuredPlan member : members) {
      const double devices = truth_devices(*member.row);
      member.measured *= devices;
      member.predicted *= devices;
      const auto [place, is_new] = fastest.try_emplace(member.row->gpu, member);
      if (!is_new && member.measured_each() < place->second.measured_each()) {
        place->second = member;
      }
    }
    for (auto b = fastest.begin(); b != fastest.end(); ++b) {
      for (auto a = fastest.begin(); a != b; ++a) {
        pairs.push_back(
            pair_of(a->second, b->second, {std::string(kDeviceTypeSetting), a->first, b->first}, least_tie));
      }
    }
  }
  return pairs;
}

} // namespace

std::string configuration_of(const TruthRow& row) {
  std::string words = machine_and_model(row) + "\n" + std::to_string(row.global_batch);
  for (const std::string& value : values_of(row)) {
    words += "\n" + value;
  }
  return words;
}

std::vector<WhatIf> what_ifs_of(const std::vector<ComparedRun>& runs, const std::map<std::string, double>& noise) {
  constexpr double kTie = 0.03;
  std::vector<WhatIf> pairs;
  for (const auto& [key, members] : grouped(runs, machine_and_model)) {
    std::vector<std::vector<std::string>> values;
    for (const MeasuredPlan& member : members) {
      values.push_back(values_of(*member.row));
    }
    const auto known = noise.find(members.front().row->set);
    const double tie = std::max(kTie, known == noise.end() ? 0.0 : known->second);
    for (std::size_t b = 1; b < members.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        if (const auto difference = difference_of(*members[a].row, *members[b].row, values[a], values[b])) {
          pairs.push_back(pair_of(members[a], members[b], *difference, tie));
        }
      }
    }
  }
  std::vector<WhatIf> of_devices = pairs_of_devices(runs, kTie);
  std::move(of_devices.begin(), of_devices.end(), std::back_inserter(pairs));
  std::stable_sort(pairs.begin(), pairs.end(), [](const WhatIf& a, const WhatIf& b) {
    return std::tie(a.group, a.setting) < std::tie(b.group, b.setting);
  });
  return pairs;
}

std::vector<Ranking> rankings_of(const std::vector<ComparedRun>& runs) {
  constexpr std::size_t kLeast = 5;
  std::vector<Ranking> rankings;
  for (const auto& [key, members] : grouped(runs, device_and_model)) {
    if (members.size() < kLeast) {
      continue;
    }
    std::vector<double> measured, predicted;
    for (const MeasuredPlan& member : members) {
      const double devices = truth_devices(*member.row);
      measured.push_back(member.measured_each() * devices);
      predicted.push_back(member.predicted_each() * devices);
    }
    const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
    const TruthRow& row = *members.front().row;
    rankings.push_back(
        {.name = row.set + ", " + row.model + ", " + row.gpu,
         .runs = static_cast<int>(members.size()),
         .spearman = spearman(measured, predicted),
         .regret =
             measured[static_cast<std::size_t>(chosen)] / *std::min_element(measured.begin(), measured.end()) - 1});
  }
  return rankings;
}

} // namespace stagecraft
